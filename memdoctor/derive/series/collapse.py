"""fp16: a loss scale that falls and falls, and steps that are skipped for ever; not the search for a scale that a run begins with."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from memdoctor.derive.series.segments import Segment
from memdoctor.derive.steps import NEAR, Steps
from memdoctor.model import Fact
from memdoctor.records import record

LINES = 3  # at the end in which steps were skipped, and
MOST = 1e9  # no run skips more
STEPS = 8  # steps skipped in them
HALVINGS = 4  # by which the scale fell after good steps
ENDED = ("at_minimum", "stuck", "static")  # what a loss scaler says of steps that no smaller scale saves
LOW = 8.0  # a scale that no search ends at: gradients that overflow there are not finite at any scale
FLOOR = 1.0  # the least scale of most scalers
GROWS = 5_000  # good steps after which any scaler tries a greater scale


@record
class Collapse:
    """``place`` and ``onset`` of the first skipped step of the last row of them. ``good``: lines with a step taken before; ``skipped`` is
    None where nothing counts them."""

    place: int
    onset: float
    before: float
    after: float
    skipped: int | None
    good: int


def collapse(segment: Segment) -> Collapse | None:
    if not segment.has("scale"):
        return None
    if not segment.has("skipped"):
        return _on_the_floor(segment)
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
    return Collapse(start, _onset(segment, skipped, start), top, scales[-1], int(total), good)


def _on_the_floor(segment: Segment) -> Collapse | None:
    """Where no line counts skipped steps: a scale that fell to its least value and never rose from it, while the loss tells of no step either."""
    scale = segment.values("scale")
    floor = len(scale)
    while floor > 0 and 0 < scale[floor - 1] <= FLOOR:
        floor -= 1
    if len(scale) - floor < LINES:
        return None
    start = floor
    while start > 0 and scale[start] < scale[start - 1] < math.inf:
        start -= 1
    if start == floor or scale[start] < 2**HALVINGS * scale[-1]:
        return None
    steps = segment.times[-1] - segment.times[floor]
    loss = segment.values("loss")[floor:] if segment.has("loss") else ()
    if steps < STEPS or not (steps > GROWS or (loss and all(math.isnan(value) or value == loss[-1] for value in loss))):
        return None
    return Collapse(start + 1, segment.times[start] + 1, scale[start], scale[-1], None, start + 1)


def _onset(segment: Segment, skipped: Sequence[float], start: int) -> float:
    """The first skipped step of those that the line at ``start`` counts: the last ones before it."""
    gap = segment.times[start] - segment.times[start - 1] if start else segment.times[start]
    return min(segment.times[start], segment.times[start] - min(skipped[start], gap) + 1)


def at_the_end(steps: Steps, facts: Sequence[Fact]) -> tuple[Segment, Collapse] | None:
    """The same where DeepSpeed's lines count the skipped steps and lines of their own tell the scale, as ``facts`` of this file and attempt."""
    table = steps.series.tables.get("deepspeed")
    told = [fact for fact in facts if fact.kind == "loss_scale" and fact.fields.get("name") != "growth"]
    if table is None or not told or not (told[-1].fields.get("name") in ENDED or (told[-1].fields.get("to") or LOW) <= 1):
        return None
    table.pack()
    lines = table.line.slice(0, len(table))
    last = max(steps.line(len(steps) - 1) + NEAR, told[-1].origin.line or 0)
    own = Steps(steps.file, bisect_left(lines, steps.line(0) - NEAR), bisect_right(lines, last), "deepspeed")
    if not len(own) or "skipped" not in table.spoken:
        return None
    segment = Segment(own, range(len(own)))
    skipped = segment.values("skipped")
    start = len(skipped)
    while start > 0 and skipped[start - 1] > 0:
        start -= 1
    total = sum(skipped[start:])
    scales = [
        value
        for fact in told
        for value in (fact.fields.get("from"), fact.fields.get("to"))
        if value and (fact.origin.line or 0) > _above(lines, own, start)
    ]
    least = 1 if any(fact.fields.get("name") == "at_minimum" for fact in told) else STEPS
    if start == len(skipped) or not least <= total < MOST or not scales:
        return None
    good = sum(1 for place in range(start) if not skipped[place] > 0)
    return segment, Collapse(start, _onset(segment, skipped, start), max(scales), min(scales), int(total), good)


def _above(lines: Sequence[int], own: Steps, start: int) -> int:
    """The line before which what stands belongs to steps before those of row ``start``."""
    return lines[own.first + start - 1] if own.first + start else 0
