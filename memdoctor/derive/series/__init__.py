"""Series over time: what no pattern can see. From the step lines of all attempts to facts ``series.*``; the door of this package."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from operator import attrgetter

from memdoctor.derive.attempts import by_attempt
from memdoctor.derive.series import anew, bound, growth, loss, pace, resume
from memdoctor.derive.series.collapse import at_the_end, collapse
from memdoctor.derive.series.experts import experts
from memdoctor.derive.series.memory import Readings, by_step, readings, readings_beside
from memdoctor.derive.series.naming import name_of_beat
from memdoctor.derive.series.rows import Part, Rows
from memdoctor.derive.series.segments import Segment, segments_of
from memdoctor.derive.series.telling import Teller
from memdoctor.derive.steps import Steps
from memdoctor.model import Fact
from memdoctor.records import record

SHARED = 0.5  # of the iterations of a file that another one tells, too, where both are ranks of one job
MOST = 512  # files that tell different losses
ASKED = frozenset({"run.args", "run.config", "run.phase", "cuda.oom", "host.oom"})  # kinds of facts that explain a series
SCALE = "loss_scale"
KEPT = frozenset({"run.phase", "run.end", "checkpoint.error"})  # kinds of facts that tell of checkpoints
UNTRACKED = ("no_tracker", "missing_warning")  # nothing was found to load, and the run went on
WORTH = 0.05  # of the card that must have gone to growth where it is to explain an OOM

__all__ = ["Rows", "Told", "tell_series"]


@record
class Told:
    """The facts ``series.*``, and the step lines as rows. ``failed`` says what of ours broke on them; the rest goes on without."""

    facts: list[Fact]
    rows: Rows
    failed: str | None = None


def tell_series(attempts: Mapping[int, Sequence[Steps]], facts: Sequence[Fact]) -> Told:
    """What the step lines yield, attempt by attempt. ``facts`` are those of the logs: arguments, phases, OOMs."""
    try:
        return _tell(attempts, facts)
    except Exception as error:  # numbers nobody thought of must not cost the answer that other lines give
        return Told([], Rows(()), f"{type(error).__name__}: {error}")


def _tell(attempts: Mapping[int, Sequence[Steps]], facts: Sequence[Fact]) -> Told:
    result: list[Fact] = []
    parted: list[Part] = []
    capacity = max((fact.fields["capacity"] for fact in facts if fact.kind == "cuda.oom" and fact.fields.get("capacity")), default=None)
    before: loss.Losses | None = None
    kept: tuple[loss.Losses, anew.Saved] | None = None  # the latest attempt that saved, from its beginning
    owned = by_attempt(fact for fact in facts if fact.kind in ASKED or fact.kind in KEPT or fact.kind == SCALE)
    homeless = owned.get(0, [])
    for attempt in sorted(attempts):
        parts = [steps for steps in attempts[attempt] if len(steps)]
        if not parts:
            continue
        told = owned.get(attempt, [])
        own = [fact for fact in (sorted([*homeless, *told], key=attrgetter("seq")) if homeless else told) if fact.kind in ASKED]
        loads = _loads(own)
        segments = [segment for steps in _tellers_of_losses(parts) for segment in segments_of(steps, loads.get(steps.file.path, ()))]
        for segment in segments:
            tell = Teller(attempt, segment.steps)
            before = _losses(tell, segment, before, result)
            _pace(tell, segment, own, result)
            parted.append(Part(attempt, segment, {} if segment.has("memory") else by_step(readings_beside(segment.steps))))
        if len(attempts) > 1:
            kept = _anew(attempt, segments, told, kept, result)
        _scale(attempt, parts, told, result)
        for steps in parts:
            _memory(Teller(attempt, steps), own, capacity, result)
    return Told(result, Rows(parted))


def _tellers_of_losses(parts: Sequence[Steps]) -> list[Steps]:
    """Of files that tell the same losses (many ranks, one job) one: that with the most lines, then that of the lowest rank.

    Files whose iterations follow each other are parts of one run, in that order. Of very many the longest are enough.
    """
    chosen: list[Steps] = []
    spans: list[tuple[int, int]] = []
    by_length: dict[int, list[tuple[int, int]]] = {}  # the same, those up to a power of two together, by their beginnings
    for steps in sorted(parts, key=lambda steps: (not steps.has("loss"), -len(steps), steps.file.rank or 0, steps.file.number)):
        low, high = steps.iterations()
        shared = max((_shared(low, high, ordered, 1 << bits) for bits, ordered in by_length.items()), default=-1)
        if len(chosen) == MOST:
            break
        if not chosen or (steps.has("loss") and shared < SHARED * (high - low)):
            chosen.append(steps)
            spans.append((low, high))
            insort(by_length.setdefault((high - low).bit_length(), []), (low, high))
    return [steps for _, steps in sorted(zip(spans, chosen, strict=True), key=lambda pair: (_began(pair[1]), pair[0], pair[1].file.number))]


def _shared(low: int, high: int, spans: Sequence[tuple[int, int]], longest: int) -> int:
    """The most that ``low`` to ``high`` has in common with one of ``spans``, which are in order and no longer than ``longest``; -1: nothing."""
    near = spans[bisect_left(spans, (low - longest, 0)) : bisect_right(spans, (high, math.inf))]
    return max((min(high, other) - max(low, own) for own, other in near), default=-1)


def _began(steps: Steps) -> float:
    """The time of the first line; all are alike where none tells."""
    return 0.0 if math.isnan(steps.epoch(0)) else steps.epoch(0)


def _loads(facts: Sequence[Fact]) -> Mapping[str, Sequence[int]]:
    """For each file the lines at which a checkpoint was loaded."""
    found: dict[str, list[int]] = {}
    for fact in facts:
        if fact.kind == "run.phase" and fact.fields.get("name") == "load" and fact.origin.line and fact.origin.path is not None:
            found.setdefault(fact.origin.path, []).append(fact.origin.line)
    return found


def _losses(tell: Teller, segment: Segment, before: loss.Losses | None, result: list[Fact]) -> loss.Losses | None:
    if not segment.has("loss"):
        return before
    losses = loss.losses_of(segment)
    fallen = collapse(segment)
    if fallen is not None:
        result.append(tell.collapse(segment, fallen))
    jumped = resume.jump(before, losses) if before is not None else None
    if jumped is not None:
        result.append(tell.jump(segment, jumped))
    diverged = loss.divergence(losses) if fallen is None else None
    if diverged is not None and not (jumped is not None and diverged.place <= jumped.place + 5):
        result.append(tell.divergence(segment, diverged, losses.bad))
    skip = jumped.place if jumped is not None else -1
    for spike in loss.spikes_of(losses, diverged.place if diverged is not None else None):
        if spike.place > skip + 2:
            result.append(tell.spike(segment, spike))
    stuck = loss.plateau(losses) if diverged is None and fallen is None else None
    if stuck is not None:
        result.append(tell.plateau(segment, stuck))
    uneven = experts(segment)
    if uneven is not None:
        result.append(tell.experts(segment, uneven))
    return losses if len(losses.values) >= 2 else before


def _anew(
    attempt: int, segments: Sequence[Segment], facts: Sequence[Fact], kept: tuple[loss.Losses, anew.Saved] | None, result: list[Fact]
) -> tuple[loss.Losses, anew.Saved] | None:
    """Tell of an attempt that began from the start although one before it had saved; returns what those after it are held against."""
    told = next((segment for segment in segments if segment.has("loss")), None)
    own = [fact for fact in facts if fact.kind in KEPT] if told is not None else []
    if told is None or (kept is None and not own):
        return kept
    losses = loss.losses_of(told)
    found = anew.begun_anew(*kept, losses, own) if kept is not None else None
    if found is not None:
        missing = next((fact for fact in own if fact.kind == "checkpoint.error" and fact.fields.get("name") in UNTRACKED), None)
        result.append(Teller(attempt, told.steps).anew(told, found, missing))
    if anew.ended_well(own):
        return None
    saved = anew.saved_of(losses, own)
    if kept is None or found is not None:
        return kept if saved is None else (losses, saved)
    return kept if saved is None or saved.iteration <= kept[1].iteration else (kept[0], saved)


def _scale(attempt: int, parts: Sequence[Steps], facts: Sequence[Fact], result: list[Fact]) -> None:
    """A collapse of the loss scale that only lines of the loss scaler tell."""
    own = [fact for fact in facts if fact.kind == SCALE]
    if not own or any(fact.kind == "series.scale_collapse" and fact.attempt == attempt for fact in result):
        return
    for steps in parts:
        found = at_the_end(steps, [fact for fact in own if fact.origin.path == steps.file.path])
        if found is not None:
            result.append(Teller(attempt, found[0].steps).collapse(*found))


def _pace(tell: Teller, segment: Segment, facts: Sequence[Fact], result: list[Fact]) -> None:
    found = pace.pace_of(segment)
    if found is not None:
        slower = pace.slowdown(found)
        if slower is not None:
            result.append(tell.slowdown(segment, slower, found.unit))
        regular = pace.beat(found)
        if regular is not None:
            result.append(tell.beat(segment, regular, name_of_beat(regular, segment, facts), found.unit))
    result.extend(tell.bound(segment, each) for each in bound.bounds(segment, found, facts))


def _memory(tell: Teller, facts: Sequence[Fact], capacity: float | None, result: list[Fact]) -> None:
    found = []
    told = readings(tell.steps)
    most = max((max(each.values) for each in told if each.name != "host"), default=0.0)
    held = max((each.held for each in told), default=0.0)
    for each in told:
        if each.name == "host":  # nobody can guess how much a machine has
            grown = growth.growth(each.times, each.values, each.whole, math.inf)
        else:
            grown = growth.growth(each.times, each.values, capacity or each.whole, most, each.peaks, held)
        if grown is not None:
            found.append((each, grown))
    if found:  # the rank that will be full first
        each, grown = min(found, key=lambda pair: (pair[0].name == "host", pair[1].full or float("inf")))
        result.append(tell.growth(each, grown, _end_of(each, grown, facts)))


def _end_of(each: Readings, grown: growth.Growth, facts: Sequence[Fact]) -> Fact | None:
    """The OOM that growing memory led to: of the same rank where ranks are known."""
    kind = "host.oom" if each.name == "host" else "cuda.oom"
    if grown.capacity and grown.last - grown.first < WORTH * grown.capacity:
        return None
    ends = [fact for fact in facts if fact.kind == kind and (fact.origin.path != each.path or (fact.origin.line or 0) > each.lines[-1])]
    return next((fact for fact in ends if fact.rank == each.rank), ends[0] if ends else None)
