"""The semantics of `when`, on facts made by hand."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memdoctor.engine.conditions import read_condition
from memdoctor.engine.fields import Faults
from memdoctor.engine.judge import Finding, Judgement, judge
from memdoctor.engine.schema import Rule
from memdoctor.engine.yaml_strict import parse
from memdoctor.model import Fact, Origin, Skip, Stamp

_SEQ = itertools.count()


def rule(when: str, **parts: Any) -> Rule:
    faults = Faults("here")
    node = parse(when, faults.add)
    assert node is not None
    condition = read_condition(node, faults, lambda kind, name: None)
    assert faults.errors == []
    assert condition is not None
    given: dict[str, Any] = {"confidence": "likely", "message": "m", **parts}
    return Rule(
        id=given.pop("id", "a/b"), cause="c.d", title="t", status="draft", severity="error", when=condition, why="w", action="none", **given
    )  # fmt: skip


def fact(
    kind: str,
    *,
    rank: int | None = None,
    host: str | None = None,
    at: float | None = None,
    attempt: int = 1,
    path: str = "log",
    **fields: Any,
) -> Fact:
    stamp = None if at is None else Stamp(at, str(at))
    return Fact(kind, fields, Origin("log", path, 1, "x"), rank, host, stamp, attempt, next(_SEQ))


def fired(when: str, facts: list[Fact], **kwargs: Any) -> list[Finding]:
    result = judge([rule(when)], facts, **kwargs)
    assert result.not_checked == ()
    return list(result.findings)


def ranks(findings: list[Finding]) -> list[int | None]:
    return [event.rank for finding in findings for event in finding.facts]


OOM = fact("cuda.oom", rank=3, name="torch", tried=2 << 30, site="loss", gpu=3, other_pids=("12", "13"), level=None)

WHERE: list[tuple[str, bool]] = [
    ("{name: torch}", True),
    ("{name: driver}", False),
    ("{name: {ne: driver}}", True),
    ("{name: {in: [driver, torch]}}", True),
    ("{name: {in: [driver, nccl]}}", False),
    ("{name: {has: orc}}", True),
    ("{name: {has: [t, h]}}", True),
    ("{name: {has: [t, x]}}", False),
    ("{tried: {ge: 2 GiB}}", True),
    ("{tried: {gt: 2 GiB}}", False),
    ("{tried: {gt: 1 GiB, lt: 3 GiB}}", True),
    ("{tried: {gt: 1 GiB, lt: 2 GiB}}", False),
    ("{tried: {le: 2 GiB}}", True),
    ("{gpu: {in: [2, 3]}}", True),
    ("{rank: 3}", True),
    ("{attempt: {gt: 1}}", False),
    ("{other_pids: {has: '13'}}", True),
    ("{other_pids: {has: '1'}}", False),
    # unknown fields
    ("{free: {exists: false}}", True),
    ("{free: {exists: true}}", False),
    ("{tried: {exists: true}}", True),
    ("{free: {ge: 0}}", False),
    ("{free: {lt: 1 GiB}}", False),
    ("{free: {ne: 1 GiB}}", True),
    ("{backend: {in: [native]}}", False),
    ("{backend: {has: x}}", False),
    ("{host: {ne: n1}}", True),
    # with another field of the same fact
    ("{gpu: $first.rank}", True),
    ("{gpu: {ne: $first.rank}}", False),
    ("{tried: {ge: $first.free}}", False),
    ("{tried: {ne: $first.free}}", True),
]


@pytest.mark.parametrize(("where", "expected"), WHERE)
def test_where(where: str, expected: bool) -> None:
    assert bool(fired(f"{{fact: cuda.oom, where: {where}}}", [OOM])) is expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("{values.lr: {gt: 1e-3}}", True),
        ("{values.lr: 0.01}", True),
        ("{values.fp16: true}", True),
        ("{values.fp16: {ne: true}}", False),
        ("{values.name: {lt: 3}}", False),
        ("{values.absent: {exists: false}}", True),
        ("{values: {has: lr}}", True),
        ("{values.name: {has: gp}}", True),
    ],
)
def test_where_looks_into_dumped_arguments(where: str, expected: bool) -> None:
    arguments = fact("run.args", name="megatron", values={"lr": "1e-2", "fp16": True, "name": "gpt"})
    assert bool(fired(f"{{fact: run.args, where: {where}}}", [arguments])) is expected


@pytest.mark.parametrize(
    ("version", "where", "expected"),
    [
        ("2.10.0+cu126", "{ge: '2.9'}", True),
        ("2.10.0", "{lt: '2.9'}", False),
        ("2.1.0", "2.1", True),
        ("", "{ge: '1'}", False),
        ("", "{ne: '1'}", True),
    ],
)
def test_versions_are_compared_as_versions(version: str, where: str, expected: bool) -> None:
    assert (
        bool(fired(f"{{fact: run.version, where: {{version: {where}}}}}", [fact("run.version", name="torch", version=version)])) is expected
    )


def test_an_attempt_is_one_finding_over_all_its_ranks() -> None:
    facts = [fact("cuda.oom", rank=r, attempt=a) for a in (1, 2) for r in (1, 0, 5)]
    found = fired("{fact: cuda.oom}", facts)
    assert [(finding.attempt, len(finding.facts), finding.count) for finding in found] == [(1, 3, 3), (2, 3, 3)]


def test_events_are_in_the_order_of_time_then_of_reading() -> None:
    late, early, same = fact("cuda.oom", rank=0, at=20), fact("cuda.oom", rank=1, at=10), fact("cuda.oom", rank=2, at=20)
    bounded = Fact("cuda.oom", {}, Origin("log"), rank=3, after=Stamp(15, ""), seq=10**9)
    nowhere = Fact("cuda.oom", {}, Origin("log"), rank=4, seq=10**9)
    assert ranks(fired("{fact: cuda.oom}", [late, bounded, early, same, nowhere])) == [4, 1, 3, 0, 2]


def test_all_joins_by_attempt_always() -> None:
    when = "all: [{fact: cuda.oom}, {fact: numeric.bad}]"
    assert fired(when, [fact("cuda.oom", attempt=1), fact("numeric.bad", attempt=2)]) == []
    (found,) = fired(when, [fact("cuda.oom", attempt=2), fact("cuda.oom", attempt=1), fact("numeric.bad", attempt=2)])
    assert found.attempt == 2
    assert [other.kind for other in found.support] == ["numeric.bad"]


def test_job_wide_facts_join_every_attempt() -> None:
    when = "all: [{fact: cuda.oom}, {fact: scheduler}]"
    assert [f.attempt for f in fired(when, [fact("cuda.oom", attempt=a) for a in (1, 2)] + [fact("scheduler", attempt=0)])] == [1, 2]
    assert [
        f.attempt for f in fired("all: [{fact: scheduler}, {fact: cuda.oom}]", [fact("cuda.oom", attempt=2), fact("scheduler", attempt=0)])
    ] == [0]


JOIN = "all: [{fact: cuda.oom}, {fact: numeric.bad, same: [%s]}]"


@pytest.mark.parametrize(
    ("same", "first", "other", "expected"),
    [
        ("rank", {"rank": 1}, {"rank": 1}, True),
        ("rank", {"rank": 1}, {"rank": 2}, False),
        ("rank", {"rank": 1}, {}, False),
        ("rank", {}, {}, True),  # one stream of one file
        ("rank", {}, {"path": "other.log"}, False),
        ("rank", {"stream": "a:1"}, {"stream": "a:2"}, False),
        ("host", {"host": "n1"}, {"host": "n1", "rank": 5}, True),
        ("host", {"host": "n1"}, {"host": "n2"}, False),
        ("host", {"host": "n1"}, {}, False),
        ("host", {}, {}, True),
        ("rank, host", {"rank": 1, "host": "n1"}, {"rank": 1, "host": "n2"}, False),
        ("attempt", {"rank": 1}, {"rank": 2}, True),
    ],
)
def test_joins(same: str, first: dict[str, Any], other: dict[str, Any], expected: bool) -> None:
    facts = [fact("cuda.oom", **first), fact("numeric.bad", **other)]
    assert bool(fired(JOIN % same, facts)) is expected
    none = f"all: [{{fact: cuda.oom}}, {{none: [{{fact: numeric.bad, same: [{same}]}}]}}]"
    assert bool(fired(none, facts)) is not expected


def test_a_join_keeps_only_the_events_for_which_it_holds() -> None:
    facts = [fact("cuda.oom", rank=r) for r in range(4)] + [fact("numeric.bad", rank=r) for r in (1, 3)]
    assert ranks(fired(JOIN % "rank", facts)) == [1, 3]
    assert ranks(fired("all: [{fact: cuda.oom}, {none: [{fact: numeric.bad, same: [rank]}]}]", facts)) == [0, 2]


def test_a_field_of_the_first_fact() -> None:
    facts = [fact("rank.place", of_rank=7, on_host="n1"), fact("cuda.oom", rank=7), fact("cuda.oom", rank=8)]
    assert ranks(fired("all: [{fact: cuda.oom}, {fact: rank.place, where: {of_rank: $first.rank}}]", facts)) == [7]
    unknown = [fact("cuda.oom"), facts[0]]
    assert fired("all: [{fact: cuda.oom}, {fact: rank.place, where: {of_rank: $first.rank}}]", unknown) == []


def test_none_holds_where_no_part_does() -> None:
    when = "all: [{fact: cuda.oom}, {none: [{fact: xid}, {all: [{fact: sxid}, {fact: gpu.error}]}]}]"
    assert fired(when, [fact("cuda.oom"), fact("sxid")])
    assert not fired(when, [fact("cuda.oom"), fact("sxid"), fact("gpu.error")])
    assert not fired(when, [fact("cuda.oom"), fact("xid")])


def test_about_names_the_event() -> None:
    made = rule("all: [{fact: run.version}, {fact: cuda.oom, where: {tried: {ge: 1 GiB}}}]", about="cuda.oom")
    (found,) = judge([made], [fact("run.version"), fact("cuda.oom", tried=5, rank=1), fact("cuda.oom", tried=1 << 30, rank=2)]).findings
    assert [event.rank for event in found.facts] == [2]
    assert [other.kind for other in found.support] == ["run.version"]


ANY = """
any:
  - {fact: cuda.oom, confidence: certain}
  - {fact: host.oom}
  - {all: [{fact: exception}, {fact: xid}], confidence: possible}
