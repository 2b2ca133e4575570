"""Events of step time, memory and of what a step waits for."""

from __future__ import annotations

import math
import random

from tests.made_runs.expected import Expected, Line
from tests.made_runs.trace import Trace, middle


def slower(rng: random.Random, trace: Trace, interval: int) -> Expected:
    at, factor = middle(rng, trace), rng.uniform(1.25, 3.0)
    for i in range(at, len(trace.ms)):
        trace.ms[i] *= factor
    return Expected(frozenset({"speed.regression"}), onset=at + 1)


def rampup(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The batch grows, as it was told to, and steps take longer with it."""
    steps = len(trace.ms)
    until, parts = int(steps * rng.uniform(0.3, 0.9)), rng.randint(2, 6)
    trace.batch = [64 * (1 + min(parts, (i // interval * interval) * (parts + 1) // until)) for i in range(steps)]
    for i in range(steps):
        trace.ms[i] *= trace.batch[i] / 64
    return Expected()


def drift(rng: random.Random, trace: Trace, interval: int) -> Expected:
    at, factor = middle(rng, trace, 0.1, 0.4), rng.uniform(1.4, 3.0)
    length = len(trace.ms) - at
    for i in range(at, len(trace.ms)):
        trace.ms[i] *= 1 + (factor - 1) * (i - at) / length
    return Expected(frozenset({"speed.regression"}), onset=at + 1, ramp=length)


def periodic(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """Every so many steps one takes long, and nothing says why."""
    trace.beats = {}
    _beat(rng, trace, interval)
    return Expected(note="speed.regression", says="what it does then: unknown")


def _beat(rng: random.Random, trace: Trace, interval: int) -> int:
    period, extra = rng.choice((5, 10, 20)) * interval, rng.uniform(1.0, 6.0) * interval
    for i in range(period - 1, len(trace.ms), period):
        trace.ms[i] *= 1 + extra
    return period


def evaluations(rng: random.Random, trace: Trace, interval: int) -> Expected:
    return _told(rng, trace, interval, "evaluation")


def saves(rng: random.Random, trace: Trace, interval: int) -> Expected:
    return _told(rng, trace, interval, "checkpoint")


def _told(rng: random.Random, trace: Trace, interval: int, name: str) -> Expected:
    """Steps that are slow because of what lines beside them tell."""
    period = _beat(rng, trace, interval)
    trace.beats = dict.fromkeys(range(period - 1, len(trace.ms), period), name)
    return Expected(note="speed.regression", says=name)


def collections(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """Python's garbage collector, which Megatron-LM runs by hand at an interval of its arguments."""
    trace.beats = {}
    period = _beat(rng, trace, interval)
    trace.arguments = {"manual_gc": True, "manual_gc_interval": period, "eval_interval": 7 * period, "save_interval": 50 * period}
    return Expected(note="speed.regression", says="what it does then: garbage collection")


def growth(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """Allocated memory climbs step by step; in half of the runs until the card is full."""
    at = middle(rng, trace, 0.05, 0.4)
    trace.grows = True
    base, trace.oom = trace.memory[-1], rng.random() < 0.5
    room = trace.capacity * 0.95 - trace.rise - base
    goal = trace.capacity * 0.97 - trace.rise if trace.oom else base + room * rng.uniform(0.3, 0.9)
    slope = (goal - base) / (len(trace.memory) - at)
    for i in range(at, len(trace.memory)):
        trace.memory[i] += slope * (i - at)
    return Expected(frozenset({"oom.growth"}), onset=at + 1, ramp=len(trace.memory) - at, grows=Line(at + 1, base + trace.rise, slope))


def loader(rng: random.Random, trace: Trace, interval: int) -> Expected:
    share = rng.uniform(0.4, 0.8)
    for i in range(len(trace.ms)):
        trace.data[i] = trace.ms[i] * share * math.exp(0.1 * rng.gauss(0, 1))
        trace.ms[i] = max(trace.ms[i], trace.data[i] / 0.95)
    return Expected(frozenset({"speed.data"}))


def offload(rng: random.Random, trace: Trace, interval: int) -> Expected:
    trace.offload = rng.choice(("cpu", "cpu", "nvme"))
    share = rng.uniform(0.55, 0.85)
    for i in range(len(trace.ms)):
        trace.optimizer[i] = trace.ms[i] * share
    return Expected(frozenset({"speed.offload"}))


def flushes(rng: random.Random, trace: Trace, interval: int) -> Expected:
    trace.flushes = {i for i in range(3, len(trace.ms)) if rng.random() < 0.5}
    return Expected(frozenset({"speed.allocator"}))
