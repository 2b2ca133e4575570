"""Limits that are shorter than what the job was doing: the log tells how long a save, an evaluation or the building of an index takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memdoctor.derive.hangs.waits import TIMED_OUT
from memdoctor.model import Fact

KIND = "watchdog.short"
ONES_WORK = ("save", "load", "evaluation", "index")  # phases in which the others may stand and wait for one rank
INDEX = ("datasets", "tokenizing")
LEAST = 1.0  # seconds; a limit of nothing is none


def short_limits(facts: Sequence[Fact], everything: Sequence[Fact]) -> list[Fact]:
    """One fact for each time-out in a phase that the log, anywhere, shows to have lasted longer than the limit. ``facts`` are those of one
    attempt, ``everything`` those of the whole log."""
    waits = [
        fact for fact in facts if fact.kind == "watchdog.timeout" and fact.fields.get("name") in TIMED_OUT and fact.fields.get("limit")
    ]
    longest = _longest(everything) if waits else {}
    if not longest:
        return []
    phases = _phases(facts)
    found = []
    for wait in waits:
        limit = float(wait.fields["limit"])
        name = _doing(wait, phases)
        if name in longest and longest[name] >= limit >= LEAST:
            found.append(replace(wait, kind=KIND, fields={"name": name, "limit": limit, "took": longest[name]}))
    return found


def _longest(everything: Sequence[Fact]) -> Mapping[str, float]:
    """Phase → the most seconds that one of its kind took."""
    longest: dict[str, float] = {}

    def take(name: str, seconds: float) -> None:
        longest[name] = max(seconds, longest.get(name, 0.0))

    for fact in everything:
        seconds = fact.fields.get("took", fact.fields.get("took_ms"))
        if fact.kind == "run.took" and isinstance(seconds, (int, float)):
            take(str(fact.fields.get("name")), float(seconds))
    for before, after in _neighbours(everything):
        if before.time is not None and after.time is not None:
            take(_name(before), after.time.epoch - before.time.epoch)
    return longest


def _neighbours(everything: Sequence[Fact]) -> list[tuple[Fact, Fact]]:
    """Beginnings of phases with the next one in the same file and attempt."""
    last: dict[tuple[str | None, int], Fact] = {}
    pairs = []
    for fact in sorted((fact for fact in everything if fact.kind == "run.phase"), key=lambda fact: fact.seq):
        key = (fact.origin.path, fact.attempt)
        if key in last and _name(last[key]) in ONES_WORK and _name(fact) != _name(last[key]):
            pairs.append((last[key], fact))
        if key not in last or _name(fact) != _name(last[key]):
            last[key] = fact
    return pairs


def _phases(facts: Sequence[Fact]) -> list[tuple[float, str]]:
    """When which phase began, by the lines of all files that have a time."""
    dated = [(fact.time.epoch, _name(fact)) for fact in facts if fact.kind == "run.phase" and fact.time is not None]
    return sorted(dated)


def _doing(wait: Fact, phases: Sequence[tuple[float, str]]) -> str:
    """What the job was doing when the rank began to wait: by its own file, else by the times of the other files' lines."""
    own = str(wait.fields.get("phase") or "")
    if own in ONES_WORK:
        return own
    if wait.time is not None:
        began = [name for epoch, name in phases if epoch <= wait.time.epoch]
        if began and began[-1] in ONES_WORK:
            return began[-1]
    return "index" if own == "startup" else own


def _name(fact: Fact) -> str:
    name = str(fact.fields.get("name"))
    return "index" if name == "startup" and fact.fields.get("path") in INDEX else name
