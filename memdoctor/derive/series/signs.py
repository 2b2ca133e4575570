"""What showed a divergence before the loss did: a gradient norm that rose, a learning rate that leapt, a loss scale that fell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memdoctor.derive.series.robust import best_hinge, median, noise
from memdoctor.derive.series.segments import Segment
from memdoctor.records import record

NORM_RISE = 2.0  # the gradient norm that tells of a divergence before the loss does: three times its level
NORM_BACK = 400  # lines before the loss's own rise in which its level is sought
RATE = 2.0  # a learning rate that leaps by more is no schedule
RATE_BACK = 8  # lines between such a leap and what the loss makes of it
RATE_OFF = 3  # lines by which the beginning of a slow rise may be told too early
START = 10  # lines of a warm-up, in which it may
SCALE_GAP = 20  # lines between two falls of a loss scale that belong together
HALVINGS = 3  # in all: now and then one is how a dynamic scale finds out whether it may be larger


@record
class Norm:
    """Where a gradient norm leaves its level ``before``, and what it reaches."""

    place: int
    onset: float
    before: float
    after: float


@record
class Signs:
    """``first``: what showed a divergence before the loss did, since iteration ``onset``; both None where nothing did."""

    first: str | None
    onset: float | None
    norm: Norm | None
    rate: float | None
    rate_before: float | None


def signs(segment: Segment, place: int, onset: float, norm: Norm | None) -> Signs:
    """Of a divergence that began at ``place`` (of the segment) and iteration ``onset``."""
    found = [("gradient norm rose", norm.onset)] if norm is not None and norm.onset < onset else []
    fell = _scale(segment, place)
    if fell is not None and fell < onset:
        found.append(("loss scale fell", fell))
    first, since = min(found, key=lambda sign: sign[1], default=(None, None))
    rate, before = None, None
    if segment.has("lr"):
        column = segment.values("lr")
        rate = column[place]
        leapt = _rate(column, place)
        if leapt is not None:  # the cause, where the others are symptoms
            first, since = "learning rate rose", segment.times[leapt]
            before, rate = column[leapt - 1], column[leapt]
    return Signs(first, since, norm, rate, before)


def norm_before(segment: Segment, onset: int | None, end: int) -> Norm | None:
    """Where the gradient norm leaves its level. ``onset``: where the loss does, None where it does not; ``end``: behind the last loss."""
    if not segment.has("grad_norm"):
        return None
    norm = segment.values("grad_norm")
    start = max(0, (onset if onset is not None else end) - NORM_BACK)
    known = [place for place in range(start, end) if math.isfinite(norm[place]) and norm[place] > 0]
    if len(known) < 10:
        return None
    logs = [math.log(norm[place]) for place in known]
    tail = 3 if onset is None else max(3, min(len(known) // 4, end - onset))
    level = median(logs[:-tail])
    reached = median(logs[-tail:])
    sigma = max(noise(logs[:-tail]), 0.05)
    if reached - level < max(math.log(1 + NORM_RISE), 4 * sigma):
        return None
    first = len(known) - 1
    while first > 0 and logs[first - 1] > level + max(2.5 * sigma, 0.3):
        first -= 1
    first = _foot(segment, norm, known, logs, first, level, reached)
    return Norm(known[first], segment.times[known[first]], math.exp(level), math.exp(reached))


def _foot(
    segment: Segment, norm: Sequence[float], known: Sequence[int], logs: Sequence[float], first: int, level: float, reached: float
) -> int:
    """Where a norm begins to climb that is clearly up at ``first``: noise hides the beginning of a slow climb."""
    top = next((number for number in range(first, len(known)) if logs[number] >= level + 0.8 * (reached - level)), len(known) - 1)
    if top - first < 2:
        return first
    back = max(0, first - 2 * (top - first) - 4)
    window = known[back : top + 1]
    hinge = best_hinge([segment.times[place] for place in window], [norm[place] for place in window], math.exp(level), least=3)
    return back + hinge.place if hinge is not None and back + hinge.place < first else first


def _rate(column: Sequence[float], place: int) -> int | None:
    """The place of a leap just before ``place``."""
    found = None
    for number in range(max(1, place - RATE_BACK), min(place + RATE_OFF + 1, len(column))):
        if number > START and column[number - 1] > 0 and column[number] > RATE * column[number - 1]:
            found = number
    return found


def _scale(segment: Segment, place: int) -> float | None:
    """The iteration at which a loss scale began to fall that fell again and again up to ``place``."""
    if not segment.has("scale"):
        return None
    scale = segment.values("scale")
    start: int | None = None
    halvings = 0.0
    number = after = place
    while number > 0 and after - number <= SCALE_GAP:
        if 0 < scale[number] < scale[number - 1] < math.inf:
            halvings += math.log2(scale[number - 1] / scale[number])
            start = after = number
        number -= 1
    if start is None or halvings < HALVINGS or (start < SCALE_GAP and number == 0 and not _served(segment, start)):
        return None
    return segment.times[start]


def _served(segment: Segment, start: int) -> bool:
    """False where all steps up to ``start`` were skipped: that is the search for a scale that a run begins with."""
    skipped = segment.values("skipped") if segment.has("skipped") else ()
    return not skipped or any(not skipped[number] > 0 for number in range(start))
