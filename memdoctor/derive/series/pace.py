"""How long a step takes: does it get slower, at once or little by little; and which single steps are slow again and again."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from memdoctor.derive.series.levels import CERTAIN, MEDIAN_ERROR, MOST, reduce, smoothing
from memdoctor.derive.series.robust import SAMPLE, best_hinge, best_step, median, noise, running_median, spread, typical
from memdoctor.derive.series.segments import Segment
from memdoctor.derive.series.selecting import at, select, stretch
from memdoctor.records import record

SLOWER = 0.15  # above its best level that a step may take longer before it counts
WARM_UP = 2  # lines at the start that compile, allocate and read ahead
FEWEST = 12  # lines below which nothing is said
PART = 0.1  # of the lines that a level must hold to be one
EXPLAINS = 25.0  # times the variance of a single line that a cut must explain
DEPTH = 4  # changes of level that are looked for, in halves of halves


@record
class Pace:
    """Seconds for one step of the present size, line by line; ``places`` in the segment; ``unit`` is what they were read from."""

    segment: Segment
    times: Sequence[float]
    values: Sequence[float]
    places: Sequence[int]
    unit: str


def pace_of(segment: Segment) -> Pace | None:
    """From the printed time of a step, else from throughput, else from the stamps; sizes of batches that change are taken out."""
    for name in ("ms", "tokens", "rate", "tflops"):
        if segment.has(name):
            column = segment.values(name)
            skipped = segment.values("skipped") if segment.has("skipped") else ()  # such a step does less
            told, known = _usable(column, skipped)
            if len(known) < FEWEST or len(known) < 0.5 * (len(column) - WARM_UP):
                continue
            if name == "ms":
                values = _of_one_size(segment, array("f", map((0.001).__mul__, told)), known)
            else:
                values = array("f", map((1.0).__truediv__, told))
            return Pace(segment, at(segment.times, known), values, known, name)
    return pace_from_stamps(segment)


def _usable(column: Sequence[float], skipped: Sequence[float]) -> tuple[Sequence[float], Sequence[int]]:
    """The values of lines that tell how an ordinary step went, and their places."""
    count = len(column)
    if math.isfinite(sum(column)) and min(column) > 0 and not (skipped and any(value > 0 for value in skipped)):
        return stretch(column, WARM_UP, count), range(WARM_UP, count)
    return select(
        column, WARM_UP, count, lambda place: math.isfinite(column[place]) and column[place] > 0 and not (skipped and skipped[place] > 0)
    )


def _of_one_size(segment: Segment, values: Sequence[float], places: Sequence[int]) -> Sequence[float]:
    """As if all batches and sequences were as large as the last: ramps of theirs are wanted and take longer."""
    for name in ("batch", "seqlen"):
        if segment.has(name):
            sizes = segment.values(name)
            if min(sizes[place] for place in places) != max(sizes[place] for place in places):
                last = sizes[places[-1]]
                if not last > 0:
                    continue
                values = [value * last / sizes[place] if sizes[place] > 0 else value for value, place in zip(values, places, strict=True)]
    return values


def pace_from_stamps(segment: Segment) -> Pace | None:
    """Times between lines whose stamps are fine enough: a second is no measure for steps of a second."""
    epochs = segment.steps.epochs
    rows = segment.rows
    known = [place for place in range(len(rows)) if not math.isnan(epochs[rows[place]])]
    if len(known) < FEWEST + WARM_UP or len(known) < 0.9 * len(rows):
        return None
    values, places = array("d"), array("q")
    for before, place in pairwise(known[WARM_UP:]):
        steps = segment.times[place] - segment.times[before]
        took = epochs[rows[place]] - epochs[rows[before]]
        if steps > 0 and took >= 0:
            values.append(took / steps)
            places.append(place)
    if len(values) < FEWEST:
        return None
    whole = all(epochs[rows[place]] % 1 == 0 for place in known[:50])
    if whole and median(values) * segment.interval < 10:
        return None
    return Pace(segment, at(segment.times, places), values, places, "stamps")


@record
class Slowdown:
    """``name``: step (at once), drift (little by little), passing (over by the end). ``place`` in the segment; seconds."""

    name: str
    place: int
    onset: float
    before: float
    after: float
    until: float | None = None


def slowdown(pace: Pace) -> Slowdown | None:
    coarse, size = reduce(pace.values)
    count = len(coarse)
    smooth = running_median(coarse, smoothing(count))
    chance = noise(coarse) ** 2
    parts = _levels(smooth, 0, count, DEPTH, chance)
    least = max(4, int(PART * count / 2))
    levels = [(first, last, median(coarse[first:last])) for first, last in parts]
    held = [level for level in levels if level[1] - level[0] >= least] or levels
    best = min(held[:-1] or held, key=lambda level: level[2])
    end = median(coarse[-max(4, count // 12) :])
    sigma = MEDIAN_ERROR * noise(coarse) / math.sqrt(smoothing(count))
    enough = max(SLOWER * best[2], CERTAIN * sigma / 2, 3 * sigma)
    if end - best[2] >= enough and levels[-1][1] - max(best[1], 0) >= min(4, least):
        return _onset(pace, coarse, smooth, size, best, end)
    for first, last, level in held:
        if first > best[0] and level - best[2] >= 2 * enough and last < count:
            place = pace.places[first * size]
            return Slowdown("passing", place, pace.times[first * size], best[2], level, pace.times[min(last * size, len(pace.times) - 1)])
    return None


def _levels(values: Sequence[float], first: int, last: int, depth: int, chance: float) -> list[tuple[int, int]]:
    """Where the level changes: the cut that explains most, and then each half again, as long as it explains more than chance does.

    ``chance`` is the variance from value to value.
    """
    part = values[first:last]
    if depth == 0 or len(part) < 8:
        return [(first, last)]
    split = best_step(part, least=3)
    if split is None:
        return [(first, last)]
    mean = math.fsum(part) / len(part)
    whole = math.fsum((value - mean) ** 2 for value in part)
    gain = whole - split.error
    if gain <= 0 or gain < max(0.08 * whole, EXPLAINS * chance) or abs(split.after - split.before) < 0.05 * abs(split.before):
        return [(first, last)]
    cut = first + split.place
    return [*_levels(values, first, cut, depth - 1, chance), *_levels(values, cut, last, depth - 1, chance)]


def _onset(
    pace: Pace, coarse: Sequence[float], smooth: Sequence[float], size: int, best: tuple[int, int, float], end: float
) -> Slowdown | None:
    """Where between the best level and the end the rise begins, and whether it is a step or a ramp."""
    first = best[0]
    span = smooth[first:]
    step = best_step(span, least=2)
    times = [pace.times[min((first + place) * size, len(pace.times) - 1)] for place in range(len(span))]
    level = median(coarse[first : first + max(3, min(best[1] - first, len(span)) // 3)])
    hinge = best_hinge(times, span, level, least=4)
    if step is None:
        return None
    if hinge is not None and hinge.error < 0.8 * step.error:
        place = (first + hinge.place) * size
        return Slowdown("drift", pace.places[place], pace.times[place], level, end)
    half = step.before + 0.5 * (step.after - step.before)
    around = max(0, (first + step.place - 2) * size - 4), min(len(pace.values), (first + step.place + 2) * size + 5)
    fine = running_median(pace.values[around[0] : around[1]], 3)
    offset = next((offset for offset in range(len(fine)) if fine[offset] > half and median(fine[offset:]) > half), step.place * size)
    place = around[0] + offset
    gap = pace.times[place] - pace.times[place - 1] if place else 0.0
    low, high = median(coarse[first : first + step.place]), median(coarse[first + step.place :])
    if place and pace.values[place - 1] > low + 0.15 * (high - low) and pace.values[place] > low + 0.7 * (high - low):
        place -= 1
    share = min(1.0, max(0.0, (pace.values[place] - low) / (high - low))) if high > low else 1.0
    onset = min(pace.times[place], pace.times[place] - round(share * gap) + 1)
    return Slowdown("step", pace.places[place], onset, low, high)


@record
class Beat:
    """Every ``period`` iterations a line takes ``extra`` seconds longer than the ``typical`` step; ``share`` of all time."""

    period: float
    place: int
    first: float
    typical: float
    extra: float
    share: float
    times: int


SLOW = 0.25  # above the typical step that makes a single one slow
OFTEN = 4  # times from which on it is a habit
REGULAR = 0.75  # of the beats that have a slow step
NEAR = 3  # slow steps after each whose distance from it may be the beat
KEPT = 0.6  # of the slow steps that keep the beat: others come by chance


def beat(pace: Pace) -> Beat | None:
    """A regular beat of slow steps; None where the slow ones come by chance."""
    values = pace.values
    if len(values) < 3 * OFTEN:
        return None
    usual = typical(values)
    limit = usual + max(SLOW * usual, 5 * spread(values[:: 1 + len(values) // SAMPLE]))
    slow = [place for place, value in enumerate(values) if value > limit]
    if not OFTEN <= len(slow) <= 0.35 * len(values):
        return None
    times = [pace.times[place] for place in slow]
    interval = pace.segment.interval
    gaps: Counter[int] = Counter()
    for near in range(1, 1 + (NEAR if len(times) <= MOST else 1)):  # one that is slow by chance must not hide the beat
        gaps.update(round((after - before) / interval) for before, after in zip(times, times[near:], strict=False))
    for gap, number in gaps.most_common(3):
        if gap < 2 or number < OFTEN - 1:
            continue
        period = gap * interval
        phases = Counter(round((time % period) / interval) % gap for time in times)
        phase, kept = phases.most_common(1)[0]
        beats = sum(1 for time in pace.times if round((time % period) / interval) % gap == phase)
        if kept >= max(OFTEN, KEPT * len(slow)) and kept >= REGULAR * beats:
            own = [place for place in slow if round((pace.times[place] % period) / interval) % gap == phase]
            extra = median([values[place] for place in own]) - usual
            total = math.fsum(values)
            return Beat(period, pace.places[own[0]], pace.times[own[0]], usual, extra * interval, extra * len(own) / total, len(own))
    return None
