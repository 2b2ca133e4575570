"""Is the loss after a resume the loss before it? Compared is what was printed for the same iterations or, without any, just before."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from memdoctor.derive.series.loss import Losses
from memdoctor.derive.series.robust import median, noise, spread
from memdoctor.records import record

FIRST = 3  # lines after the resume that are compared
JUMP = 0.08  # above what was before, and
CERTAIN = 6.0  # standard deviations of single lines: what is no chance
GAP = 0.2  # of the iterations so far that may be missing between the two: a later checkpoint than the log
ENOUGH = 8  # lines before it that show how far single ones scatter; of fewer only
HIGH = 0.5  # a loss half as high again counts, that is so in every line after the resume, and
NEAR = 8  # lines before the resume, and as many after it, that tell the level
LEAST = 2  # in as many lines at least, before and after


@record
class Jump:
    """``place`` in the second segment. ``over``: the loss came back to its old level within the segment, after ``steps`` iterations."""

    place: int
    onset: float
    before: float
    after: float
    over: bool
    steps: float | None


def jump(before: Losses, after: Losses) -> Jump | None:
    """A loss that begins far above where the same iterations, or those just before, had been."""
    known = min(len(before.values), len(after.values)) if len(before.values) < ENOUGH else ENOUGH
    if known < LEAST or not after.values or min(before.values) <= 0:
        return None
    start, interval = after.times[0], after.segment.interval
    if start <= min(before.times[-1], before.times[0] + 2 * max(interval, before.segment.interval)):
        return None  # from the beginning again: no resume
    if start > before.times[-1] + GAP * (before.times[-1] - before.times[0]) + 2 * interval:
        return None
    if known < ENOUGH and min(after.values) < (1 + HIGH) * max(before.values):
        return None
    values = _around(before, start - 20 * interval, 20)
    near = _around(before, start - NEAR * interval, NEAR)  # further back a loss that falls was higher
    level, sigma = median(near), max(noise(values), 0.5 * spread(near))
    count = min(FIRST, len(after.values))
    begun = median(after.values[:count])
    if begun - level < max(JUMP * level, CERTAIN * sigma / math.sqrt(count)):
        return None
    back = next(
        (
            place
            for place in range(1, len(after.values) - 1)
            if median(after.values[max(0, place - 1) : place + 2]) <= level + max(2 * sigma, 0.02 * level)
        ),
        None,
    )
    steps = after.times[back] - start if back is not None else None
    return Jump(after.places[0], after.segment.times[after.places[0]], level, begun, back is not None, steps)


def _around(losses: Losses, start: float, count: int) -> Sequence[float]:
    """The losses from iteration ``start`` on, twice ``count`` at most; the last ``count`` where there are hardly any."""
    first = bisect_left(losses.times, start)
    return losses.values[first : first + 2 * count] if len(losses.times) - first >= 5 else losses.values[-count:]
