"""What the loss does: diverges, spikes, does not fall, or jumps at a resume. Pure: columns in, findings out."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from memdoctor.derive.series.levels import Rise, reduce, rise_to_the_end, smoothing
from memdoctor.derive.series.robust import SAMPLE, line, median, running_median, typical
from memdoctor.derive.series.segments import Segment
from memdoctor.derive.series.selecting import at, select
from memdoctor.derive.series.signs import Signs, norm_before, signs
from memdoctor.derive.series.spikes import Spike, spikes
from memdoctor.records import record

RISE = 0.15  # above its lowest level, for good: no noise, schedule or change of data of a healthy run does that
RISE_TO_NAN = 0.1  # the same, where NaN follows
ZEROS = 3  # losses of exactly 0 in a row that stand for NaN (Hugging Face's Trainer shows it so)


@record
class Losses:
    """The finite losses of a segment: ``times`` and ``values``, ``places`` in the segment; ``bad`` is the place of the first loss from
    which on none is finite, None where the last one is."""

    segment: Segment
    times: Sequence[float]
    values: Sequence[float]
    places: Sequence[int]
    bad: int | None


def losses_of(segment: Segment) -> Losses:
    """Losses that were printed and are finite, up to where they end for good."""
    loss = segment.values("loss")
    skipped = segment.values("skipped") if segment.has("skipped") else ()
    if skipped and any(map(_not_taken, loss, skipped)):
        loss = array("d", (math.nan if _not_taken(value, steps) else value for value, steps in zip(loss, skipped, strict=True)))
    if loss and math.isfinite(sum(loss)) and loss[-1] != 0:  # the ordinary case, and the one that may be long
        return Losses(segment, segment.times, loss, range(len(loss)), None)
    norm = segment.values("grad_norm") if segment.has("grad_norm") else ()
    count = len(loss)
    end = next((place for place in range(count - 1, -1, -1) if math.isfinite(loss[place])), -1) + 1
    zeros = next((number for number in range(end) if loss[end - 1 - number] != 0), end)
    if ZEROS <= zeros < end:
        end -= zeros
        end = next((place for place in range(end - 1, -1, -1) if math.isfinite(loss[place])), -1) + 1
    values, places = select(loss, 0, end, lambda place: math.isfinite(loss[place]))
    bad = None
    for place in range(end, count):  # a line without a loss may only be one of skipped steps
        told = (norm and not math.isnan(norm[place])) or not (skipped and skipped[place] > 0)
        if told:
            bad = place
            break
    return Losses(segment, at(segment.times, places), values, places, bad)


def _not_taken(loss: float, skipped: float) -> bool:
    """A line of skipped steps alone, whose mean over none Megatron-LM prints as 0 from core 0.17 on."""
    return loss == 0 and skipped > 0


@record
class Divergence:
    """``name``: rise (finite to the end), nan (a rise that ends in NaN), norm (only the norm rose before NaN).

    ``place`` in the segment; ``onset`` iteration. ``signs``: what showed it first.
    """

    name: str
    place: int
    onset: float
    before: float
    after: float
    ramp: int
    signs: Signs


def divergence(losses: Losses) -> Divergence | None:
    """A loss that left its trend for good."""
    segment, values = losses.segment, losses.values
    found: Rise | None = None
    if len(values) >= 6 and min(values) > 0:
        if losses.bad is None:
            found = rise_to_the_end(losses.times, values, ratio=RISE)
        else:
            found = rise_to_the_end(losses.times, values, ratio=RISE_TO_NAN, tail=3)
    onset = losses.places[found.place] if found is not None else None
    norm = norm_before(segment, onset, losses.places[-1] + 1) if losses.places else None
    if found is not None and onset is not None:
        name = "rise" if losses.bad is None else "nan"
        return Divergence(name, onset, found.onset, found.before, found.after, found.ramp, signs(segment, onset, found.onset, norm))
    if losses.bad is not None and norm is not None and len(values) >= 6:
        place = norm.place
        return Divergence("norm", place, norm.onset, median(values[-5:]), values[-1], 0, signs(segment, place, norm.onset, norm))
    return None


def spikes_of(losses: Losses, until: int | None) -> list[Spike]:
    """Spikes that came back; ``place`` is that in the segment. None from ``until`` (a place in the segment) on."""
    return [
        Spike(losses.places[spike.place], spike.length, spike.before, spike.peak)
        for spike in spikes(losses.values)
        if until is None or losses.places[min(spike.place + spike.length, len(losses.places) - 1)] < until
    ]


@record
class Plateau:
    """``name``: lr_zero (the learning rate is 0), constant (the loss is the same to the last digit), frozen (the same, after it had moved),
    high (far above what is learnt first). ``steps`` iterations long."""

    name: str
    place: int
    onset: float
    level: float
    first: float
    steps: float
    lr: float | None


LONG = 300  # iterations without any fall before anybody should worry, and
MANY = 20  # lines
SOME = 8  # lines that are enough where each says that the learning rate is 0
HIGH = 0.6  # of the first loss: a guess by frequency alone is below three quarters of one at random, a learning model soon far below half
FRESH = 4.0  # a first loss from which on weights are taken for random ones: a language model knows nothing yet
SEEN = 0.05  # a smaller loss that is always the same may only be rounded
MOVED = 3  # losses that differ, from which on it did not stand still from the start
EXACT = 1e-5  # by which a loss differs from what two digits can tell: others may only be rounded
FLAT = 0.01  # of its level that a flat loss may fall over its second half, or
CHANCE = 2.5  # standard errors of the fall, but never more than
FLATTEST = 0.03  # of its level


def plateau(losses: Losses) -> Plateau | None:
    """A loss that does not fall although it should; None also where too little is known."""
    values, times, segment = losses.values, losses.times, losses.segment
    count = len(values)
    if count < SOME or times[-1] - times[0] < LONG or min(values) <= 0:
        return None
    lr = segment.values("lr") if segment.has("lr") else ()
    rate = typical([value for value in _some(lr[len(lr) // 2 :]) if math.isfinite(value)] or [math.nan]) if lr else math.nan
    first = median(values[:5])
    tail = values[count // 2 :]
    level = typical(tail)
    known = None if math.isnan(rate) else rate
    if count < MANY and rate != 0:
        return None
    if min(tail) == max(tail) and level >= SEEN:
        start = next(place for place in range(count - 1, -1, -1) if values[place] != tail[0] or place == 0)
        if len(set(values[: start + 1])) >= MOVED and abs(level - round(level, 2)) > EXACT:
            return Plateau("frozen", losses.places[start + 1], times[start] + 1, level, first, times[-1] - times[start], known)
        return Plateau("constant", losses.places[start], times[start], level, first, times[-1] - times[start], known)
    if rate == 0 and _flat(times[count // 2 :], tail) and (first >= FRESH or _exact(lr)):
        start = _since_zero(losses, lr)
        if times[-1] - segment.times[start] >= LONG:
            return Plateau("lr_zero", start, segment.times[start], level, first, times[-1] - segment.times[start], 0.0)
    if first >= FRESH and level >= HIGH * first and _flat(times[count // 2 :], tail):
        coarse, size = reduce(values)
        smooth = running_median(coarse, smoothing(len(coarse)))
        start = size * next(place for place in range(len(coarse)) if smooth[place] <= level * (1 + 2 * FLAT))
        if times[-1] - times[start] >= LONG:
            return Plateau("high", losses.places[start], times[start], level, first, times[-1] - times[start], known)
    return None


def _flat(times: Sequence[float], values: Sequence[float]) -> bool:
    """True where a straight line through ``values`` falls by no more than a flat loss may over their whole length, or than noise alone can."""
    step = max(1, len(values) // 2_000)
    start, slope, left = line(times[::step], values[::step])
    count = len(values[::step])
    chance = CHANCE * math.sqrt(12 * left) / count  # a slope's standard error, times the length: sigma * sqrt(12 / n)
    return slope * (times[-1] - times[0]) > -max(FLAT * abs(start), min(chance, FLATTEST * abs(start)))


def _exact(lr: Sequence[float]) -> bool:
    """True where a printed 0 is one: learning rates near it were told apart, so it is not only rounded."""
    known = {value for value in _some(lr) if value > 0}
    return len(known) >= 5 and min(known) < 0.3 * max(known)


def _some(values: Sequence[float]) -> Sequence[float]:
    return values[:: 1 + len(values) // SAMPLE]


def _since_zero(losses: Losses, lr: Sequence[float]) -> int:
    start = len(lr) - 1
    while start > 0 and lr[start - 1] == 0:
        start -= 1
    return start