"""


@pytest.mark.parametrize(
    ("kinds", "confidence"),
    [
        (["cuda.oom"], "certain"),
        (["host.oom"], "likely"),
        (["exception", "xid"], "possible"),
        (["exception", "xid", "host.oom"], "likely"),
        (["exception", "xid", "host.oom", "cuda.oom"], "certain"),
    ],
)
def test_a_branch_may_carry_its_own_confidence(kinds: list[str], confidence: str) -> None:
    (found,) = fired(ANY, [fact(kind) for kind in kinds])
    assert found.confidence == confidence
    assert {event.kind for event in found.facts} == set(kinds) - {"xid"}


@pytest.mark.parametrize(("kinds", "confidence"), [(["xid"], "certain"), (["sxid"], "possible"), (["xid", "sxid"], "certain"), ([], None)])
def test_an_any_beside_the_event_sets_the_confidence_too(kinds: list[str], confidence: str | None) -> None:
    when = "all: [{fact: cuda.oom}, {any: [{fact: xid, confidence: certain}, {fact: sxid, confidence: possible}]}]"
    assert [found.confidence for found in fired(when, [fact("cuda.oom"), *(fact(kind) for kind in kinds)])] == (
        [confidence] if confidence else []
    )


def test_the_weakest_of_several_parts_counts() -> None:
    when = "all: [{any: [{fact: cuda.oom, confidence: certain}]}, {any: [{fact: xid, confidence: possible}]}]"
    assert [found.confidence for found in fired(when, [fact("cuda.oom"), fact("xid")])] == ["possible"]


COUNTED = "{fact: loss_scale, where: {name: overflow}, count: {ge: 20}}"


def test_count_uses_the_exact_totals_of_what_is_kept_in_part() -> None:
    facts = [fact("loss_scale", name="overflow", rank=0) for _ in range(16)]
    assert fired(COUNTED, facts) == []
    (found,) = fired(COUNTED, facts, counts={("loss_scale", "overflow", 0, 1): 120, ("loss_scale", "overflow", 0, 2): 7})
    assert (found.count, len(found.facts)) == (120, 16)
    assert fired(COUNTED, facts, counts={("loss_scale", "overflow", 0, 1): 19}) == []


def test_a_total_is_not_claimed_for_facts_of_which_only_some_pass() -> None:
    facts = [fact("loss_scale", name="overflow", rank=0, step=step) for step in range(16)]
    counts = {("loss_scale", "overflow", 0, 1): 120}
    (found,) = fired("{fact: loss_scale, where: {step: {ge: 8}}}", facts, counts=counts)
    assert found.count == 8


@pytest.mark.parametrize(("same", "expected"), [("", True), ("same: [rank], ", False)])
def test_count_is_over_all_ranks_unless_joined(same: str, expected: bool) -> None:
    facts = [fact("peer.gone", rank=r) for r in range(3)]
    assert bool(fired(f"{{fact: peer.gone, {same}count: {{ge: 3}}}}", facts)) is expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        ("{ge: 4}", True),
        ("{ge: 3, distinct: rank}", False),
        ("{ge: 2, distinct: rank}", True),
        ("{ge: 3, distinct: device}", False),
        ("{ge: 3, within: 10 s}", True),
        ("{ge: 4, within: 10 s}", False),
        ("{ge: 2, distinct: rank, within: 10 s}", False),
        ("{ge: 2, distinct: rank, within: 2 min}", True),
    ],
)
def test_count_of_distinct_values_and_within_a_time(count: str, expected: bool) -> None:
    facts = [fact("nccl.warn", rank=0, at=t, device=1) for t in (0, 5, 10)] + [
        fact("nccl.warn", rank=1, at=100),
        fact("nccl.warn", rank=None),
    ]
    assert bool(fired(f"{{fact: nccl.warn, count: {count}}}", facts)) is expected


def test_none_with_a_count() -> None:
    when = "all: [{fact: cuda.oom}, {none: [{fact: nccl.warn, same: [rank], count: {ge: 2}}]}]"
    facts = [fact("cuda.oom", rank=r) for r in (0, 1)] + [fact("nccl.warn", rank=r) for r in (0, 1, 1)]
    assert ranks(fired(when, facts)) == [0]


@pytest.mark.parametrize(
    ("applies", "versions", "frameworks", "expected"),
    [
        ({"torch": ">=2.0"}, {"torch": "2.1.0+cu118"}, (), True),
        ({"torch": ">=2.0"}, {"torch": "1.13.1"}, (), False),
        ({"pytorch": ">=2.0"}, {"torch": "1.13.1"}, (), False),
        ({"torch": ">=2.0"}, {}, (), True),
        ({"torch": ">=2.0"}, {"torch": ""}, ("torch",), True),
        ({"torch": ">=2.0"}, {"torch": "git"}, (), True),
        ({"torch": ">=2.0", "nccl": "<2.20"}, {"torch": "2.1", "nccl": "2.21.5"}, (), False),
        ({"deepspeed": "*"}, {}, (), True),
        ({"deepspeed": "*"}, {}, ("deepspeed", "torch"), True),
        ({"deepspeed": "*"}, {}, ("nccl",), True),
        ({"deepspeed": "*"}, {}, ("megatron-lm", "nccl"), False),
    ],
)
def test_applies(applies: dict[str, str], versions: dict[str, str], frameworks: tuple[str, ...], expected: bool) -> None:
    result = judge([rule("{fact: cuda.oom}", applies=applies)], [OOM], versions=versions, frameworks=frameworks)
    assert bool(result.findings) is expected
    assert result.not_checked == ()


SKIP = Skip("kernel log", "no dmesg was given", ("xid", "sxid"))


@pytest.mark.parametrize(
    ("when", "not_checked", "confidence"),
    [
        ("{fact: xid}", True, None),
        ("all: [{fact: cuda.oom}, {fact: xid}]", True, None),
        ("any: [{fact: cuda.oom}, {fact: xid}]", False, "likely"),
        ("any: [{fact: sxid}, {fact: xid}]", True, None),
        ("all: [{fact: cuda.oom}, {any: [{fact: xid}, {none: [{fact: numeric.bad}]}]}]", False, "likely"),
        ("all: [{fact: cuda.oom}, {none: [{fact: xid}]}]", False, "likely"),
        ("all: [{fact: cuda.oom}, {none: [{fact: numeric.bad}]}]", False, "likely"),
    ],
)
def test_what_no_source_could_yield_is_unknown(when: str, not_checked: bool, confidence: str | None) -> None:
    result = judge([rule(when)], [OOM], skips=[SKIP])
    assert result.not_checked == ((("a/b", "kernel log: no dmesg was given"),) if not_checked else ())
    assert [found.confidence for found in result.findings] == ([confidence] if confidence else [])


def test_a_kind_that_was_seen_after_all_is_known() -> None:
    assert judge([rule("{fact: xid}")], [fact("xid")], skips=[SKIP]).findings


def test_without_its_source_nothing_is_checked() -> None:
    result = judge([rule("{fact: cuda.oom}")], [], sources=frozenset({"probe"}))
    assert result.not_checked == (("a/b", "no log was read"),)


def test_a_rule_that_fails_does_not_cost_the_others() -> None:
    broken = rule("{fact: cuda.oom}", id="a/broken", message="{gpu")
    result = judge([broken, rule("{fact: cuda.oom}")], [OOM])
    assert [found.rule.id for found in result.findings] == ["a/b"]
    assert result.not_checked == (("a/broken", "failed: ValueError: a '{' is never closed"),)


def message(template: str, facts: list[Fact], **kwargs: Any) -> str:
    (found,) = judge([rule("{fact: cuda.oom}", message=template)], facts, **kwargs).findings
    return found.message


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("GPU {gpu}: {tried} asked[, {free} free]", "GPU 0: 2 GiB asked"),
        ("rank {rank} of {ranks} on {host}", "rank 0 of 0-2 on n1"),
        ("{count} times in attempt {attempt}", "1,003 times in attempt 1"),
        ("{backend}", "two lines"),
        ("{iteration} [[{site}]]", "unknown [unknown]"),
    ],
)
def test_the_message_has_the_numbers_of_the_case(template: str, expected: str) -> None:
    facts = [fact("cuda.oom", rank=r, host="n1", gpu=r, tried=2 << 30, backend="two\nlines", at=r) for r in range(3)]
    assert message(template, facts, counts={("cuda.oom", "", 1, 1): 1001}) == expected


def test_the_message_takes_the_first_event_that_knows_its_numbers() -> None:
    facts = [fact("cuda.oom", rank=0, at=0), fact("cuda.oom", rank=1, tried=1024, at=1), fact("cuda.oom", rank=2, tried=2048, free=1, at=2)]
    assert message("{tried} asked[, {free} free] on rank {rank}", facts) == "1 KiB asked on rank 1"


def test_the_message_of_a_chain_quotes_its_first_cause() -> None:
    wrapper = fact(
        "exception", type="ray.exceptions.RayTaskError(ValueError)", message="ray::Worker.run() (pid=1)", root=False, chained=True
    )
    cause = fact("exception", type="ValueError", message="28 heads", root=True, chained=True)
    other = fact("exception", type="KeyError", message="x", root=True)
    events = [replace(wrapper, event="0:3"), replace(cause, event="0:3"), replace(other, event="0:9")]
    (found,) = judge([rule("{fact: exception}", message="{type}: {message}")], events).findings
    assert found.message == "ValueError: 28 heads"
    (found,) = judge([rule("{fact: exception}", message="{type}: {message}")], [events[0], events[2]]).findings
    assert found.message.startswith("ray.exceptions.RayTaskError(ValueError): ray::Worker.run()")


def test_no_rank_is_known() -> None:
    assert message("out of memory[ on ranks {ranks}]", [fact("cuda.oom")]) == "out of memory"


def _storm(kind: str, number: int) -> list[Fact]:
    return [fact(kind, rank=n % 1000, name="x", type="E", gpu=n, step=n, at=float(n)) for n in range(number)]


@pytest.mark.parametrize(
    "when",
    [
        JOIN % "rank",
        "all: [{fact: cuda.oom}, {fact: numeric.bad}, {none: [{fact: xid}]}]",
        "all: [{fact: cuda.oom, count: {ge: 3, within: 1 s}}, {fact: numeric.bad}]",
        "all: [{fact: cuda.oom}, {fact: numeric.bad, where: {name: $first.name}}]",
        "all: [{fact: cuda.oom}, {fact: numeric.bad, where: {step: $first.gpu}}]",
        "all: [{fact: cuda.oom, count: {ge: 900, distinct: rank, within: 2 h}}, {fact: numeric.bad}]",
    ],
)
def test_many_rules_on_many_facts_take_linear_time(when: str) -> None:
    facts = [*_storm("cuda.oom", 6000), *_storm("numeric.bad", 6000)]
    start = time.process_time()
    result: Judgement = judge([rule(when) for _ in range(20)], facts)
    assert time.process_time() - start < 8  # quadratic: 20 * 36 million comparisons
    assert len(result.findings) == (0 if "within: 1 s" in when else 20)


def test_a_rule_that_compares_without_end_is_given_up_and_told() -> None:
    facts = [*_storm("cuda.oom", 6000), *_storm("numeric.bad", 6000)]
    result = judge([rule("all: [{fact: cuda.oom}, {fact: numeric.bad, where: {step: {gt: $first.tried}}}]")], [
        Fact(f.kind, {**f.fields, "tried": 10**9 + n}, f.origin, f.rank) for n, f in enumerate(facts)
    ])  # fmt: skip
    assert result.findings == ()
    assert [reason for _, reason in result.not_checked] == [
        "failed: MemdoctorError: more than 1,000,000 comparisons of facts with the first fact"
    ]


def test_builtin_like_rules_stay_cheap_on_a_full_store(tmp_path: Path) -> None:
    facts = _storm("exception", 50_000)
    make: Callable[[int], Rule] = lambda n: rule(f"{{fact: exception, where: {{type: E{n}, message: {{has: x}}}}}}")  # noqa: E731
    rules = [make(n) for n in range(300)]
    start = time.process_time()
    assert judge(rules, facts).findings == ()
    assert time.process_time() - start < 5
