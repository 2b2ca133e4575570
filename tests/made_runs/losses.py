"""Events of the loss: each plants itself in a healthy run and says what it should be called, and since when."""

from __future__ import annotations

import math
import random

from tests.made_runs.expected import Expected
from tests.made_runs.trace import COLUMNS, NAN, Trace, middle, search_scale

DIVERGED = frozenset({"nan.divergence"})


def nothing(rng: random.Random, trace: Trace, interval: int) -> Expected:
    if rng.random() < 0.2:
        good = search_scale(rng, trace)
        for i in range(good + 5, len(trace.loss)):  # now and then a larger scale is tried
            if rng.random() < 3 / len(trace.loss):
                trace.skipped[i] = True
    return Expected()


def ramp(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """Loss and norm climb and stay up there, or end as NaN."""
    at = middle(rng, trace)
    length = _climb(rng, trace, interval, at)
    for i in range(at, len(trace.loss)):
        trace.norm[i] *= 1 + 20 * min(1.0, (i - at) / length)
    return Expected(DIVERGED, onset=at + 1, ramp=length)


def _climb(rng: random.Random, trace: Trace, interval: int, at: int) -> int:
    """The loss climbs from index ``at`` on; over how many steps."""
    length = min(int(len(trace.loss) * 0.15), rng.randint(5, 30) * interval)
    top, ends = rng.uniform(1.5, 4.0), rng.random() < 0.5
    for i in range(at, len(trace.loss)):
        trace.loss[i] *= 1 + (top - 1) * min(1.0, (i - at) / length)
        if ends and i >= at + length:
            trace.loss[i] = trace.norm[i] = NAN
    return length


def after_norm(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The gradient norm climbs for a while before the loss does."""
    at, lead = middle(rng, trace), rng.randint(4, 15) * interval
    top = rng.uniform(8, 40)
    for i in range(at, len(trace.loss)):
        trace.norm[i] *= 1 + (top - 1) * min(1.0, (i - at) / lead)
    length = _climb(rng, trace, interval, at + lead)
    return Expected(DIVERGED, onset=at + lead + 1, ramp=length, sign="gradient norm rose", sign_onset=at + 1, sign_ramp=lead)


def after_rate(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The learning rate leaps (a schedule that was changed, a warm-up that ended), and the loss follows."""
    at, lead, factor = middle(rng, trace), rng.randint(0, 4) * interval, rng.uniform(3, 10)
    for i in range(at, len(trace.loss)):
        trace.lr[i] *= factor
    length = _climb(rng, trace, interval, at + lead)
    for i in range(at + lead, len(trace.loss)):
        trace.norm[i] *= 1 + 10 * min(1.0, (i - at - lead) / length)
    return Expected(DIVERGED, onset=at + lead + 1, ramp=length, sign="learning rate rose", sign_onset=at + 1)


def after_scale(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """fp16: overflows become frequent and the loss scale falls and falls while steps are still taken; then the loss climbs."""
    good = search_scale(rng, trace)
    at, lead = max(good + 20 * interval, middle(rng, trace)), rng.randint(6, 15) * interval
    falls = rng.randint(4, 7)
    when = sorted(rng.sample(range(at, at + lead), min(falls, lead)))
    for i in range(at, len(trace.loss)):
        trace.skipped[i] = i in when
        trace.scale[i] = trace.scale[i - 1] / 2 if i - 1 in when else trace.scale[i - 1]
    length = _climb(rng, trace, interval, at + lead)
    return Expected(DIVERGED, onset=at + lead + 1, ramp=length, sign="loss scale fell", sign_onset=when[0] + 1, sign_ramp=lead)


def leap(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The loss leaps up and does not come back."""
    at, factor = middle(rng, trace), rng.uniform(1.5, 4.0)
    for i in range(at, len(trace.loss)):
        trace.loss[i] *= factor
        trace.norm[i] *= 1 + 10 * rng.random()
    return Expected(DIVERGED, onset=at + 1)


def sudden_nan(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """NaN out of the blue: however the framework shows it."""
    at = middle(rng, trace)
    for i in range(at, len(trace.loss)):
        trace.loss[i] = trace.norm[i] = NAN
    return Expected(frozenset({"nan.divergence", "nan.data"}), onset=at + 1)


def skipped_nan(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """NaN in fp16: every step is skipped, and the scale falls to its floor."""
    search_scale(rng, trace)
    at = middle(rng, trace)
    scale = trace.scale[at]
    for i in range(at, len(trace.loss)):
        trace.loss[i] = trace.norm[i] = NAN
        trace.skipped[i], trace.scale[i] = True, scale
        scale = max(1.0, scale / 2)
    return Expected(frozenset({"nan.divergence", "nan.data", "nan.fp16_overflow"}), onset=at + 1)


def norm_nan(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The norm is NaN while the loss is not: no step changes anything any more."""
    at = middle(rng, trace)
    level, sigma = trace.loss[at], rng.uniform(0.002, 0.01)
    for i in range(at, len(trace.loss)):
        trace.loss[i], trace.norm[i] = level * math.exp(sigma * rng.gauss(0, 1)), NAN
    return Expected(frozenset({"nan.masked_grad"}), onset=at + 1)


def spike(rng: random.Random, trace: Trace, interval: int) -> Expected:
    at, length, factor = middle(rng, trace), rng.randint(2, 12) * interval, rng.uniform(1.4, 3.0)
    for i in range(at, min(at + length, len(trace.loss))):
        share = 1 - (i - at) / length
        trace.loss[i] *= 1 + (factor - 1) * share
        trace.norm[i] *= 1 + 8 * share
    return Expected(note="loss.spike", onset=at + 1)


def collapse(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """fp16: a normal start, and from some step on every step overflows until the scale lies at its floor."""
    search_scale(rng, trace)
    at = middle(rng, trace, 0.3, 0.5)
    scale = trace.scale[at]
    for i in range(at, len(trace.loss)):
        trace.skipped[i], trace.scale[i] = True, scale
        scale = max(1.0, scale / 2)
    return Expected(frozenset({"nan.fp16_overflow"}), onset=at + 1)


def plateau(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The loss does not fall from its first value, or sticks at that of a guess by frequency."""
    level, sigma = rng.uniform(7.0, 12.0), rng.uniform(0.002, 0.01)
    frozen, stopped = rng.random() < 0.5, rng.random() < 0.5
    for i in range(len(trace.loss)):
        early = 0.0 if frozen else 0.35 * level * math.exp(-i / (0.02 * len(trace.loss)))
        trace.loss[i] = (level + early) * math.exp(sigma * rng.gauss(0, 1))
        if frozen and stopped:
            trace.lr[i] = 0.0
    return Expected(frozenset({"loss.plateau"}))


def resume(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """A restart from the last checkpoint with a wrong state: the loss is far up and comes back slowly, or not."""
    at = middle(rng, trace)
    at -= at % (10 * interval)
    back = rng.randint(0, 5) * interval
    factor, tau = rng.uniform(1.35, 3.0), rng.uniform(8, 60) * interval
    _restart(trace, at, back)
    for i in range(at + back, len(trace.loss)):
        trace.loss[i] *= 1 + (factor - 1) * math.exp(-(i - at - back) / tau)
    return Expected(frozenset({"nan.checkpoint"}), onset=at + 1)


def _restart(trace: Trace, at: int, back: int) -> None:
    """The run ends ``back`` steps after a checkpoint of step ``at`` and goes on from there."""
    trace.restart = at + back
    tail = range(at, len(trace.loss))
    trace.iteration = [*range(1, at + back + 1), *(i + 1 for i in tail)]
    for name in COLUMNS:
        values = getattr(trace, name)
        if values:
            setattr(trace, name, [*values[: at + back], *(values[i] for i in tail)])


def good_resume(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """A restart after which all goes on as before."""
    at = middle(rng, trace)
    _restart(trace, at - at % (10 * interval), rng.randint(0, 5) * interval)
    return Expected()


def experts(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The router sends ever more tokens to few experts: the loss that balances them climbs, at once or slowly."""
    from tests.made_runs.trace import with_experts

    with_experts(rng, trace)
    at, factor = middle(rng, trace, 0.2, 0.6), rng.uniform(1.7, 4.0)
    length = rng.choice((0, rng.randint(10, 40) * interval))
    for i in range(at, len(trace.aux)):
        trace.aux[i] *= 1 + (factor - 1) * (min(1.0, (i - at) / length) if length else 1.0)
    return Expected(frozenset({"balance.stage_time"}), onset=at + 1, ramp=length)
