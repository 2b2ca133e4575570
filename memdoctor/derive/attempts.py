"""Attempts: a job that is restarted writes on into the same logs; which line belongs to which try.

Each file is cut into segments where a start line follows a failure or progress, and where one launcher reports a second failure.
Files with as many segments as the job has attempts count them alike; the others follow the clock of the best-cut file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memdoctor.model import Fact, FileRead, Stamp

Key = tuple[str, str, int | None, int]
LAUNCHER_FAILED = "process.exit"
DYING = 120.0  # seconds that the last words of one process may take (a dump of the flight recorder, then the abort)
_ENDS_PROCESS = ("exception", "watchdog.timeout", "native.crash")


def number_attempts(facts: Sequence[Fact], files: Sequence[FileRead]) -> tuple[list[Fact], Mapping[int, list[int]]]:
    """Facts with their attempt (1-based), and per file number the ``seq`` at which its second, third, … attempt begins."""
    by_file: dict[int, list[Fact]] = {file.number: [] for file in files}
    for fact in facts:
        by_file.setdefault(fact.seq >> 44, []).append(fact)
    cuts = {file.number: _cuts(by_file[file.number]) for file in files}
    most = max((len(cut) for cut in cuts.values()), default=0)
    clock = _clock(cuts, by_file, most)
    for file in files:
        if file.rank is not None and len(cuts[file.number]) < most:
            deaths = _deaths(by_file[file.number])
            if len(deaths) == most:
                cuts[file.number] = deaths
    placed: dict[int, list[int]] = {}
    result: list[Fact] = []
    for file in files:
        own = cuts[file.number]
        base = (file.attempt or 1) - 1
        starts = list(own)
        for fact in by_file[file.number]:
            stamp = fact.time or fact.after
            if file.attempt is None and len(own) < most and clock and stamp is not None:
                attempt = bisect_right(clock, stamp.epoch) + 1
            elif file.attempt is None and len(own) < most and not own:
                attempt = most + 1
            else:
                attempt = base + bisect_right(own, fact.seq) + 1
            result.append(fact if fact.attempt == attempt else replace(fact, attempt=attempt))
        placed[file.number] = starts
    result.sort(key=lambda fact: fact.seq)
    return result, placed


def _cuts(facts: Sequence[Fact]) -> list[int]:
    """Where in one file a new attempt begins, as seq of its first line."""
    cuts: set[int] = set()
    last = 1
    for fact in facts:
        if fact.attempt > last:
            cuts.add(fact.seq)
            last = fact.attempt
    failed: dict[int, Fact] = {}
    for fact in facts:
        agent = fact.fields.get("agent_pid") or (fact.fields.get("pid") if fact.fields.get("of_pid") is not None else None)
        if fact.kind != LAUNCHER_FAILED or agent is None or fact.fields.get("exitcode") is None or fact.fields.get("name") != "failed":
            continue
        before = failed.get(agent)
        if before is not None and not any(before.seq < cut <= fact.seq for cut in cuts) and _apart(before, fact):
            cuts.add(before.seq + 1)
        failed[agent] = fact
    return sorted(cuts)


def _deaths(facts: Sequence[Fact]) -> list[int]:
    """Where a new process begins in the file of one rank that prints no start line: after each event that ends a process."""
    cuts: list[int] = []
    dead: Fact | None = None
    last = 0
    for fact in facts:
        if dead is not None and (fact.event == dead.event or (fact.kind in _ENDS_PROCESS and not _apart(dead, fact, DYING))):
            last = fact.seq
        elif fact.kind in _ENDS_PROCESS:
            if dead is not None:
                cuts.append(last + 1)
            dead, last = fact, fact.seq
    return cuts


def _apart(first: Fact, second: Fact, seconds: float = 1.0) -> bool:
    """True where two failures that one launcher reports are two rounds, not two workers of one (or two lives of one rank)."""
    if first.time is not None and second.time is not None:
        return second.time.epoch - first.time.epoch > seconds
    return first.fields.get("local") == second.fields.get("local")


def _clock(cuts: Mapping[int, list[int]], by_file: Mapping[int, Sequence[Fact]], most: int) -> list[float]:
    """Times at which the second, third, … attempt begins, from the file that shows most of them; empty where it has no times."""
    for number, own in cuts.items():
        if len(own) != most or not own:
            continue
        times: list[float] = []
        for cut in own:
            stamp: Stamp | None = next(
                (fact.time or fact.after for fact in by_file[number] if fact.seq >= cut and (fact.time or fact.after)), None
            )
            if stamp is None:
                break
            times.append(stamp.epoch)
        if len(times) == most and times == sorted(times):
            return times
    return []


def recount(counts: Mapping[Key, int], before: Sequence[Fact], after: Sequence[Fact]) -> dict[Key, int]:
    """Exact counts by attempt of the job, from those by attempt within each file: kept facts go with their attempt, the rest stays."""
    result = dict(counts)
    for old, new in zip(before, after, strict=True):
        name = str(old.fields.get("name", ""))
        result[(old.kind, name, old.rank, old.attempt)] -= 1
        key = (new.kind, name, new.rank, new.attempt)
        result[key] = result.get(key, 0) + 1
    return {key: count for key, count in result.items() if count > 0}
