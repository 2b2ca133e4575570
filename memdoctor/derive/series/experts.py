"""Load on experts that is far from even, as the losses that balance it tell."""

from __future__ import annotations

import math

from memdoctor.derive.series.robust import median
from memdoctor.derive.series.segments import Segment
from memdoctor.records import record

FEWEST = 8  # lines
EVEN = 1.0  # Megatron-LM's load balancing loss where all experts get the same; twice that where the busiest ones get twice their share
UNEVEN = 1.5


@record
class Experts:
    place: int
    onset: float
    first: float
    last: float


def experts(segment: Segment) -> Experts | None:
    """A load balancing loss that is far above its even value, and rose to it."""
    if not segment.has("aux"):
        return None
    column = segment.values("aux")
    known = [place for place in range(len(column)) if math.isfinite(column[place])]
    if len(known) < FEWEST:
        return None
    first = median([column[place] for place in known[: max(3, len(known) // 10)]])
    last = median([column[place] for place in known[-max(3, len(known) // 10) :]])
    if last < UNEVEN * EVEN or last < 0.9 * first:
        return None
    level = max(UNEVEN * EVEN, (first + last) / 2) if last > 1.2 * first else 0.0
    place = next(place for place in known if column[place] >= level)
    return Experts(place, segment.times[place], first, last)
