"""Did a noisy row of values rise and stay up, and since when: at once, or little by little?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from memdoctor.derive.series.robust import best_hinge, best_kink, blocks, median, noise, noise_on_slope, running_median
from memdoctor.records import record

SLOPE = 12  # values that tell a slope from noise
MOST = 6_000  # values looked at one by one; more are first reduced to medians of blocks
CERTAIN = 8.0  # standard deviations of a running median that noise alone does not reach, its lowest of many against the end
FALLING = 0.05  # of the rise that the level fell before it, from which on the fall counts
MEDIAN_ERROR = 1.25  # of a median of n values: this times sigma / sqrt(n)


@record
class Rise:
    """From ``before`` to ``after``, for good. ``place`` is the first value that is up, or where the ramp begins.

    ``ramp`` is how many values it took (0: at once); ``onset`` is the time at which it began, between two values where one tells a mean.
    """

    place: int
    onset: float
    before: float
    after: float
    ramp: int


def smoothing(count: int) -> int:
    """A width for a running median that suits so many values."""
    return 3 if count < 24 else 5 if count < 60 else 9


def reduce(values: Sequence[float]) -> tuple[list[float], int]:
    """Medians of blocks, and how many values make one (1: the values as they are)."""
    if len(values) <= MOST:
        return list(values), 1
    cut = blocks(len(values), MOST // 2)
    return [median(values[first:last]) for first, last in cut], cut[0][1] - cut[0][0]


def rise_to_the_end(times: Sequence[float], values: Sequence[float], *, ratio: float, tail: int | None = None) -> Rise | None:
    """A rise by at least ``ratio`` above the lowest level before it that lasts up to the last value; None where there is none.

    ``values`` are positive. ``tail``: how many of the last values tell the level at the end.
    """
    coarse, size = reduce(values)
    count = len(coarse)
    if count < 6:
        return None
    width = smoothing(count)
    smooth = running_median(coarse, width)
    last = min(tail, count // 2) if tail is not None else min(max(count // 20, 3), 25)
    after = median(coarse[-last:])
    low = min(range(count - last), key=smooth.__getitem__)
    base = smooth[low]
    # What had fallen for long has its noise around the slope; of few values, the steps themselves may be nothing else.
    usual = noise_on_slope(coarse[:low]) if low > count // 3 and low >= SLOPE else noise(coarse[: max(low, count // 2)])
    error = MEDIAN_ERROR * usual / math.sqrt(min(width, last))
    rise = after - base
    if base <= 0 or rise < ratio * base or rise < CERTAIN * error:
        return None
    cross = _stays_above(smooth, low, base + 0.5 * rise, base + 0.3 * rise)
    if cross is None:
        return None
    if size > 1:  # once more, value by value, around where it crosses
        first, end = max(0, (cross - 3) * size), min(len(values), (cross + 3) * size)
        ramp = next((place for place in range(cross, count) if smooth[place] >= base + 0.8 * rise), count - 1) - cross
        if ramp > 2:
            return _onset(times[::size][:count], coarse, smooth, low, cross, base, rise, size)
        fine = running_median(values[first:end], width)
        there = _stays_above(fine, 0, base + 0.5 * rise, base + 0.3 * rise)
        if there is None:
            return Rise(cross * size, times[cross * size], base, after, 0)
        found = _onset(times[first:end], values[first:end], fine, 0, there, base, rise, 1)
        return Rise(found.place + first, found.onset, found.before, after, found.ramp)
    return _onset(times, coarse, smooth, low, cross, base, rise, 1)


def _stays_above(smooth: Sequence[float], start: int, level: float, floor: float) -> int | None:
    """The first place from ``start`` on that reaches ``level`` and after which nothing falls below ``floor``."""
    below = start - 1
    for place in range(len(smooth) - 1, start - 1, -1):
        if smooth[place] < floor:
            below = place
            break
    return next((place for place in range(below + 1, len(smooth)) if smooth[place] >= level), None)


def _onset(
    times: Sequence[float], values: Sequence[float], smooth: Sequence[float], low: int, cross: int, base: float, rise: float, size: int
) -> Rise:
    count = len(values)
    foot = next((place for place in range(cross, -1, -1) if smooth[place] <= base + 0.15 * rise), 0)
    top = next((place for place in range(cross, count) if smooth[place] >= base + 0.8 * rise), count - 1)
    after = base + rise
    if top - foot <= 2 + (smoothing(count) // 2 if count >= 24 else 0) and (leap := _leap(values, foot, top, base, rise)) is not None:
        share = min(1.0, max(0.0, (values[leap] - base) / rise))
        gap = times[leap] - times[leap - 1] if leap else 0.0
        return Rise(leap * size, min(times[leap], times[leap] - round(share * gap) + 1), base, after, 0)
    # The level just before: further back a loss is still falling.
    length = top - foot
    near = max(1, foot - length // 3)
    start = max(0, near - min(40, max(6, length // 2)))
    level = median(values[start : near + 1])
    hinge = best_hinge(times[start : top + 1], values[start : top + 1], level, least=3)
    place = start + hinge.place if hinge is not None else foot
    # Where the level was still falling a kink says better when the fall turned into a rise.
    first = max(0, near - min(60, max(8, length // 2)))
    kink = best_kink(times[first : top + 1], values[first : top + 1])
    if kink is not None and kink.before < 0 < kink.after and -kink.before * (times[near] - times[first]) > FALLING * rise:
        place, level = first + kink.place, min(level, base)
    return Rise(place * size, times[place], level, after, max(1, (top - place) * size))


def _leap(values: Sequence[float], foot: int, top: int, base: float, rise: float) -> int | None:
    """The first value that is up, where the value behind it is fully up; None where it takes longer."""
    for place in range(max(0, foot - 4), min(len(values), top + 5)):
        if values[place] > base + 0.25 * rise:
            following = values[place + 1 : place + 3]
            return place if not following or min(following) > base + 0.6 * rise else None
    return None
