"""Samples of signals against what a rule asks for."""

from __future__ import annotations

from memdoctor.engine.schema import AllOf, AnyOf, Comparison, Leaf, Rule
from memdoctor.handbook.fitting import Sample
from memdoctor.handbook.samples import Samples
from memdoctor.model import Signal

FLAG = Signal(
    id="a.flag", fact="config.error", has=("unrecognized",), match=r"unrecognized arguments: (?P<key>\S+)",
    set={"name": "unrecognized"}, sample="x.py: error: unrecognized arguments: --lora-rank 16",
)  # fmt: skip
OTHER = Signal(id="a.other", fact="config.error", has=("other",), match=r"other (?P<given>\d+)", set={"name": "other"}, sample="other 7")
EXIT = Signal(
    id="a.exit", fact="process.exit", has=("Failures",), match="Failures:", set={"name": "box"}, rows=(r"exitcode  : (?P<exitcode>-?\d+)",),
    sample="Failures:\n  exitcode  : 1",
)  # fmt: skip
TELLABLE = frozenset({"name", "key", "given"})


def leaf(kind: str = "config.error", **where: object) -> Leaf:
    return Leaf(kind, tuple(Comparison(field, "eq", value) for field, value in where.items()))


def rule(when: object) -> Rule:
    return Rule("a/b", "job.code", "t", "draft", "error", "likely", when, "m", "w", "none")  # type: ignore[arg-type]


def test_a_sample_that_fits_stays() -> None:
    assert Sample(FLAG).fitted(leaf(name="unrecognized"), TELLABLE) == FLAG.sample
    assert Sample(FLAG).fitted(leaf(key="--lora-rank"), TELLABLE) == FLAG.sample
    assert Sample(FLAG).fitted(leaf(site="launch"), TELLABLE) == FLAG.sample  # only the rest of a log tells


def test_another_word_takes_the_place_of_one_that_is_captured() -> None:
    assert (
        Sample(FLAG).fitted(leaf(name="unrecognized", key="--deepspeed"), TELLABLE) == "x.py: error: unrecognized arguments: --deepspeed 16"
    )


def test_what_speaks_against_it() -> None:
    assert Sample(FLAG).fitted(leaf(name="other"), TELLABLE) is None
    assert Sample(OTHER).fitted(leaf(key="--deepspeed"), TELLABLE) is None
    assert Sample(OTHER).fitted(Leaf("config.error", (Comparison("given", "gt", 7, type="int"),)), TELLABLE) is None
    assert Sample(FLAG).fitted(leaf("cuda.oom"), TELLABLE) is None


def test_rows_are_read() -> None:
    assert Sample(EXIT).tells == {"name", "exitcode"}
    assert Sample(EXIT).fitted(Leaf("process.exit", (Comparison("exitcode", "eq", 1, type="int"),)), Sample(EXIT).tells) == EXIT.sample


def test_excerpts_of_a_rule() -> None:
    samples = Samples([FLAG, OTHER, EXIT])
    (first, second) = samples.of(rule(AllOf((leaf("process.exit"), leaf(name="other")))))
    assert (first.source, second.source) == ("a.exit", "a.other")
    assert first.lines == ("Failures:", "  exitcode  : 1")
    (changed,) = samples.of(rule(leaf(name="unrecognized", key="--x")))
    assert changed.lines == ("x.py: error: unrecognized arguments: --x 16",)
    assert [signal.id for signal in samples.makers(rule(AnyOf((leaf(name="other"), leaf("process.exit")))))] == ["a.other", "a.exit"]


def test_exceptions_need_no_signal() -> None:
    where = (
        Comparison("type", "in", ("KeyError", "IndexError")),
        Comparison("message", "has", ("a", "b")),
        Comparison("site", "eq", "loss"),
    )
    (excerpt,) = Samples([]).of(rule(Leaf("exception", where)))
    assert excerpt.lines == ("KeyError: … a … b …",)
    assert excerpt.sites == ("loss",)
    assert Samples([]).of(rule(Leaf("exception"))) == ()
    assert Samples([]).of(rule(Leaf("series.numerics"))) == ()
