"""Values that leap far above their trend and come back."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence

from memdoctor.derive.series.levels import MOST
from memdoctor.derive.series.robust import SIGMA, blocks, median, noise
from memdoctor.records import record

WINDOW = 25  # ordinary values before one that tell what is ordinary
FEWEST = 6  # of them, from which on something can be told
TREND = 12  # of them that are enough to see a fall
CLEAR = 0.75  # of the deviation that a fall has to explain
FAR = 5.5  # standard deviations above the ordinary, and
LEAST = 0.10  # this share of it: what counts as far
FLOOR = 0.9  # of the noise of the whole curve, which a few values may happen to show too little of
BACK = 0.35  # of the way up that may be left when it counts as over
MOST_SPIKES = 50


@record
class Spike:
    """``place`` is the first value that is up, ``length`` how many are, ``before`` the ordinary value, ``peak`` the highest."""

    place: int
    length: int
    before: float
    peak: float


def spikes(values: Sequence[float]) -> list[Spike]:
    """All spikes that are over by the end, in order; of very many values only the highest."""
    if len(values) <= MOST:
        return _walk(values)
    size = MOST // 8
    found: list[tuple[float, int]] = []
    for first, last in blocks(len(values), -(-len(values) // size)):
        part = values[first:last]
        middle = median(part)
        top = max(part)
        if top > middle + max(2 * FAR * noise(part), LEAST * abs(middle)):
            found.append((top / middle if middle > 0 else top, first))
    result: dict[int, Spike] = {}
    for _, first in sorted(found, reverse=True)[:MOST_SPIKES]:
        start = max(0, first - 4 * WINDOW)
        for spike in _walk(values[start : first + 2 * size]):
            result[spike.place + start] = Spike(spike.place + start, spike.length, spike.before, spike.peak)
    return [result[place] for place in sorted(result)]


def _walk(values: Sequence[float]) -> list[Spike]:
    result: list[Spike] = []
    window: deque[float] = deque(maxlen=WINDOW)
    ordered: list[float] = []
    floor = FLOOR * noise(values)
    up: int | None = None
    before = peak = 0.0
    for place, value in enumerate(values):
        if up is not None:
            peak = max(peak, value)
            following = values[place + 1] if place + 1 < len(values) else value
            if max(value, following) > before + BACK * (peak - before):
                continue
            result.append(Spike(up, place - up, before, peak))
            up = None
        elif len(window) >= FEWEST and value > ordered[0] + LEAST * abs(ordered[0]):
            usual, sigma = _next(list(window))
            if value > usual + max(FAR * max(sigma, floor), LEAST * abs(usual)):
                up, before, peak = place, usual, value
                continue
        if len(window) == WINDOW:
            del ordered[bisect_left(ordered, window[0])]
        window.append(value)
        insort(ordered, value)
    return result


def _next(window: Sequence[float]) -> tuple[float, float]:
    """What comes after ``window`` if all goes on as it was, and its standard deviation: at its level or, where that fits better, on a line
    that falls. A rise is no reason to expect more."""
    level = median(window)
    flat = level, SIGMA * median([abs(value - level) for value in window])
    count = len(window)
    third = count // 3
    first, last = median(window[:third]), median(window[-third:])
    if count < TREND or first <= last:
        return flat
    slope = (last - first) / (count - third)
    middle = count - (third + 1) / 2  # of the last third
    sigma = SIGMA * median([abs(value - last - slope * (place - middle)) for place, value in enumerate(window)])
    return (last + slope * (count - middle), sigma) if sigma < CLEAR * flat[1] else flat
