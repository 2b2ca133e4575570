"""Attempts: a job that is restarted writes on into the same logs; which line belongs to which try.

Each file is cut into segments where a start line follows a failure or progress, and where one launcher reports a second failure.
Files with as many segments as the job has attempts count them alike; the others follow the clock of the best-cut file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter

from memdoctor.catalog import ABORTS, SEVERAL, ends_job
from memdoctor.derive.lives import aborts, collectives, lives
from memdoctor.model import Fact, FileRead, Stamp

Key = tuple[str, str, int | None, int]
Parts = Sequence[tuple[int, int]]  # of a file: the seq at which each part of it begins, and the attempt it belongs to
LAUNCHER_FAILED = "process.exit"
_OF_LAUNCHERS = (LAUNCHER_FAILED, "scheduler")
SIGNS = ("sign", "traced")  # names of start lines that each rank prints, or that are not only printed at a start
_seq = attrgetter("seq")
ROUND = 1.0  # seconds within which one launcher reports the workers of one round


def number_attempts(facts: Sequence[Fact], files: Sequence[FileRead]) -> tuple[list[Fact], Mapping[int, Parts]]:
    """Facts with their attempt (1-based), and per file number its parts."""
    by_file: dict[int, list[Fact]] = {file.number: [] for file in files}
    for fact in facts:
        by_file.setdefault(fact.seq >> 44, []).append(fact)
    cuts = {file.number: _cuts(file, by_file[file.number]) for file in files}
    most = max((len(cut) for cut in cuts.values()), default=0)
    if not most and len(files) > 1:
        most = _agreed(files, by_file)
    clock = _clock(cuts, by_file, most)
    ended = {
        file.number: lives(by_file[file.number], most)
        for file in files
        if file.attempt is None and len(cuts[file.number]) < most and _of_one_process(file, by_file[file.number])
    }
    cuts.update((number, own) for number, own in ended.items() if len(own) == most)
    named = _collectives(cuts, by_file, most) if any(len(own) != most for own in ended.values()) else {}
    placed: dict[int, Parts] = {}
    result: list[Fact] = []
    for file in files:
        own, of_file = cuts[file.number], by_file[file.number]
        parts: Parts = [
            ((file.number << 44) if not number else own[number - 1], (file.attempt or 1) + number) for number in range(len(own) + 1)
        ]
        by_time = file.attempt is None and len(own) < most
        if by_time and file.number in ended:
            parts = _of_lives(ended[file.number], of_file, file.number << 44, clock, named, most + 1)
        elif by_time and not own:
            parts = [(file.number << 44, most + 1)]
        begins = [seq for seq, _ in parts]
        reached = 1
        for fact in of_file:
            reached = max(reached, fact.attempt)
            stamp = fact.time if file.number in ended else fact.time or fact.after
            if by_time and clock and stamp is not None:
                attempt = bisect_right(clock, stamp.epoch) + 1
            else:
                late = reached - fact.attempt  # a node that had not yet restarted
                attempt = max(1, parts[max(0, bisect_right(begins, fact.seq) - 1)][1] - late)
            result.append(fact if fact.attempt == attempt else replace(fact, attempt=attempt))
        placed[file.number] = parts
    result.sort(key=lambda fact: fact.seq)
    return result, placed


def _of_one_process(file: FileRead, facts: Sequence[Fact]) -> bool:
    """True for the file of one rank, also where only its lines say so."""
    if file.rank is not None:
        return True
    ranks = {fact.rank for fact in facts if fact.rank is not None}
    local = {fact.fields["local_rank"] for fact in facts if fact.fields.get("local_rank") is not None}
    return max(len(ranks), len(local)) <= 1 and not any(fact.kind in _OF_LAUNCHERS for fact in facts)


def _agreed(files: Sequence[FileRead], by_file: Mapping[int, Sequence[Fact]]) -> int:
    """How many more attempts there were where no file tells a start: as often as most ranks were heard of again after an abort."""
    own = [(file, by_file[file.number]) for file in files if file.attempt is None and by_file[file.number]]
    told = [aborts(facts) for file, facts in own if _of_one_process(file, facts)]
    most, times = Counter(told).most_common(1)[0] if told else (0, 0)
    return most if times > max(1, len(told) // 2) else 0


def _of_lives(
    own: Sequence[int], facts: Sequence[Fact], base: int, clock: Sequence[float], named: Mapping[tuple[object, object], int], last: int
) -> Parts:
    """The attempts of the lives of one rank, of which some attempts saw none: by the time, by the collective that timed out, else the next."""
    parts: list[tuple[int, int]] = []
    before = 0
    for number, begin in enumerate([base, *own]):
        end = own[number] if number < len(own) else None
        words = facts[bisect_left(facts, begin, key=_seq) : None if end is None else bisect_left(facts, end, key=_seq)]
        when = next((fact.time.epoch for fact in words if fact.time is not None), None)
        told = next((named[name] for name in collectives(words) if name in named), None)
        if clock and when is not None:
            attempt = bisect_right(clock, when) + 1
        elif told is not None:
            attempt = told
        else:  # the last lives are those of the last attempts
            attempt = max(before + 1, last - (len(own) - number))
        before = min(max(attempt, before), last)
        parts.append((begin, before))
    return parts


def _collectives(cuts: Mapping[int, list[int]], by_file: Mapping[int, Sequence[Fact]], most: int) -> dict[tuple[object, object], int]:
    """Collectives that timed out in one attempt alone, and in which, by the files that show all attempts."""
    found: dict[tuple[object, object], set[int]] = {}
    for number, own in cuts.items():
        if len(own) == most:
            for fact in by_file[number]:
                for name in collectives([fact]):
                    found.setdefault(name, set()).add(bisect_right(own, fact.seq) + 1)
    return {name: attempts.pop() for name, attempts in found.items() if len(attempts) == 1}


def _cuts(file: FileRead, facts: Sequence[Fact]) -> list[int]:
    """Where in one file a new attempt begins, as seq of its first line."""
    cuts: list[int] = []
    last = 1
    for fact in facts:
        if fact.attempt > last:
            cuts.append(fact.seq)
            last = fact.attempt
    failed: dict[tuple[str | None, int], Fact] = {}
    for fact in facts:
        agent = fact.fields.get("agent_pid") or (fact.fields.get("pid") if fact.fields.get("of_pid") is not None else None)
        if fact.kind != LAUNCHER_FAILED or agent is None or fact.fields.get("exitcode") is None or fact.fields.get("name") != "failed":
            continue
        key = (fact.host, agent)  # in containers the agents of all nodes have the same number
        before = failed.get(key)
        if before is not None and before.attempt == fact.attempt and not _within(cuts, before.seq, fact.seq) and _apart(before, fact):
            insort(cuts, before.seq + 1)
        failed[key] = fact
    for end, step in _fallen_back(file, facts):
        if not _within(cuts, end, step):
            insort(cuts, end + 1)
    return cuts if file.rank is not None else [cut for cut, joins in zip(cuts, _joins(cuts, facts), strict=True) if not joins]


def _joins(cuts: Sequence[int], facts: Sequence[Fact]) -> list[bool]:
    """For each cut whether other ranks are heard of behind it than before it, and no launcher told the end: files that were joined."""
    bounds = [0, *(bisect_left(facts, cut, key=_seq) for cut in cuts), len(facts)]
    result: list[bool] = []
    for begin, middle, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        before, after = facts[begin:middle], facts[middle:end]
        dead = {fact.rank for fact in before if fact.kind in ABORTS} - {None}
        heard = {fact.rank for fact in after} - {None}
        told = any(ends_job(fact.kind, fact.fields) for fact in before) or any(
            fact.kind == "run.start" and fact.fields.get("name") not in SIGNS for fact in after[:1]
        )
        result.append(not told and bool(dead and heard) and not dead & heard)
    return result


def _within(cuts: Sequence[int], before: int, after: int) -> bool:
    """True where a cut lies behind ``before``, at ``after`` at the latest."""
    place = bisect_right(cuts, before)
    return place < len(cuts) and cuts[place] <= after


def _fallen_back(file: FileRead, facts: Sequence[Fact]) -> list[tuple[int, int]]:
    """Where steps begin again at an earlier one after a launcher, a scheduler or several ranks told the end: the seq of both lines."""
    series = file.series
    main = None if series is None else series.main
    ends, dead = [], set()
    for fact in facts:
        if fact.kind in ABORTS and fact.rank is not None:
            dead.add(fact.rank)
        if ends_job(fact.kind, fact.fields) or (fact.kind in ABORTS and len(dead) >= SEVERAL):
            ends.append(fact.seq)
    if not ends or series is None or main is None:
        return []
    table, found = series.tables[main], []
    lines, iterations = table.glance("line"), table.glance("iteration")
    before = 0
    for number, end in enumerate(ends):
        row = bisect_right(lines, end, key=series.seq)
        if row >= len(lines):
            break
        step = series.seq(int(lines[row]))
        last = number + 1 == len(ends) or ends[number + 1] > step
        if last and row > before and iterations[row] <= max(iterations[before:row]):
            found.append((end, step))
            before = row
    return found


def _apart(first: Fact, second: Fact) -> bool:
    """True where two failures that one launcher reports are two rounds, not two workers of one."""
    if first.time is not None and second.time is not None:
        return second.time.epoch - first.time.epoch > ROUND
    return first.fields.get("local") == second.fields.get("local")


def _clock(cuts: Mapping[int, list[int]], by_file: Mapping[int, Sequence[Fact]], most: int) -> list[float]:
    """Times at which the second, third, … attempt begins, from the file that shows most of them; empty where it has no times."""
    for number, own in cuts.items():
        if len(own) != most or not own:
            continue
        times: list[float] = []
        for cut in own:
            first = bisect_left(by_file[number], cut, key=_seq)
            stamp: Stamp | None = next(
                (fact.time or fact.after for fact in islice(by_file[number], first, None) if fact.time or fact.after), None
            )
            if stamp is None:
                break
            times.append(stamp.epoch)
        if len(times) == most and times == sorted(times):
            return times
    return []


def by_attempt(facts: Iterable[Fact]) -> dict[int, list[Fact]]:
    """The facts of each attempt, in their order."""
    result: dict[int, list[Fact]] = {}
    for fact in facts:
        result.setdefault(fact.attempt, []).append(fact)
    return result


def recount(counts: Mapping[Key, int], before: Sequence[Fact], after: Sequence[Fact]) -> dict[Key, int]:
    """Exact counts by attempt of the job, from those by attempt within each file: kept facts go with their attempt, the rest stays."""
    result = dict(counts)
    for old, new in zip(before, after, strict=True):
        name = str(old.fields.get("name", ""))
        result[(old.kind, name, old.rank, old.attempt)] -= 1
        key = (new.kind, name, new.rank, new.attempt)
        result[key] = result.get(key, 0) + 1
    return {key: count for key, count in result.items() if count > 0}
