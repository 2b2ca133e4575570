"""fp16: a loss scale that falls and falls, and steps that are skipped for ever; not the search for a scale that a run begins with."""

from __future__ import annotations

import math

from memdoctor.derive.series.segments import Segment
from memdoctor.records import record

LINES = 3  # at the end in which steps were skipped, and
MOST = 1e9  # no run skips more
STEPS = 8  # steps skipped in them
HALVINGS = 4  # by which the scale fell after good steps
LOW = 8.0  # a scale that no search ends at: gradients that overflow there are not finite at any scale


@record
class Collapse:
    """``place`` and ``onset`` of the first skipped step of the last row of them. ``good``: lines with a step taken before."""

    place: int
    onset: float
    before: float
    after: float
    skipped: int
    good: int


def collapse(segment: Segment) -> Collapse | None:
    if not segment.has("skipped") or not segment.has("scale"):
        return None
    skipped, scale = segment.values("skipped"), segment.values("scale")
    start = len(skipped)
    while start > 0 and skipped[start - 1] > 0:
        start -= 1
    total = sum(skipped[start:])
    if len(skipped) - start < LINES or not STEPS <= total < MOST:
        return None
    scales = [value for value in scale[start:] if math.isfinite(value) and value > 0]
    if not scales:
        return None
    good = sum(1 for place in range(start) if not skipped[place] > 0)
    earlier = [value for value in scale[:start] if math.isfinite(value) and value > 0]
    top = earlier[-1] if good and earlier else max(scales)
    fell = math.log2(top / scales[-1]) if top > 0 else 0.0
    if scales[-1] > LOW and not (good >= LINES and fell >= HALVINGS):
        return None
    if fell <= 0 and top <= 1:  # bf16 and fp32 print a scale of 1 throughout
        return None
    gap = segment.times[start] - segment.times[start - 1] if start else segment.times[start]
    onset = segment.times[start] - min(skipped[start], gap) + 1
    return Collapse(start, min(segment.times[start], onset), top, scales[-1], int(total), good)
