"""Cause and consequence on made-up findings: each scenario says what happened, and what a report must say of it.

Times are seconds after 10:00:00; a fact without ``at`` has no time, like the last line of a traceback.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from memdoctor.engine.judge import Finding
from memdoctor.engine.relate import Related, relate
from memdoctor.engine.schema import Explains, Leaf, Rule
from memdoctor.model import AttemptInfo, Confidence, Fact, Marks, Origin, Run, Severity, Stamp, StepMark, Timeline

TEN = datetime(2025, 3, 1, 10, tzinfo=UTC).timestamp()


def stamp(at: float, zone: str = "") -> Stamp:
    iso = datetime.fromtimestamp(TEN + at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return Stamp(TEN + at, iso + zone)


_lines = itertools.count(1)


def fact(
    kind: str,
    rank: int | None = None,
    at: float | None = None,
    *,
    path: str = "train.log",
    line: int | None = None,
    host: str | None = None,
    after: float | None = None,
    attempt: int = 1,
    event: str | None = None,
    zone: str = "",
    text: str | None = None,
    **fields: Any,
) -> Fact:
    line = next(_lines) if line is None else line
    return Fact(
        kind,
        fields,
        Origin("log", path, line, f"{kind} of rank {rank}" if text is None else text),
        rank,
        host,
        None if at is None else stamp(at, zone),
        attempt,
        line,
        f"{path}:{line}:{kind}" if event is None else event,
        None if after is None else stamp(after, zone),
    )


def timeouts(ranks: Any, at: float | None = None, limit: float = 600, **more: Any) -> list[Fact]:
    """What the watchdogs of ``ranks`` print ``at``, ``limit`` seconds after the call that never returned."""
    return [fact("watchdog.timeout", rank, at, limit=limit, **more) for rank in ranks]


# What the rules of this test explain by name: roughly what real rules do.
EXPLAINS: Mapping[str, tuple[Explains, ...]] = {
    "oom.logits": (Explains("hang.*", "job", 2400), Explains("net.*", "job", 2400), Explains("job.native_crash", "rank", 600)),
    "gpu.xid": (
        Explains("hang.*", "job", 2400),
        Explains("cuda.*", "host", 600),
        Explains("gpu.*", "host", 600),
        Explains("nccl.*", "job", 2400),
    ),
    "job.code": (Explains("hang.*", "job", 2400), Explains("net.socket", "job", 600)),
    "job.killed": (
        Explains("net.*", "job", 300),
        Explains("job.code", "job", 300),
        Explains("job.native_crash", "job", 300),
        Explains("hang.*", "job", 300),
    ),
    "nccl.internal": (Explains("hang.*", "job", 2400),),
    "net.ib": (Explains("hang.*", "job", 2400),),
}
FACTS = {"oom.logits": "cuda.oom", "gpu.xid": "xid", "job.code": "exception", "job.killed": "scheduler", "job.native_crash": "native.crash"}


def rule(
    cause: str,
    *,
    id: str | None = None,
    severity: Severity = "error",
    confidence: Confidence = "likely",
    action: str = "fix-config",
    plain: bool = False,
    **more: Any,
) -> Rule:
    return Rule(
        id=id or cause.replace(".", "/"),
        cause=cause,
        title=f"Title of {cause}",
        status="stable",
        severity=severity,
        confidence=confidence,
        when=more.pop("when", Leaf(FACTS.get(cause, "error.line"))),
        message="",
        why=f"Why {cause}.",
        action=action,
        not_this="",
        explains=() if plain else more.pop("explains", EXPLAINS.get(cause, ())),
        **more,
    )


def finding(
    what: str | Rule,
    *facts: Fact | list[Fact],
    support: tuple[Fact, ...] = (),
    count: int | None = None,
    **more: Any,
) -> Finding:
    flat = [one for some in facts for one in (some if isinstance(some, list) else [some])]
    made = rule(what, **more) if isinstance(what, str) else what
    return Finding(
        made, flat[0].attempt, made.confidence, tuple(flat), support, len(flat) if count is None else count, f"{made.id} happened"
    )


def steps(
    *iterations: int, at: float | None = None, every: float = 10, path: str = "train.log", rank: int | None = None
) -> tuple[StepMark, ...]:
    """Step lines, printed from ``at`` on; they stand in the file where they are written in the scenario."""
    return tuple(
        StepMark(next(_lines), path, rank, iteration, None if at is None else TEN + at + number * every)
        for number, iteration in enumerate(iterations)
    )


def failed(*marks: StepMark, status: Any = "failed") -> Timeline:
    return Timeline((AttemptInfo(1, status, None, Marks(marks)),))


@dataclass(frozen=True)
class Scenario:
    """``says``: cause -> cause that explains it, None (unexplained) or "recovered". ``root``: the root cause."""

    name: str
    findings: tuple[Finding, ...]
    root: str | None
    says: Mapping[str, str | None]
    timeline: Timeline = field(default_factory=failed)
    candidates: tuple[str, ...] = ()
    incidents: tuple[tuple[int, str | None], ...] | None = None

    def related(self) -> Related:
        return relate(self.findings, run=Run(attempts=max(1, len(self.timeline.attempts))), timeline=self.timeline)


def told(related: Related) -> dict[str, str | None]:
    """What a report says, as Scenario.says; two diagnoses of one cause are told apart by their attempt."""
    causes = {diagnosis.id: diagnosis.cause for diagnosis in related.diagnoses}
    result: dict[str, str | None] = {}
    for diagnosis in related.diagnoses:
        name = diagnosis.cause if diagnosis.cause not in result else f"{diagnosis.cause}@{diagnosis.attempt}"
        result[name] = "recovered" if diagnosis.recovered else causes[diagnosis.explained_by] if diagnosis.explained_by else None
    return result


def scenarios() -> list[Scenario]:
    oom = "oom.logits"
    late = timeouts([0, 1, 2], at=605)
    made: list[Scenario] = []

    def add(name: str, *findings: Finding, root: str | None, says: Mapping[str, str | None], **more: Any) -> None:
        made.append(Scenario(name, findings, root, says, **more))

    # --- one failure, with times -------------------------------------------------------------------------------------
    add("63 time-outs and one OOM", finding(oom, fact("cuda.oom", 7, 1)), finding("hang.straggler", timeouts([r for r in range(64) if r != 7], 602)),
        root=oom, says={oom: None, "hang.straggler": oom})  # fmt: skip
    add("the same where no rule names the time-outs", finding(oom, fact("cuda.oom", 7, 1), plain=True), finding("hang.straggler", late),
        root=oom, says={oom: None, "hang.straggler": oom})  # fmt: skip
    add("the others had entered the collective a minute before the OOM", finding(oom, fact("cuda.oom", 7, 80)), finding("hang.straggler", timeouts([0, 1], 602)),
        root=oom, says={oom: None, "hang.straggler": oom})  # fmt: skip
    add("the late rank fails five minutes after the others began to wait", finding("data.corrupt", fact("file.error", 7, 300)), finding("hang.straggler", timeouts([0, 1], 602)),
        root="data.corrupt", says={"data.corrupt": None, "hang.straggler": "data.corrupt"})  # fmt: skip
    add("an OOM minutes after the time-outs is not their cause", finding("hang.straggler", timeouts([0, 1], 600)), finding(oom, fact("cuda.oom", 7, 900)),
        root="hang.straggler", says={"hang.straggler": None, oom: None})  # fmt: skip
    add("clocks of two hosts half a minute apart", finding(oom, fact("cuda.oom", 7, 635, path="b.log", host="b")), finding("net.ib", fact("nccl.warn", 0, 603, path="a.log", host="a")),
        root=oom, says={oom: None, "net.ib": oom})  # fmt: skip
    add("half a minute is an order within one file", finding(oom, fact("cuda.oom", 7, 635)), finding("net.ib", fact("nccl.warn", 0, 603)),
        root="net.ib", says={oom: None, "net.ib": None})  # fmt: skip
    add("an Xid minutes before time-outs on other hosts", finding("gpu.xid", fact("xid", at=0, path="dmesg.txt", host="node-03")),
        finding("hang.straggler", timeouts([0, 1], 950, path="a.log", host="node-01"), timeouts([8, 9], 951, path="b.log", host="node-02")),
        root="gpu.xid", says={"gpu.xid": None, "hang.straggler": "gpu.xid"})  # fmt: skip
    add("an Xid an hour before is out of the rule's reach, yet the better evidence", finding("gpu.xid", fact("xid", at=0, path="dmesg.txt")), finding("hang.straggler", timeouts([0], 4800)),
        root="gpu.xid", says={"gpu.xid": None, "hang.straggler": "gpu.xid"})  # fmt: skip
    add("an Xid is the cause of a CUDA error on its host, which is that of time-outs", finding("gpu.xid", fact("xid", at=0, path="dmesg.txt", host="n1")),
        finding("cuda.illegal_access", fact("cuda.error", 3, 2, path="a.log", host="n1")), finding("hang.straggler", timeouts([0, 1], 610, path="b.log", host="n2")),
        root="gpu.xid", says={"gpu.xid": None, "cuda.illegal_access": "gpu.xid", "hang.straggler": "gpu.xid"})  # fmt: skip
    add("an Xid on another host has nothing to do with a CUDA error", finding("cuda.illegal_access", fact("cuda.error", 3, 2, host="n1")),
        finding("gpu.xid", fact("xid", at=90, path="dmesg.txt", host="n2")),
        root="cuda.illegal_access", says={"cuda.illegal_access": None, "gpu.xid": None})  # fmt: skip
    add("a kernel log with a zone does not compare with a log without", finding("gpu.xid", fact("xid", at=7200, path="dmesg.txt", host="n1", zone="+02:00")),
        finding("cuda.illegal_access", fact("cuda.error", 3, 2, host="n1")),
        root="gpu.xid", says={"gpu.xid": None, "cuda.illegal_access": "gpu.xid"})  # fmt: skip
    add("network errors after the death of a rank", finding(oom, fact("cuda.oom", 7, 1)), finding("net.ib", fact("nccl.warn", 0, 30)), finding("net.socket", fact("peer.gone", 1, 2)),
        root=oom, says={oom: None, "net.ib": oom, "net.socket": oom})  # fmt: skip
    add("a network error, then time-outs, then closed sockets", finding("net.ib", fact("nccl.warn", 4, 10)), finding("hang.straggler", timeouts([0, 1], 611)), finding("net.socket", fact("peer.gone", 2, 612)),
        root="net.ib", says={"net.ib": None, "hang.straggler": "net.ib", "net.socket": "hang.straggler"})  # fmt: skip
    add("two errors of one tier: the first is the cause", finding("data.missing", fact("file.error", 3, 100)), finding("ckpt.missing", fact("checkpoint.error", 2, 50)),
        root="ckpt.missing", says={"ckpt.missing": None, "data.missing": None})  # fmt: skip
    add("two errors at one moment: the better supported is the cause", finding("env.limits", fact("env.error", 3, 50, line=9001), confidence="possible"),
        finding("data.missing", fact("file.error", 2, 50, line=9001), confidence="certain"),
        root="data.missing", says={"data.missing": None, "env.limits": None})  # fmt: skip

    # --- without times ------------------------------------------------------------------------------------------------
    add(
        "no times, the OOM first",
        finding(oom, fact("cuda.oom", 7)),
        finding("hang.straggler", timeouts([0, 1])),
        root=oom,
        says={oom: None, "hang.straggler": oom},
    )
    add("no times, the OOM printed late because of buffering", finding("hang.straggler", timeouts([0, 1])), finding(oom, fact("cuda.oom", 7)),
        root=oom, says={oom: None, "hang.straggler": oom})  # fmt: skip
    add("a traceback without time, printed after stamped time-outs", finding("hang.straggler", timeouts([0, 1], 605)), finding(oom, fact("cuda.oom", 7, after=606)),
        root=oom, says={oom: None, "hang.straggler": oom})  # fmt: skip
    add("a file a rank, none with times", finding("hang.straggler", timeouts([0], path="0.log"), timeouts([1], path="1.log")), finding(oom, fact("cuda.oom", 2, path="2.log")),
        root=oom, says={oom: None, "hang.straggler": oom})  # fmt: skip
    add("four tiers without times", finding("job.unexplained", fact("run.ended")), finding("net.socket", fact("peer.gone", 4)), finding("hang.straggler", timeouts([3])),
        finding("hang.desync", fact("collective.mismatch", 2)), finding("net.ib", fact("nccl.warn", 1)), finding("env.driver_old", fact("env.error", 0)),
        root="env.driver_old", says={"env.driver_old": None, "net.ib": "env.driver_old", "hang.desync": "net.ib", "hang.straggler": "net.ib", "net.socket": "hang.straggler",
                                    })  # fmt: skip
    add("mismatch before time-out", finding("hang.straggler", timeouts([0, 1])), finding("hang.desync", fact("collective.mismatch", 0)),
        root="hang.desync", says={"hang.desync": None, "hang.straggler": "hang.desync"})  # fmt: skip

    # --- killed from outside --------------------------------------------------------------------------------------------
    dying = (
        finding("job.code", fact("exception", 3, 4)),
        finding("net.socket", fact("peer.gone", 5, 3)),
        finding("job.native_crash", fact("native.crash", 2, 5)),
    )
    add("killed by the scheduler, then everything dies", finding("job.killed", fact("scheduler", at=0)), *dying, timeline=failed(status="killed"),
        root="job.killed", says={"job.killed": None, "job.code": "job.killed", "net.socket": "job.killed", "job.native_crash": "job.killed"})  # fmt: skip
    add("network errors of a dying job do not blame the network", finding("job.killed", fact("scheduler", at=0)), finding("net.ib", fact("nccl.warn", 1, 4)), timeline=failed(status="killed"),
        root="job.killed", says={"job.killed": None, "net.ib": "job.killed"})  # fmt: skip
    add("an OOM, then the scheduler kills what is left", finding(oom, fact("cuda.oom", 1, 0)), finding("job.killed", fact("scheduler", at=20)), timeline=failed(status="killed"),
        root=oom, says={oom: None, "job.killed": oom})  # fmt: skip
    add("an OOM a minute after the kill is none of its making", finding("job.killed", fact("scheduler", at=0)), finding(oom, fact("cuda.oom", 1, 70)), timeline=failed(status="killed"),
        root="job.killed", says={"job.killed": None, oom: None})  # fmt: skip
    add("a hang that its user ended", finding("hang.straggler", timeouts([0, 1])), finding("job.killed", fact("scheduler")), timeline=failed(status="killed"),
        root="hang.straggler", says={"hang.straggler": None, "job.killed": "hang.straggler"})  # fmt: skip
    add("a diverged run that its user ended", finding("nan.divergence", fact("series.numerics", at=10)), finding("job.killed", fact("scheduler", at=9000)),
        timeline=failed(*steps(10, 20, 30, at=100), status="killed"),
        root="nan.divergence", says={"nan.divergence": None, "job.killed": "nan.divergence"})  # fmt: skip

    # --- no better cause ------------------------------------------------------------------------------------------------
    add("an exception of one's own leaves the others waiting", finding("job.code", fact("exception", 1)), finding("hang.straggler", timeouts([0, 2, 3])),
        root="job.code", says={"job.code": None, "hang.straggler": "job.code"})  # fmt: skip
    add("the rank that timed out raises afterwards", finding("hang.straggler", timeouts([0, 1, 2])), finding("job.code", fact("exception", 1), plain=True),
        root="hang.straggler", says={"hang.straggler": None, "job.code": "hang.straggler"})  # fmt: skip
    add("an exception long after the time-outs", finding("hang.straggler", timeouts([0, 1], 600)), finding("job.code", fact("exception", 7, 700)),
        root="hang.straggler", says={"hang.straggler": None, "job.code": "hang.straggler"})  # fmt: skip
    add("an exception while the others wait", finding("hang.straggler", timeouts([0, 1], 600)), finding("job.code", fact("exception", 7, 20), plain=True),
        root="job.code", says={"hang.straggler": "job.code", "job.code": None})  # fmt: skip
    add("an abort after the time-out of the same rank", finding("hang.straggler", timeouts([0, 1], 600)), finding("job.native_crash", fact("native.crash", 1, 602)),
        root="hang.straggler", says={"hang.straggler": None, "job.native_crash": "hang.straggler"})  # fmt: skip
    add("a crash of the one rank that reported nothing", finding("hang.straggler", timeouts([0, 1])), finding("job.native_crash", fact("native.crash", 2)),
        root="job.native_crash", says={"job.native_crash": None, "hang.straggler": "job.native_crash"})  # fmt: skip
    add("a crash of nobody knows whom, in another file", finding("hang.straggler", timeouts([0, 1])), finding("job.native_crash", fact("native.crash", path="slurm.err")),
        root="hang.straggler", says={"hang.straggler": None, "job.native_crash": "hang.straggler"})  # fmt: skip
    add("an exception of nobody knows whom, in another file", finding("hang.straggler", timeouts([0, 1])), finding("job.code", fact("exception", path="slurm.err"), plain=True),
        root="job.code", says={"job.code": None, "hang.straggler": "job.code"})  # fmt: skip
    add("weak against weak: the crash closed the socket", finding("net.socket", fact("peer.gone", 0)), finding("job.native_crash", fact("native.crash", 1)),
        root="job.native_crash", says={"job.native_crash": None, "net.socket": "job.native_crash"})  # fmt: skip
    add("weak against weak: the exception, then the abort at exit", finding("job.native_crash", fact("native.crash", 1)), finding("job.code", fact("exception", 1)),
        root="job.code", says={"job.code": None, "job.native_crash": "job.code"})  # fmt: skip
    add("weak against weak: a dead rank before closed sockets", finding("net.socket", fact("peer.gone", 0, 5)), finding("hang.rank_died", timeouts([0], 605)),
        root="hang.rank_died", says={"hang.rank_died": None, "net.socket": "hang.rank_died"})  # fmt: skip
    add("a dead rank whose own crash is in the log", finding("hang.rank_died", timeouts([0, 1], 605)), finding("oom.host", fact("host.oom", 3, 1)),
        root="oom.host", says={"oom.host": None, "hang.rank_died": "oom.host"})  # fmt: skip
    add("an NCCL error that its rule puts before time-outs", finding("nccl.internal", fact("nccl.error", 3, 4)), finding("hang.straggler", timeouts([0, 1], 605)),
        root="nccl.internal", says={"nccl.internal": None, "hang.straggler": "nccl.internal"})  # fmt: skip
    add("an NCCL error in the wake of time-outs", finding("hang.straggler", timeouts([0, 1])), finding("nccl.internal", fact("nccl.error", 0)),
        root="hang.straggler", says={"nccl.internal": "hang.straggler", "hang.straggler": None})  # fmt: skip
    add(
        "an exit code and an OOM",
        finding("job.unexplained", fact("run.ended", 1)),
        finding(oom, fact("cuda.oom", 1)),
        root=oom,
        says={oom: None},
    )
    add("only an exit code", finding("job.unexplained", fact("run.ended", 1)), root="job.unexplained", says={"job.unexplained": None})
    add("a socket that was reset early does not outweigh an OOM", finding("net.socket", fact("peer.gone", 0, 0)), finding(oom, fact("cuda.oom", 1, 900)),
        root=oom, says={oom: None, "net.socket": None})  # fmt: skip

    # --- recovered ------------------------------------------------------------------------------------------------------
    early, marks = fact("cuda.oom", 7), steps(100, 101, 102)
    add(
        "an OOM that the run got over",
        finding(oom, early),
        timeline=failed(*marks, status="completed"),
        root=None,
        says={oom: "recovered"},
        incidents=(),
    )
    add("progress counts in a failed run too", finding(oom, early), finding("disk.full", fact("file.error", 0)), timeline=failed(*marks),
        root="disk.full", says={"disk.full": None, oom: "recovered"})  # fmt: skip
    last, one = fact("cuda.oom", 7), steps(100)
    add("one step line after an error proves nothing", finding(oom, last), timeline=failed(*one), root=oom, says={oom: None})
    again, same = fact("cuda.oom", 7), steps(100, 100, 100)
    add("step lines that do not grow are no progress", finding(oom, again), timeline=failed(*same), root=oom, says={oom: None})
    add(
        "a completed attempt got over everything",
        finding("net.ib", fact("nccl.warn", 7, 5000)),
        timeline=failed(status="completed"),
        root=None,
        says={"net.ib": "recovered"},
    )
    add("NaN is a state: step lines go on with it", finding("nan.divergence", fact("series.numerics", line=1)), timeline=failed(*steps(100, 101), status="completed"),
        root="nan.divergence", says={"nan.divergence": None}, incidents=((1, "nan.divergence"),))  # fmt: skip
    nan, marks = fact("series.numerics"), steps(100, 101)
    add("NaN for hours, then the network breaks", finding("nan.divergence", nan), finding("net.ib", fact("nccl.warn", 3)), timeline=failed(*marks),
        root="net.ib", says={"net.ib": None, "nan.divergence": None})  # fmt: skip
    other = fact("cuda.oom", 7, 100, path="rank7.log")
    add(
        "progress in another file, by the clock",
        finding(oom, other),
        timeline=failed(*steps(1, 2, 3, at=170, path="rank0.log")),
        root=None,
        says={oom: "recovered"},
    )
    add("progress in another file within the skew of clocks", finding(oom, fact("cuda.oom", 7, 100, path="rank7.log")), timeline=failed(*steps(1, 2, 3, at=105, path="rank0.log")),
        root=oom, says={oom: None})  # fmt: skip
    add("another rank's step lines do not count where the rank has its own", finding(oom, fact("cuda.oom", 7, line=50)),
        timeline=failed(*(StepMark(n, "train.log", 7, n, None) for n in (10, 20)), *(StepMark(n, "train.log", 0, n, None) for n in (60, 70, 80))),
        root=oom, says={oom: None})  # fmt: skip
    add("files joined one after the other: the times speak against progress", finding(oom, fact("cuda.oom", 7, 100, line=50)),
        timeline=failed(*(StepMark(n, "train.log", None, n, TEN + n - 60) for n in (60, 70, 80))), root=oom, says={oom: None})  # fmt: skip
    add("a warning is not recovered", finding("net.fallback", early, severity="warning"), timeline=failed(*marks, status="completed"), root="net.fallback",
        says={"net.fallback": None}, incidents=())  # fmt: skip

    # --- several attempts -------------------------------------------------------------------------------------------------
    tries = tuple(AttemptInfo(number, "failed") for number in (1, 2, 3))
    add("three restarts with one cause", *(finding(oom, fact("cuda.oom", 7, 1000 * n, attempt=n)) for n in (1, 2, 3)), timeline=Timeline(tries),
        root=oom, says={oom: None, f"{oom}@1": None, f"{oom}@2": None}, incidents=((1, oom), (2, oom), (3, oom)))  # fmt: skip
    add("three restarts, three causes: the last counts", finding(oom, fact("cuda.oom", 7, 0, attempt=1)), finding("net.ib", fact("nccl.warn", 7, 1000, attempt=2)),
        finding("disk.full", fact("file.error", 0, 2000, attempt=3)), timeline=Timeline(tries),
        root="disk.full", says={"disk.full": None, oom: None, "net.ib": None}, incidents=((1, oom), (2, "net.ib"), (3, "disk.full")))  # fmt: skip
    add("nothing is explained across attempts", finding(oom, fact("cuda.oom", 7, 0, attempt=1)), finding("hang.straggler", timeouts([0], 1700, attempt=2)),
        timeline=Timeline(tries[:2]), root="hang.straggler", says={oom: None, "hang.straggler": None}, incidents=((1, oom), (2, "hang.straggler")))  # fmt: skip
    add("the second attempt fails by what the first left", finding(oom, fact("cuda.oom", 7, 0, attempt=1)), finding("job.port_in_use", fact("port.in_use", 0, 100, attempt=2)),
        timeline=Timeline((AttemptInfo(1, "failed"), AttemptInfo(2, "failed", debris_of=1))),
        root=oom, says={oom: None, "job.port_in_use": oom}, incidents=((1, oom),))  # fmt: skip
    add("debris of debris", finding(oom, fact("cuda.oom", 7, 0, attempt=1)), finding("job.port_in_use", fact("port.in_use", 0, 100, attempt=2)), finding("hang.rendezvous", fact("rendezvous.error", 0, 200, attempt=3)),
        timeline=Timeline((AttemptInfo(1, "failed"), AttemptInfo(2, "failed", debris_of=1), AttemptInfo(3, "failed", debris_of=2))),
        root=oom, says={oom: None, "job.port_in_use": oom, "hang.rendezvous": oom}, incidents=((1, oom),))  # fmt: skip
    add("debris of an attempt of which nothing is known", finding("job.port_in_use", fact("port.in_use", 0, 100, attempt=2)),
        timeline=Timeline((AttemptInfo(1, "failed"), AttemptInfo(2, "failed", debris_of=1))),
        root="job.port_in_use", says={"job.port_in_use": None}, incidents=((1, None), (2, "job.port_in_use")))  # fmt: skip
    add("a failure, then a try that completes", finding(oom, fact("cuda.oom", 7, 0, attempt=1)), timeline=Timeline((AttemptInfo(1, "failed"), AttemptInfo(2, "completed"))),
        root=oom, says={oom: None}, incidents=((1, oom),))  # fmt: skip

    # --- competition --------------------------------------------------------------------------------------------------------
    event = fact("cuda.oom", 7, 1, event="e1")
    add(
        "one event, two hypotheses: the surer",
        finding(oom, event),
        finding("oom.activations", event, confidence="possible"),
        root=oom,
        says={oom: None},
    )
    add(
        "one event, equally sure: over",
        finding(oom, event, over=("oom/activations",)),
        finding("oom.activations", event),
        root=oom,
        says={oom: None},
    )
    add("over is no match for confidence", finding(oom, event, over=("oom/activations",), confidence="possible"), finding("oom.activations", event, confidence="certain"),
        root="oom.activations", says={"oom.activations": None})  # fmt: skip
    add("two that are possible: one is the candidate", finding(oom, event, confidence="possible", over=("oom/*",)), finding("oom.activations", event, confidence="possible"),
        root=oom, says={oom: None}, candidates=("oom.activations",))  # fmt: skip
    add(
        "no candidates beside a likely cause",
        finding(oom, event),
        finding("oom.activations", event, confidence="possible"),
        root=oom,
        says={oom: None},
        candidates=(),
    )
    add(
        "two rules of one cause: one is kept",
        finding(oom, event),
        finding(oom, event, id="oom/logits_too", confidence="certain"),
        root=oom,
        says={oom: None},
    )
    add(
        "a solid cause beats a certain one that means no better",
        finding("job.code", event, confidence="certain"),
        finding("nan.data", event),
        root="nan.data",
        says={"nan.data": None},
    )
    add(
        "even a guess beats an exception of which nothing else is known, which it leaves as the candidate",
        finding("job.code", event, confidence="certain"),
        finding("oom.activations", event, confidence="possible"),
        root="oom.activations",
        says={"oom.activations": None},
        candidates=("job.code",),
    )
    add(
        "a guess does not beat a death that was seen",
        finding("hang.rank_died", event),
        finding("hang.straggler", event, confidence="possible"),
        root="hang.rank_died",
        says={"hang.rank_died": None},
    )
    add(
        "a guess that is only a warning beats nothing",
        finding("job.code", event),
        finding("net.fallback", event, confidence="possible", severity="warning"),
        root="job.code",
        says={"job.code": None},
    )
    add("a warning does not take an event from an error", finding("loss.spike", event, severity="warning", confidence="certain"), finding("nan.divergence", event),
        root="nan.divergence", says={"nan.divergence": None})  # fmt: skip
    rest = timeouts([1, 2], 605)
    add("a loser keeps the events that nobody else claims", finding("hang.straggler", event, rest, plain=True), finding("hang.desync", event, over=("hang/straggler",)),
        root="hang.desync", says={"hang.desync": None, "hang.straggler": "hang.desync"})  # fmt: skip

    # --- nothing severe -------------------------------------------------------------------------------------------------------
    add("nothing", root=None, says={}, timeline=failed(status="completed"), incidents=())
    add(
        "only notes",
        finding("net.fallback", fact("nccl.info"), severity="note"),
        root=None,
        says={"net.fallback": None},
        timeline=failed(status="completed"),
        incidents=(),
    )
    add("the worst warning", finding("config.risky", fact("run.args", at=0), severity="warning", confidence="possible"),
        finding("gpu.throttle", fact("gpu.state", at=5), severity="warning"), timeline=failed(status="running"),
        root="gpu.throttle", says={"gpu.throttle": None, "config.risky": None}, incidents=())  # fmt: skip
    add("a warning explains no error", finding("net.fallback", fact("nccl.info", at=0), severity="warning", explains=(Explains("hang.*", "job"),)), finding("hang.straggler", timeouts([0], 605)),
        root="hang.straggler", says={"hang.straggler": None, "net.fallback": None})  # fmt: skip
    add("an error explains a warning that its rule names", finding("net.plugin", fact("nccl.warn", at=0), explains=(Explains("net.fallback", "job"),)),
        finding("net.fallback", fact("nccl.info", at=1), severity="warning"), root="net.plugin", says={"net.plugin": None, "net.fallback": "net.plugin"})  # fmt: skip
    add(
        "a failure without an error: its warning",
        finding("config.risky", fact("run.args"), severity="warning"),
        root="config.risky",
        says={"config.risky": None},
        incidents=((1, "config.risky"),),
    )
    add(
        "a spike is no root cause of a failure",
        finding("loss.spike", fact("series.numerics"), severity="warning"),
        root="loss.spike",
        says={"loss.spike": None},
        incidents=((1, None),),
    )
    return made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
class TestScenarios:
    def test_what_is_said(self, scenario: Scenario) -> None:
        related = scenario.related()
        assert related.root_cause == scenario.root
        assert told(related) == dict(scenario.says)
        assert related.candidates == scenario.candidates
        if scenario.incidents is not None:
            assert tuple((incident.attempt, incident.root_cause) for incident in related.incidents) == scenario.incidents

    def test_order_of_findings_does_not_matter(self, scenario: Scenario) -> None:
        shuffled = list(scenario.findings)
        random.Random(7).shuffle(shuffled)
        for findings in (shuffled, scenario.findings[::-1]):
            assert replace(scenario, findings=tuple(findings)).related() == scenario.related()

    def test_ids_lead_with_the_root_cause(self, scenario: Scenario) -> None:
        related = scenario.related()
        assert [diagnosis.id for diagnosis in related.diagnoses] == [f"d{number}" for number in range(1, len(related.diagnoses) + 1)]
        if scenario.root is not None:
            assert related.diagnoses[0].cause == scenario.root
            assert related.diagnoses[0].explained_by is None
            assert related.confidence == related.diagnoses[0].confidence
            assert related.action == related.diagnoses[0].action
        else:
            assert (related.confidence, related.action, related.hosts_to_exclude) == (None, None, ())
        order = {"error": 0, "warning": 1, "note": 2}
        ranks = [(order[diagnosis.severity], diagnosis.explained_by is not None) for diagnosis in related.diagnoses[1:]]
        assert ranks == sorted(ranks)


NO_TIMES = [scenario for scenario in scenarios() if "no times" in scenario.name or "four tiers" in scenario.name]


@pytest.mark.parametrize("scenario", NO_TIMES, ids=lambda scenario: scenario.name)
def test_without_times_any_order_of_lines_gives_one_answer(scenario: Scenario) -> None:
    for seed in range(10):
        lines = list(range(1, 1 + sum(len(made.facts) for made in scenario.findings)))
        random.Random(seed).shuffle(lines)
        moved = []
        for made in scenario.findings:
            facts = tuple(replace(one, seq=(number := lines.pop()), origin=replace(one.origin, line=number)) for one in made.facts)
            moved.append(replace(made, facts=facts))
        assert replace(scenario, findings=tuple(moved)).related().root_cause == scenario.root


def test_ranks_hosts_times_and_counts_are_merged() -> None:
    made = finding(
        "hang.straggler",
        [
            fact("watchdog.timeout", rank, 600 + rank, limit=600, host=f"n{rank // 8}", iteration=1200 + (rank == 3))
            for rank in (9, 3, 1, 3)
        ],
        count=70,
    )
    (diagnosis,) = relate([made], run=Run(), timeline=failed()).diagnoses
    assert diagnosis.ranks == (1, 3, 9)
    assert diagnosis.hosts == ("n0", "n1")
    assert diagnosis.count == 70
    assert diagnosis.first_time == stamp(601)
    assert diagnosis.iteration == 1200
    assert [evidence.rank for evidence in diagnosis.evidence] == [1, 3, 9, 3]


def test_sixty_three_ranks_are_one_diagnosis() -> None:
    related = next(scenario for scenario in scenarios() if scenario.name.startswith("63")).related()
    assert [(len(diagnosis.ranks), diagnosis.count) for diagnosis in related.diagnoses] == [(1, 1), (63, 63)]
    assert related.diagnoses[1].explained_by == "d1"
    assert len(related.diagnoses[1].evidence) == 5
    assert related.incidents[0].diagnoses == ("d1", "d2")


def test_a_launcher_line_is_about_the_rank_it_names() -> None:
    (diagnosis,) = relate([finding("oom.host", fact("process.exit", None, of_rank=5))], run=Run(), timeline=failed()).diagnoses
    assert diagnosis.ranks == (5,)


def test_missing_ranks_are_the_ones_at_fault() -> None:
    made = finding("hang.straggler", fact("collective.timeout", 0, missing_ranks=("3", "1"), limit=30))
    (diagnosis,) = relate([made], run=Run(), timeline=failed()).diagnoses
    assert diagnosis.ranks == (1, 3)
    assert diagnosis.evidence[0].rank == 0


def test_evidence_is_stripped_cut_and_at_most_five() -> None:
    events = [fact("cuda.oom", rank, 1, text=f"   {'x' * 500}  \n") for rank in (1, 1, 1, 2, 2, 3)]
    support = tuple(fact("process.exit", None, 9, text=f"exit {number}") for number in range(4))
    (diagnosis,) = relate([finding("oom.logits", events, support=support)], run=Run(), timeline=failed()).diagnoses
    assert [evidence.rank for evidence in diagnosis.evidence] == [1, 2, 3, None, None]
    assert diagnosis.evidence[0].text == "x" * 400
    assert [evidence.text for evidence in diagnosis.evidence[3:]] == ["exit 0", "exit 1"]


def test_a_fact_that_the_run_got_over_is_not_the_onset_of_one_it_did_not() -> None:
    first, marks, last = fact("cuda.oom", 7, 10, iteration=99), steps(100, 101, at=20), fact("cuda.oom", 3, 200, iteration=101)
    (diagnosis,) = relate([finding("oom.logits", first, last)], run=Run(), timeline=failed(*marks)).diagnoses
    assert (diagnosis.recovered, diagnosis.severity) == (False, "error")
    assert (diagnosis.ranks, diagnosis.first_time, diagnosis.iteration, diagnosis.count) == ((3,), stamp(200), 101, 2)
    assert [evidence.rank for evidence in diagnosis.evidence] == [3, 7]


@pytest.mark.parametrize(
    ("frameworks", "shown"),
    [
        ((), ["any", "meg", "ds", "hf"]),
        (("nccl",), ["any", "meg", "ds", "hf"]),
        (("megatron-lm", "nccl"), ["any", "meg"]),
        (("deepspeed", "transformers"), ["any", "ds", "hf"]),
        (("megatron-deepspeed",), ["any", "meg", "ds"]),
    ],
)
def test_fixes_suit_the_framework(frameworks: tuple[str, ...], shown: list[str]) -> None:
    from memdoctor.model import Fix

    fixes = (
        Fix("any", "a"),
        Fix("meg", "b", framework="megatron-lm"),
        Fix("ds", "c", framework="deepspeed"),
        Fix("hf", "d", framework="transformers"),
    )
    (diagnosis,) = relate(
        [finding("oom.logits", fact("cuda.oom", 7), fixes=fixes)], run=Run(frameworks=frameworks), timeline=failed()
    ).diagnoses
    assert [fix.id for fix in diagnosis.fixes] == shown


@pytest.mark.parametrize(
    ("action", "hosts"), [("exclude-hosts", ("n1", "n2")), ("call-hardware", ("n1", "n2")), ("restart", ()), ("fix-config", ())]
)
def test_hosts_to_exclude(action: str, hosts: tuple[str, ...]) -> None:
    made = finding("gpu.xid", fact("xid", at=0, host="n2"), fact("xid", at=1, host="n1"), action=action)
    related = relate([made, finding("hang.straggler", timeouts([0], 610, host="n3"))], run=Run(), timeline=failed())
    assert (related.action, related.hosts_to_exclude) == (action, hosts)


def test_no_host_is_left_out_on_a_guess() -> None:
    made = finding("gpu.xid", fact("xid", at=0, host="n2"), action="exclude-hosts")
    assert relate([replace(made, confidence="likely")], run=Run(), timeline=failed()).hosts_to_exclude == ("n2",)
    assert relate([replace(made, confidence="possible")], run=Run(), timeline=failed()).hosts_to_exclude == ()


def test_a_finding_of_no_attempt_is_told_to_the_one_that_failed() -> None:
    xid = replace(finding("gpu.xid", fact("xid", at=None, host="n1", path="dmesg.txt")), attempt=0)
    timeline = Timeline((AttemptInfo(1, "failed"), AttemptInfo(2, "completed")))
    related = relate([xid, finding("hang.straggler", timeouts([0], 610))], run=Run(attempts=2), timeline=timeline)
    assert told(related) == {"gpu.xid": None, "hang.straggler": "gpu.xid"}
    assert related.incidents[0].diagnoses == ("d1", "d2")


def test_rules_that_explain_each_other_make_no_circle() -> None:
    both = [
        finding(rule(cause, explains=(Explains("*", "job"),)), fact("error.line", rank))
        for rank, cause in enumerate(("hang.desync", "hang.straggler", "net.ib", "oom.logits", "job.code"))
    ]
    related = relate(both, run=Run(), timeline=failed())
    parents = {diagnosis.id: diagnosis.explained_by for diagnosis in related.diagnoses}
    assert related.root_cause == "oom.logits"
    for start in parents:
        seen, at = set(), start
        while (above := parents[at]) is not None:
            assert above not in seen
            seen.add(above)
            at = above
        assert at == "d1"


def test_ring_of_named_causes_is_cut() -> None:
    ring = ("data.missing", "ckpt.missing", "env.limits")
    made = [finding(rule(cause, explains=(Explains(ring[(n + 1) % 3], "job"),)), fact("error.line", n)) for n, cause in enumerate(ring)]
    assert told(relate(made, run=Run(), timeline=failed())) == {
        "data.missing": None,
        "ckpt.missing": "data.missing",
        "env.limits": "ckpt.missing",
    }


def test_no_timeline_at_all() -> None:
    related = relate([finding("oom.logits", fact("cuda.oom", 7))], run=Run(), timeline=Timeline())
    assert (related.root_cause, related.incidents[0].attempt) == ("oom.logits", 1)


def test_what_explains_an_unexplained_end_explains_its_consequences() -> None:
    end = finding("job.unexplained", fact("run.ended", at=5), explains=(Explains("net.fallback", "job"),))
    related = relate(
        [
            finding("oom.logits", fact("cuda.oom", 7, 1), plain=True),
            end,
            finding("net.fallback", fact("nccl.info", at=6), severity="warning"),
        ],
        run=Run(),
        timeline=failed(),
    )
    assert told(related) == {"oom.logits": None, "net.fallback": "oom.logits"}
    assert related.incidents[0].diagnoses == ("d1", "d2")
