"""Load on experts that is far from even, as the losses that balance it tell."""

from __future__ import annotations

import math

from memdoctor.derive.series.levels import rise_to_the_end
from memdoctor.derive.series.robust import typical
from memdoctor.derive.series.segments import Segment
from memdoctor.derive.series.selecting import at, select
from memdoctor.records import record

FEWEST = 12  # lines
RISE = 0.5  # above its lowest level: even experts hold their value, 1 (core 0.8 and newer, DeepSpeed) or the experts of a token (before it)
HIGH = 3.0  # a value that is uneven whichever of the two counts: half as much again as two experts a token


@record
class Experts:
    """``name``: rise (it left an even level), level (high all the time)."""

    name: str
    place: int
    onset: float
    first: float
    last: float


def experts(segment: Segment) -> Experts | None:
    """A load balancing loss that rose far above its level for good, or was far above any even value all the time."""
    if not segment.has("aux"):
        return None
    column = segment.values("aux")
    values, places = select(column, 0, len(column), lambda place: math.isfinite(column[place]))
    if len(values) < FEWEST or min(values) <= 0:
        return None
    found = rise_to_the_end(at(segment.times, places), values, ratio=RISE)
    if found is not None:
        return Experts("rise", places[found.place], found.onset, found.before, found.after)
    level = typical(values)
    if level >= HIGH and min(values) >= HIGH / 2:
        return Experts("level", places[0], segment.times[places[0]], values[0], level)
    return None
