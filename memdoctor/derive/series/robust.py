"""Robust statistics in plain Python: nothing here is moved far by a few wild values. All functions are linear, or n log n for a window."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise

from memdoctor.records import record

SAMPLE = 5_000  # values that are enough for a median
SIGMA = 1.4826  # a median absolute deviation times this is the standard deviation, for normal noise


def median(values: Sequence[float]) -> float:
    """The middle value (of the two middle ones the mean). Raises IndexError for none."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def typical(values: Sequence[float]) -> float:
    """The median, of very many values that of a sample over their whole length. Raises IndexError for none."""
    return median(values[:: 1 + len(values) // SAMPLE])


def spread(values: Sequence[float]) -> float:
    """Standard deviation as the median absolute deviation tells it; 0 for fewer than two values."""
    if len(values) < 2:
        return 0.0
    middle = median(values)
    return SIGMA * median([abs(value - middle) for value in values])


def noise(values: Sequence[float]) -> float:
    """Standard deviation from value to value, whatever slow trend lies under it; 0 for fewer than three values."""
    if len(values) < 3:
        return 0.0
    return SIGMA / math.sqrt(2) * median([abs(after - before) for before, after in pairwise(values)])


def noise_on_slope(values: Sequence[float]) -> float:
    """The same where the values may fall or rise steeply, all by about as much."""
    if len(values) < 3:
        return 0.0
    steps = [after - before for before, after in pairwise(values)]
    usual = median(steps)
    return SIGMA / math.sqrt(2) * median([abs(step - usual) for step in steps])


def running_median(values: Sequence[float], width: int) -> list[float]:
    """For each value the median of the ``width`` values around it (fewer at both ends); ``width`` is odd."""
    half = width // 2
    window = sorted(values[: half + 1])
    result = []
    for place in range(len(values)):
        if place:
            if place + half < len(values):
                insort(window, values[place + half])
            if place - half - 1 >= 0:
                del window[bisect_left(window, values[place - half - 1])]
        middle = len(window) // 2
        result.append(window[middle] if len(window) % 2 else (window[middle - 1] + window[middle]) / 2)
    return result


def blocks(count: int, most: int) -> list[tuple[int, int]]:
    """``count`` rows cut into at most ``most`` blocks of equal size (half open)."""
    size = max(1, -(-count // most))
    return [(first, min(first + size, count)) for first in range(0, count, size)]


@record
class Split:
    """The best description of values by two parts. ``place``: first value of the second. ``error``: sum of squares that is left."""

    place: int
    error: float
    before: float
    after: float


def best_step(values: Sequence[float], least: int = 2) -> Split | None:
    """Two levels: where to cut so that the squares about the two means are smallest. Each part has at least ``least`` values."""
    count = len(values)
    if count < 2 * least:
        return None
    total, squares = math.fsum(values), math.fsum(value * value for value in values)
    best: Split | None = None
    left = 0.0
    for place in range(1, count):
        left += values[place - 1]
        if place < least or count - place < least:
            continue
        right = total - left
        error = squares - left * left / place - right * right / (count - place)
        if best is None or error < best.error:
            best = Split(place, error, left / place, right / (count - place))
    return best


def best_hinge(times: Sequence[float], values: Sequence[float], level: float, least: int = 2) -> Split | None:
    """``level`` up to a moment, then a straight rise from it: the ``place`` where the rise begins, so that the squares are smallest.

    ``before`` is ``level``, ``after`` the slope. Sums over the tail of t, t², v·t and v give each candidate in constant time.
    """
    count = len(values)
    if count < least + 1:
        return None
    best: Split | None = None
    ones = sum_t = sum_tt = sum_v = sum_vt = 0.0
    tail = 0.0  # squares of the values behind, about the level
    whole = math.fsum((value - level) ** 2 for value in values)
    origin = times[-1]
    for place in range(count - 1, -1, -1):
        time, value = times[place] - origin, values[place] - level
        ones, sum_t, sum_tt = ones + 1, sum_t + time, sum_tt + time * time
        sum_v, sum_vt, tail = sum_v + value, sum_vt + value * time, tail + value * value
        if ones < least:
            continue
        # The rise starts at the time of this row: v = slope (t - start).
        top = sum_vt - time * sum_v
        bottom = sum_tt - 2 * time * sum_t + time * time * ones
        if bottom <= 0:
            continue
        slope = top / bottom
        error = whole - top * top / bottom if slope > 0 else whole
        if best is None or error < best.error:
            best = Split(place, error, level, slope)
    return best


def best_kink(times: Sequence[float], values: Sequence[float], least: int = 4) -> Split | None:
    """One straight line that goes over into another: the ``place`` of the kink, so that the squares are smallest.

    ``before`` and ``after`` are the slopes. Each part has at least ``least`` values.
    """
    count = len(values)
    if count < 2 * least or times[-1] <= times[0]:
        return None
    middle, unit = (times[0] + times[-1]) / 2, (times[-1] - times[0]) / 2
    ts = [(time - middle) / unit for time in times]
    mean = math.fsum(values) / count
    ys = [value - mean for value in values]
    t1, t2 = math.fsum(ts), math.fsum(t * t for t in ts)
    ty, yy = math.fsum(t * y for t, y in zip(ts, ys, strict=True)), math.fsum(y * y for y in ys)
    best: Split | None = None
    ones = tail_t = tail_tt = tail_y = tail_ty = 0.0
    for place in range(count - 1, least - 1, -1):
        t, y = ts[place], ys[place]
        ones, tail_t, tail_tt, tail_y, tail_ty = ones + 1, tail_t + t, tail_tt + t * t, tail_y + y, tail_ty + t * y
        if ones < least:
            continue
        # Beside 1 and t the third column is t - kink from the kink on; its products with the others:
        h1, ht, hh, hy = tail_t - t * ones, tail_tt - t * tail_t, tail_tt - 2 * t * tail_t + t * t * ones, tail_ty - t * tail_y
        fitted = _solve(((count, t1, h1, 0.0), (t1, t2, ht, ty), (h1, ht, hh, hy)))
        if fitted is None:
            continue
        error = yy - fitted[1] * ty - fitted[2] * hy
        if best is None or error < best.error:
            best = Split(place, error, fitted[1] / unit, (fitted[1] + fitted[2]) / unit)
    return best


def _solve(rows: Sequence[Sequence[float]]) -> list[float] | None:
    """Three equations in three unknowns, by elimination; None where they do not decide."""
    table = [list(row) for row in rows]
    for column in range(3):
        pivot = max(range(column, 3), key=lambda row: abs(table[row][column]))
        if abs(table[pivot][column]) < 1e-12:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        for row in range(3):
            if row != column:
                factor = table[row][column] / table[column][column]
                table[row] = [value - factor * own for value, own in zip(table[row], table[column], strict=True)]
    return [table[row][3] / table[row][row] for row in range(3)]


def line(times: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """The straight line of least squares: its value at the first time, its slope, and the sum of squares that is left."""
    count = len(values)
    mean_t, mean_v = math.fsum(times) / count, math.fsum(values) / count
    tt = math.fsum((time - mean_t) ** 2 for time in times)
    tv = math.fsum((time - mean_t) * (value - mean_v) for time, value in zip(times, values, strict=True))
    vv = math.fsum((value - mean_v) ** 2 for value in values)
    slope = tv / tt if tt else 0.0
    return mean_v + slope * (times[0] - mean_t), slope, max(0.0, vv - slope * tv)
