"""Whom the others waited for, and who went on with work of its own meanwhile: then nothing hangs, and the limit is shorter than that work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memdoctor.derive.hangs.hosts import Hosts
from memdoctor.derive.hangs.picture import Picture
from memdoctor.derive.hangs.suspects import Suspect
from memdoctor.derive.hangs.waits import TIMED_OUT
from memdoctor.model import Fact, FileRead, Origin, StepMark
from memdoctor.records import record

KIND = "watchdog.working"
SKEW = 60.0  # seconds by which the clocks of two files may differ
ABSENT = ("silent", "behind", "late", "unclear")  # suspects that may be busy
# What shows that those who timed out are gone: what goes on then is no training in which all take part.
_GONE = ("watchdog.taken_down", "native.crash", "process.exit", "exception")


@record
class _Progress:
    """A line that tells how far something came. ``epoch`` is None where it has no time."""

    rank: int | None
    path: str
    seq: int
    text: str
    done: int
    total: int | None
    epoch: float | None
    excerpt: str


def at_work(
    found: Sequence[Suspect], facts: Sequence[Fact], marks: Sequence[StepMark], files: Sequence[FileRead], shown: Picture, hosts: Hosts
) -> list[Fact]:
    """``watchdog.working`` for each of the suspects ``found`` of which lines after the first time-out show that its work goes on.

    ``facts`` and ``marks`` are those of one attempt. A line that tells no rank counts where there is one suspect. Steps without a time count in
    progress bars alone: what a loop prints may have waited in a buffer.
    """
    absent = [suspect for suspect in found if suspect.name in ABSENT]
    waits = [fact for fact in facts if fact.kind == "watchdog.timeout" and fact.fields.get("name") in TIMED_OUT]
    if not absent or not waits or not any(fact.kind in _GONE for fact in facts):
        return []
    first = min(waits, key=lambda fact: (fact.time is None, fact.time.epoch if fact.time is not None else 0.0, fact.seq))
    begun: dict[str, int] = {}
    for wait in waits:
        path = wait.origin.path or ""
        begun[path] = min(wait.seq, begun.get(path, wait.seq))
    grown = _grown(sorted((*_bars(facts), *_steps(marks, files)), key=lambda line: line.seq), begun, first)
    if shown.timed_out & grown.keys():
        return []  # they got over it
    if None in grown and len(absent) == 1:
        grown.setdefault(absent[0].rank, grown[None])
    return [_fact(suspect, *grown[suspect.rank], first, begun, hosts) for suspect in absent if suspect.rank in grown]


def _grown(lines: Sequence[_Progress], begun: Mapping[str, int], first: Fact) -> dict[int | None, tuple[_Progress, _Progress]]:
    """By rank the first and the last line after the time-out, where that is further. Work that began anew since is that of another process."""
    before: dict[tuple[int | None, str], int] = {}
    later: dict[tuple[int | None, str], list[_Progress]] = {}
    for line in lines:
        key = (line.rank, line.text)
        if _follows(line, begun, first):
            later.setdefault(key, []).append(line)
        elif key not in later:
            before[key] = line.done
    found: dict[int | None, tuple[_Progress, _Progress]] = {}
    for key, own in later.items():
        if before.get(key, 0) <= own[0].done < own[-1].done:
            found.setdefault(key[0], (own[0], own[-1]))
    return found


def _bars(facts: Sequence[Fact]) -> list[_Progress]:
    return [
        _Progress(
            fact.rank, fact.origin.path or "", fact.seq, str(fact.fields.get("text") or "").strip() or "a progress bar", fact.fields["done"], fact.fields.get("total"),
            fact.time.epoch if fact.time is not None else None, fact.origin.excerpt,
        )
        for fact in facts
        if fact.kind == "run.bar" and "done" in fact.fields
    ]  # fmt: skip


def _steps(marks: Sequence[StepMark], files: Sequence[FileRead]) -> list[_Progress]:
    drawn = {file.path for file in files if getattr(file.series, "main", None) == "bar"}
    return [
        _Progress(mark.rank, mark.path, mark.seq, "steps", mark.iteration, None, mark.epoch, "")
        for mark in marks
        if mark.epoch is not None or mark.path in drawn
    ]


def _follows(line: _Progress, begun: Mapping[str, int], first: Fact) -> bool:
    """True where the line is later than the first time-out: further down in its file, or by its time."""
    if line.epoch is not None and first.time is not None:
        return line.epoch > first.time.epoch + (0.0 if line.path == first.origin.path else SKEW)
    return line.path in begun and line.seq > begun[line.path]


def _fact(suspect: Suspect, start: _Progress, end: _Progress, first: Fact, begun: Mapping[str, int], hosts: Hosts) -> Fact:
    """It began with the first of the time-outs; the line that shows it is the last one of the work."""
    fields = {
        "name": "working", "text": end.text, "begun": start.done, "done": end.done, "total": end.total, "waiting": len(suspect.waiting) or None,
        "limit": first.fields.get("limit"), "op": first.fields.get("op") or None,
        "witness": None if end.rank == suspect.rank else -1,
    }  # fmt: skip
    return Fact(
        kind=KIND,
        fields={name: value for name, value in fields.items() if value is not None},
        origin=Origin("log", end.path, end.seq >> 8 & (1 << 36) - 1, end.excerpt),
        rank=suspect.rank,
        host=hosts.of(suspect.rank),
        attempt=first.attempt,
        seq=begun.get(end.path, end.seq),
        event=f"working:{first.attempt}:{suspect.rank}",
        after=first.time,
    )
