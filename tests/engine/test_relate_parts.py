"""The parts that relate findings: the table of tiers, onsets, links; and what must hold for any findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from memdoctor.engine.judge import Finding
from memdoctor.engine.links import linked
from memdoctor.engine.onset import clearly_before, file_order, has_zone, printed_before, span_of, waited, within
from memdoctor.engine.relate import relate
from memdoctor.engine.schema import Explains, Leaf, Rule
from memdoctor.engine.tiers import load_tiers, matches
from memdoctor.errors import RuleError
from memdoctor.model import AttemptInfo, Fact, Marks, Origin, Run, Stamp, StepMark, Timeline
from memdoctor.resources import rules_dir

CAUSES = sorted(yaml.safe_load((rules_dir() / "tables" / "causes.yaml").read_text(encoding="utf-8"))["causes"])


def fact(
    at: float | None = None,
    *,
    seq: int = 0,
    path: str = "a.log",
    after: float | None = None,
    zone: str = "",
    host: str | None = None,
    **fields: Any,
) -> Fact:
    def stamp(epoch: float | None) -> Stamp | None:
        return None if epoch is None else Stamp(epoch, f"2025-03-01T10:00:{epoch:09.3f}{zone}")

    return Fact("error.line", fields, Origin("log", path, seq, "text"), host=host, time=stamp(at), after=stamp(after), seq=seq)


class TestTiers:
    @pytest.mark.parametrize("cause", CAUSES)
    def test_every_cause_stands_in_one_tier(self, cause: str) -> None:
        tiers = load_tiers()
        exact = [name for name, causes in zip(tiers.names, tiers.causes, strict=True) if cause in causes]
        globs = [name for name, causes in zip(tiers.names, tiers.causes, strict=True) if cause not in causes and matches(cause, causes)]
        assert len(exact) == 1 or (not exact and len(globs) == 1)

    def test_no_entry_is_idle(self) -> None:
        tiers = load_tiers()
        entries = [
            *(entry for causes in tiers.causes for entry in causes),
            *tiers.weak,
            *tiers.ends,
            *tiers.aborts,
            *tiers.states,
            *tiers.harmless,
        ]
        assert [entry for entry in entries if not any(matches(cause, [entry]) for cause in CAUSES)] == []

    def test_order_of_evidence(self) -> None:
        tiers = load_tiers()
        chain = [
            "oom.logits",
            "job.code",
            "net.ib",
            "hang.desync",
            "hang.straggler",
            "job.killed",
            "net.socket",
            "nccl.internal",
            "job.unexplained",
        ]
        assert [tiers.of(cause) for cause in chain] == sorted({tiers.of(cause) for cause in chain})

    def test_ids_that_say_no_better_cause_are_weak(self) -> None:
        table = yaml.safe_load((rules_dir() / "tables" / "causes.yaml").read_text(encoding="utf-8"))["causes"]
        worded = {cause for cause, entry in table.items() if "no better cause" in entry["what"]}
        assert worded <= set(load_tiers().residual) <= set(load_tiers().weak)
        assert load_tiers().weak[-1] == "job.unexplained"

    def test_unknown_cause(self) -> None:
        assert load_tiers().of("own.thing") == load_tiers().condition

    @pytest.mark.parametrize("text", ["", "[]", "tiers: 3", "tiers: [{name: a}]", "tiers: [{name: a, causes: [b]}]", "tiers: [", "\x00"])
    def test_broken_table(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "tiers.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(RuleError, match="not a table of tiers"):
            load_tiers(str(path))


class TestOnset:
    def test_a_time_out_began_when_its_call_did(self) -> None:
        span = span_of([fact(900, limit=600), fact(905, limit=600, ran=604.0)])
        assert (span.first, span.printed, span.wait, span.exact) == (300, 900, True, True)

    @pytest.mark.parametrize(
        ("fields", "seconds"),
        [
            ({}, 0),
            ({"limit": 600}, 600),
            ({"limit_ms": 8.0}, 8),
            ({"ran": 601.5, "limit": 600}, 601.5),
            ({"limit": None}, 0),
            ({"limit": True}, 0),
            ({"ran": "x"}, 0),
        ],
    )
    def test_waited(self, fields: dict[str, Any], seconds: float) -> None:
        assert waited(fact(1, **fields)) == seconds

    def test_a_fact_without_time_is_bounded_by_what_stands_before_it(self) -> None:
        span = span_of([fact(after=100)])
        assert (span.first, span.printed, span.exact) == (100, None, False)
        assert span_of([fact(after=100), fact()]).first is None

    @pytest.mark.parametrize(
        ("iso", "zoned"),
        [("2025-03-01T10:00:00", False), ("2025-03-01T10:00:00.123", False), ("2025-03-01T10:00:00Z", True), ("2025-03-01T10:00:00+02:00", True),
         ("2025-03-01T10:00:00-0500", True), ("10:00:00", False), ("2025-03-01", False)],
    )  # fmt: skip
    def test_zone(self, iso: str, zoned: bool) -> None:
        assert has_zone(Stamp(0, iso)) is zoned

    @pytest.mark.parametrize(
        ("one", "other", "before"),
        [
            (fact(0), fact(6), True),  # one file: five seconds
            (fact(0), fact(5), False),
            (fact(0), fact(60, path="b.log"), False),  # two files: a minute
            (fact(0), fact(61, path="b.log"), True),
            (fact(0), fact(after=30), False),  # printed late, perhaps
            (fact(0), fact(after=61), True),
            (fact(0), fact(), False),
            (fact(after=0), fact(100), False),  # it may have been printed long after that stamp
            (fact(600, limit=600), fact(300), False),  # while it waits, its cause may come
            (fact(600, limit=600), fact(606), True),
            (fact(600, limit=600), fact(700, limit=600), True),  # two time-outs: by their calls
            (fact(600, limit=600), fact(700, limit=700), False),
            (fact(0, zone="Z"), fact(1000), False),  # no common clock
            (fact(0, zone="Z"), fact(1000, zone="+01:00"), True),
        ],
    )
    def test_clearly_before(self, one: Fact, other: Fact, before: bool) -> None:
        assert clearly_before(span_of([one]), span_of([other])) is before

    def test_printed_before(self) -> None:
        assert printed_before(span_of([fact(20)]), span_of([fact(600, limit=600)]))
        assert not printed_before(span_of([fact(599)]), span_of([fact(600, limit=600)]))
        assert not printed_before(span_of([fact(20, path="b.log")]), span_of([fact(60)]))
        assert not printed_before(span_of([fact(after=20)]), span_of([fact(600)]))

    def test_within(self) -> None:
        assert within(span_of([fact(0)]), span_of([fact(2400)]), 2400)
        assert not within(span_of([fact(0)]), span_of([fact(2401)]), 2400)
        assert within(span_of([fact(0)]), span_of([fact(2401)]), None)
        assert within(span_of([fact(0)]), span_of([fact(after=9999)]), 2400)
        assert within(span_of([fact(0)]), span_of([fact(9999, zone="Z")]), 2400)

    def test_file_order(self) -> None:
        assert file_order(span_of([fact(seq=1)]), span_of([fact(seq=2)])) == -1
        assert file_order(span_of([fact(seq=3)]), span_of([fact(seq=2)])) == 1
        assert file_order(span_of([fact(seq=3, path="b.log")]), span_of([fact(seq=2)])) == 0
        assert file_order(span_of([fact(seq=1), fact(seq=9, path="b.log")]), span_of([fact(seq=2), fact(seq=8, path="b.log")])) == 0


class TestLinks:
    @pytest.mark.parametrize(
        ("link", "cause", "effect", "holds"),
        [
            ("job", {"host": "a"}, {"host": "b"}, True),
            ("host", {"host": "a"}, {"host": "a"}, True),
            ("host", {"host": "a"}, {"host": "b"}, False),
            ("host", {"host": "a"}, {}, False),
            ("host", {}, {}, True),
            ("rank", {"of_rank": 3}, {"of_rank": 3}, True),
            ("rank", {"of_rank": 3}, {"of_rank": 4}, False),
            ("rank", {"of_rank": 3}, {}, False),
            ("group", {"pg": "1"}, {"pg": "2"}, False),
            ("group", {"pg": "1"}, {"pg": 1}, True),
            ("group", {"pg": "1"}, {}, True),
            ("device", {"bus_id": "0000:3b:00"}, {"bus_id": "00000000:3B:00.0"}, True),
            ("device", {"bus_id": "0000:3b:00"}, {"bus_id": "3b000"}, True),
            ("device", {"bus_id": "0000:3b:00"}, {"bus_id": "0000:86:00"}, False),
            ("device", {"bus_id": "0000:3b:00", "host": "a"}, {"bus_id": "0000:3b:00", "host": "b"}, False),
            ("device", {"gpu": 1, "host": "a"}, {"gpu": 2, "host": "a"}, False),
            ("device", {"gpu": 1, "host": "a"}, {"gpu": 1, "host": "a"}, True),
            ("device", {"gpu": 1}, {"gpu": 2}, True),
            ("device", {"bus_id": "0000:3b:00"}, {}, True),
        ],
    )
    def test_link(self, link: str, cause: dict[str, Any], effect: dict[str, Any], holds: bool) -> None:
        assert linked([fact(**cause)], [fact(**effect)], link) is holds


some_facts = st.builds(
    lambda at, seq, path, after, zone, rank, host, event, limit: Fact(
        "error.line",
        {} if limit is None else {"limit": limit},
        Origin("log", path, seq, "text"),
        rank,
        host,
        None if at is None else Stamp(at, f"2025-03-01T10:00:00{zone}"),
        1,
        seq,
        event,
        None if after is None else Stamp(after, f"2025-03-01T10:00:00{zone}"),
    ),
    at=st.none() | st.floats(0, 2000),
    seq=st.integers(0, 50),
    path=st.sampled_from(["a.log", "b.log"]),
    after=st.none() | st.floats(0, 2000),
    zone=st.sampled_from(["", "Z"]),
    rank=st.none() | st.integers(0, 3),
    host=st.sampled_from([None, "n1", "n2"]),
    event=st.sampled_from(["", "e1", "e2", "e3", "e4", "e5"]),
    limit=st.sampled_from([None, None, 600.0]),
)


@st.composite
def some_findings(draw: st.DrawFn) -> list[Finding]:
    made = []
    for number in range(draw(st.integers(1, 7))):
        cause = draw(st.sampled_from(CAUSES))
        rule = Rule(
            id=f"r{number}/{cause.replace('.', '_')}", cause=cause, title="", status="stable", severity=draw(st.sampled_from(["error", "error", "warning", "note"])),
            confidence="likely", when=Leaf("error.line"), message="", why="", action="restart", over=tuple(draw(st.lists(st.sampled_from(["r1/*", "r2/*"]), max_size=1))),
            explains=tuple(draw(st.lists(st.builds(Explains, st.sampled_from(["*", "hang.*", "net.*"]), st.sampled_from(["job", "host", "rank"]), st.sampled_from([None, 60.0])), max_size=2))),
        )  # fmt: skip
        facts = tuple(draw(st.lists(some_facts, min_size=1, max_size=4)))
        made.append(
            Finding(
                rule,
                draw(st.sampled_from([0, 1, 1, 1, 2])),
                draw(st.sampled_from(["certain", "likely", "possible"])),
                facts,
                (),
                len(facts),
                "message",
            )
        )
    return made


@settings(max_examples=300, deadline=None)
@given(
    findings=some_findings(),
    statuses=st.lists(st.sampled_from(["failed", "completed", "killed", "unknown"]), min_size=0, max_size=2),
    debris=st.booleans(),
    marks=st.lists(st.integers(0, 60), max_size=4),
)
def test_what_holds_for_any_findings(findings: list[Finding], statuses: list[Any], debris: bool, marks: list[int]) -> None:
    steps = tuple(StepMark(seq, "a.log", None, seq, None) for seq in marks)
    timeline = Timeline(
        tuple(AttemptInfo(number, status, 1 if debris and number == 2 else None, Marks(steps)) for number, status in enumerate(statuses, 1))
    )
    related = relate(findings, run=Run(attempts=max(1, len(statuses))), timeline=timeline)
    assert relate(findings[::-1], run=Run(attempts=max(1, len(statuses))), timeline=timeline) == related
    by_id = {diagnosis.id: diagnosis for diagnosis in related.diagnoses}
    severities = {diagnosis.severity for diagnosis in related.diagnoses}
    assert (related.root_cause is None) == (severities <= {"note"})
    if related.root_cause is not None:
        first = related.diagnoses[0]
        assert (first.cause, first.explained_by) == (related.root_cause, None) or "error" not in severities
        assert first.severity == ("error" if "error" in severities else "warning")
        assert not related.candidates or related.confidence == "possible"
        assert related.root_cause not in related.candidates
    for diagnosis in related.diagnoses:
        steps_up, above = 0, diagnosis
        while above.explained_by is not None:
            assert above.explained_by in by_id
            above, steps_up = by_id[above.explained_by], steps_up + 1
            assert steps_up <= len(by_id)
        assert not diagnosis.recovered or (diagnosis.severity, diagnosis.explained_by) == ("note", None)
        assert 1 <= len(diagnosis.evidence) <= 5
        assert diagnosis.count >= 1
    for incident in related.incidents:
        assert set(incident.diagnoses) <= set(by_id)
        assert incident.root_cause is None or by_id[incident.diagnoses[0]].cause == incident.root_cause
