"""Memory that grows step by step, and the iteration at which it will be full."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from memdoctor.derive.series.levels import CERTAIN, MEDIAN_ERROR
from memdoctor.derive.series.robust import best_hinge, blocks, line, median, noise
from memdoctor.records import record

FEWEST = 10  # readings
MOST = 240  # points looked at: medians of blocks where there are more readings
GROWTH = 0.04  # of the level at the start, at least
START = 0.05  # of the readings at the start in which optimizer states and caches come to be
STEADY = 0.35  # of the mean growth that each quarter of a leak shows at least; caches fill up and stop
ALONG = 0.5  # of a growth that the peak within steps shows, too, if it is theirs
CARDS = tuple(size * 1024**3 for size in (8, 11, 12, 16, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 144, 180, 192, 256, 288))


@record
class Growth:
    """Bytes; ``place`` of the reading at which it begins. ``peak``: how high it rose within the last steps, None where that is not known.
    ``full``: the iteration at which ``capacity`` is reached if it goes on so: by the peak of a step, where that is known."""

    place: int
    onset: float
    first: float
    last: float
    per_step: float
    capacity: float
    peak: float | None
    assumed: bool
    full: float | None


def growth(
    times: Sequence[float],
    values: Sequence[float],
    capacity: float | None,
    most: float = 0.0,
    peaks: Sequence[float] = (),
    held: float = 0.0,
) -> Growth | None:
    """A steady growth up to the last reading; None where there is none, or where it levels off.

    ``capacity`` of what fills up, None if nothing tells; then it is the smallest usual card that holds these values and ``most`` bytes, what
    the fullest rank has, and of which ``held`` bytes were in use. ``peaks``: the most up to each reading, where that is told.
    """
    skip = max(1, int(START * len(values)))
    if len(values) - skip < FEWEST:
        return None
    cut = [(first + skip, last + skip) for first, last in blocks(len(values) - skip, MOST)]
    ys = [median(values[first:last]) for first, last in cut]
    xs = [times[first] for first, _ in cut]
    level = median(ys[: max(2, len(ys) // 20)])
    hinge = best_hinge(xs, ys, level, least=4)
    if hinge is None or hinge.after <= 0 or level <= 0:
        return None
    start = hinge.place
    end = median(ys[-max(2, len(ys) // 20) :])
    sigma = MEDIAN_ERROR * noise(ys)
    if end - level < max(GROWTH * level, CERTAIN * sigma / 2) or len(ys) - start < 6 or not _steady(ys[start:]):
        return None
    _, slope, left = line(xs[start:], ys[start:])
    spread_about = sum((value - median(ys[start:])) ** 2 for value in ys[start:])
    if slope <= 0 or left > 0.3 * spread_about:  # a jump or two is no growth
        return None
    known = capacity if capacity is not None and capacity >= max(values) * 0.95 else None
    full_at = known if known is not None else next((card for card in CARDS if card >= max(1.02 * max(most, *values), held)), None)
    place = cut[start][0]
    above = _above(values, peaks, place)
    full = None if full_at is None else times[-1] + max(0.0, full_at - values[-1] - (above or 0.0)) / slope
    return Growth(place, times[place], level, end, slope, full_at or 0.0, None if above is None else end + above, known is None, full)


def _above(values: Sequence[float], peaks: Sequence[float], start: int) -> float | None:
    """How far a step rises above what is left after it. None where nothing tells: a peak that did not grow along is one of long ago."""
    if len(peaks) != len(values):
        return None
    last = max(2, (len(values) - start) // 10)
    grown, along = (median(each[-last:]) - median(each[start : start + last]) for each in (values, peaks))
    if not along >= ALONG * grown:
        return None
    return max(0.0, median([peak - value for peak, value in zip(peaks[-last:], values[-last:], strict=True)]))


def _steady(values: Sequence[float]) -> bool:
    quarter = max(1, len(values) // 4)
    ends = [median(values[place : place + max(1, quarter // 2)]) for place in range(0, 4 * quarter, quarter)]
    ends.append(median(values[-max(1, quarter // 2) :]))
    steps = [after - before for before, after in pairwise(ends)]
    mean = (ends[-1] - ends[0]) / 4
    return mean > 0 and sum(step >= STEADY * mean for step in steps[1:]) >= len(steps) - 1 - (len(values) < 16)
