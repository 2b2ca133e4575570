"""A restart that begins at the first iteration again, although a checkpoint had been saved: nothing was loaded, whatever was meant."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from memdoctor.derive.series.loss import Losses
from memdoctor.derive.series.robust import median
from memdoctor.model import Fact
from memdoctor.records import record

FIRST = 3  # losses after the restart that are compared
FALL = 0.1  # of its beginning by which the loss must have fallen, for a new beginning to look like one
HIGH = 0.3  # above a loss of later on, at least, for a new beginning to look like one where the first is not known
NEARER = 0.5  # of that fall within which a new beginning lies

_STEP = re.compile(r"(?i)(step|checkpoint|iter|epoch)([-_=]?)\d+")


@record
class Saved:
    """The last checkpoint that an attempt saved: its iteration, and where all of them went, with numbers of steps left out."""

    iteration: float
    path: str | None
    folders: frozenset[str]


@record
class Anew:
    """``place`` and ``onset`` of the first loss after the restart; ``saved`` is the checkpoint that was not loaded."""

    place: int
    onset: float
    saved: Saved


def saved_of(losses: Losses, facts: Sequence[Fact]) -> Saved | None:
    """``facts`` are those of the attempt. A save counts where it is told to be over, or where steps follow it."""
    path, lines, times = losses.segment.steps.file.path, losses.segment.steps.lines, losses.segment.times
    found: list[tuple[float, str | None]] = []
    for fact in facts:
        done = fact.kind == "run.phase" and fact.fields.get("name") in ("save", "training") and fact.origin.path == path
        line = fact.origin.line or 0
        if not done or (fact.fields["name"] == "training" and fact.fields.get("path") is None):
            continue
        if fact.fields["name"] == "save" and line > lines[-1]:
            continue
        before = bisect_left(lines, line) - 1
        step = fact.fields.get("step")
        if step is None and before < 0:
            continue
        found.append((float(step) if step is not None else times[min(before, len(times) - 1)], fact.fields.get("path")))
    if not found:
        return None
    last = max(found, key=lambda pair: pair[0])
    return Saved(last[0], last[1], folders_of(facts))


def folders_of(facts: Sequence[Fact]) -> frozenset[str]:
    """Where an attempt saves to; numbers of steps left out."""
    saves = (fact.fields.get("path") for fact in facts if fact.kind == "run.phase" and fact.fields.get("name") == "save")
    return frozenset(_STEP.sub(r"\1\2#", path) for path in saves if path)


def ended_well(facts: Sequence[Fact]) -> bool:
    """What comes after an attempt that did its work is another run."""
    return any(fact.kind == "run.end" and fact.fields.get("name") == "completed" for fact in facts)


def begun_anew(before: Losses, saved: Saved, after: Losses, facts: Sequence[Fact]) -> Anew | None:
    """``before`` are the losses of the attempt that saved, ``facts`` those of the attempt of ``after``.

    None where a checkpoint was loaded, where the checkpoints go elsewhere (another run), and where the loss does not tell that the weights are
    those of a beginning: it goes on, or it had hardly fallen.
    """
    if not before.values or not after.values or min(before.values) <= 0:
        return None
    if any(fact.kind == "run.phase" and fact.fields.get("name") == "load" for fact in facts):
        return None
    start, interval = after.times[0], max(before.segment.interval, after.segment.interval)
    if start > saved.iteration or start > before.times[0] + interval:
        return None
    folders = folders_of(facts)
    if folders and saved.folders and not folders & saved.folders:
        return None
    upto = bisect_right(before.times, saved.iteration)
    ended = median(before.values[max(0, upto - 5) : max(1, upto)])
    begun, again = median([_at(before, time) for time in after.times[:FIRST]]), median(after.values[:FIRST])
    fall = begun - ended
    if start < before.times[0] - interval:  # of the run before it only a later part is known
        if again < (1 + HIGH) * begun:
            return None
    elif fall < FALL * begun or again < begun - NEARER * fall:
        return None
    return Anew(after.places[0], after.segment.times[after.places[0]], saved)


def _at(losses: Losses, time: float) -> float:
    return losses.values[min(bisect_left(losses.times, time), len(losses.values) - 1)]
