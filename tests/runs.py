"""Training runs made up from a seed: healthy ones, and ones with a single event planted. What each should be called, and since when.

``make(event, shape, interval, seed)`` simulates every step (loss, norm, scale, step time, memory) with the noise of real runs, plants the
event, and prints one line per log interval in the shape of one of the frameworks (tests/run_shapes.py).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

NAN = math.nan
GIB = 1024.0**3


@dataclass
class Trace:
    """What happened, one entry a step; step i+1 is at index i. ``iteration`` are the numbers of the steps (a resume goes back)."""

    loss: list[float]
    norm: list[float]
    lr: list[float]
    scale: list[float]
    skipped: list[bool]
    ms: list[float]
    data: list[float]  # of ms, spent waiting for data
    optimizer: list[float]  # of ms, spent in the optimizer
    memory: list[float]  # allocated bytes after the step
    iteration: list[int]
    restart: int | None = None  # index of the first step after a resume
    capacity: float = 80 * GIB
    flushes: set[int] = field(default_factory=set)  # indices of steps with an allocator's cache flush
    grows: bool = False
    oom: bool = False
    offload: bool = False
    fp16: bool = False


@dataclass(frozen=True)
class Expected:
    """``causes``: any of these is right; none: nothing above a note. ``note``: a cause that must be among the notes.

    ``onset``: the step at which the event began; ``ramp``: over how many steps it grew (0: at once).
    """

    causes: frozenset[str] = frozenset()
    note: str | None = None
    onset: int | None = None
    ramp: int = 0


@dataclass(frozen=True)
class MadeRun:
    text: str
    expected: Expected
    interval: int

    def onset_is_right(self, found: int | None) -> bool:
        if self.expected.onset is None:
            return True
        if found is None:
            return False
        room = max(3 * self.interval, 0.1 * self.expected.ramp) if self.expected.ramp else self.interval
        return abs(found - self.expected.onset) <= room


def healthy(rng: random.Random, steps: int) -> Trace:
    """A run with nothing wrong: a curve of one of three kinds, its noise, and step times with the odd hiccup."""
    kind = rng.choice(("scratch", "continued", "tuning"))
    if kind == "scratch":
        top, floor = rng.uniform(9.5, 12.0), rng.uniform(1.7, 2.6)
        tau, power = steps * rng.uniform(0.005, 0.05), rng.uniform(0.5, 1.0)
        curve = [floor + (top - floor) * (1 + i / tau) ** -power for i in range(steps)]
    elif kind == "continued":
        level, fall = rng.uniform(1.6, 3.0), rng.uniform(0.0, 0.04)
        curve = [level * (1 - fall * i / steps) for i in range(steps)]
    else:
        level, fall, tau = rng.uniform(0.8, 2.5), rng.uniform(0.1, 0.5), steps * rng.uniform(0.05, 0.4)
        curve = [level * (1 - fall * (1 - math.exp(-i / tau))) for i in range(steps)]
    sigma, jitter = math.exp(rng.uniform(math.log(0.003), math.log(0.04))), rng.uniform(0.05, 0.3)
    drift, loss = 0.0, []
    for value in curve:
        drift = 0.8 * drift + 0.3 * sigma * rng.gauss(0, 1)
        loss.append(value * math.exp(drift + sigma * rng.gauss(0, 1)))
    level = rng.uniform(0.2, 2.0)
    early = rng.uniform(0, 6)
    norm = [level * (1 + early * math.exp(-i / (0.03 * steps))) * math.exp(jitter * rng.gauss(0, 1)) for i in range(steps)]
    peak, warm = 10 ** rng.uniform(-5, -3.3), max(1, int(steps * rng.uniform(0.005, 0.05)))
    lr = [peak * min(1.0, (i + 1) / warm) * (0.55 + 0.45 * math.cos(math.pi * i / steps)) for i in range(steps)]
    base, wobble = math.exp(rng.uniform(math.log(150), math.log(30_000))), rng.uniform(0.003, 0.05)
    ms = [base * math.exp(wobble * rng.gauss(0, 1)) * (rng.uniform(1.2, 3) if rng.random() < 0.003 else 1) for _ in range(steps)]
    ms[0] *= rng.uniform(2, 20)
    held = rng.uniform(10, 60) * GIB
    waiting, update = rng.uniform(0.0, 0.05), rng.uniform(0.02, 0.15)
    return Trace(
        loss, norm, lr, [1.0] * steps, [False] * steps, ms, [value * waiting for value in ms], [value * update for value in ms],
        [held * (1 + 0.002 * rng.gauss(0, 1)) if i else held * 0.8 for i in range(steps)], list(range(1, steps + 1)),
    )  # fmt: skip


def _nothing(rng: random.Random, trace: Trace, interval: int) -> Expected:
    if rng.random() < 0.2:
        _search_scale(rng, trace)
    return Expected()


def _search_scale(rng: random.Random, trace: Trace) -> int:
    """A normal fp16 start: the scale falls from its first value until the gradients fit. Returns the first good step."""
    trace.fp16 = True
    scale = 2.0 ** rng.choice((16, 32))
    good = 2.0 ** rng.randint(10, 15)
    i = 0
    while scale > good:
        trace.skipped[i], trace.scale[i] = True, scale
        scale /= 2
        i += 1
    for j in range(i, len(trace.scale)):
        trace.scale[j] = scale
    return i


def _middle(rng: random.Random, trace: Trace, low: float = 0.4, high: float = 0.75) -> int:
    return int(len(trace.loss) * rng.uniform(low, high))


def _ramp(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """Loss and norm climb and stay up there, or end as NaN."""
    at = _middle(rng, trace)
    length = min(int(len(trace.loss) * 0.15), rng.randint(5, 30) * interval)
    top = rng.uniform(1.5, 4.0)
    ends = rng.random() < 0.5
    for i in range(at, len(trace.loss)):
        share = min(1.0, (i - at) / length)
        trace.norm[i] *= 1 + 20 * share
        trace.loss[i] *= 1 + (top - 1) * share
        if ends and i >= at + length:
            trace.loss[i] = trace.norm[i] = NAN
    return Expected(frozenset({"nan.divergence"}), onset=at + 1, ramp=length)


def _leap(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The loss leaps up and does not come back."""
    at, factor = _middle(rng, trace), rng.uniform(1.5, 4.0)
    for i in range(at, len(trace.loss)):
        trace.loss[i] *= factor
        trace.norm[i] *= 1 + 10 * rng.random()
    return Expected(frozenset({"nan.divergence"}), onset=at + 1)


def _sudden_nan(rng: random.Random, trace: Trace, interval: int) -> Expected:
    at = _middle(rng, trace)
    for i in range(at, len(trace.loss)):
        trace.loss[i] = trace.norm[i] = NAN
    return Expected(frozenset({"nan.divergence", "nan.data"}), onset=at + 1)


def _spike(rng: random.Random, trace: Trace, interval: int) -> Expected:
    at, length, factor = _middle(rng, trace), rng.randint(2, 12) * interval, rng.uniform(1.4, 3.0)
    for i in range(at, min(at + length, len(trace.loss))):
        share = 1 - (i - at) / length
        trace.loss[i] *= 1 + (factor - 1) * share
        trace.norm[i] *= 1 + 8 * share
    return Expected(note="loss.spike", onset=at + 1)


def _collapse(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """fp16: a normal start, and from some step on every step overflows until the scale lies at its floor."""
    _search_scale(rng, trace)
    at = _middle(rng, trace, 0.3, 0.5)
    scale = trace.scale[at]
    for i in range(at, len(trace.loss)):
        trace.skipped[i], trace.scale[i] = True, scale
        scale = max(1.0, scale / 2)
    return Expected(frozenset({"nan.fp16_overflow"}), onset=at + 1)


def _plateau(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """The loss does not fall from its first value, or sticks at that of a guess by frequency."""
    level, sigma = rng.uniform(7.0, 12.0), rng.uniform(0.002, 0.01)
    frozen, stopped = rng.random() < 0.5, rng.random() < 0.5
    for i in range(len(trace.loss)):
        early = 0.0 if frozen else 0.35 * level * math.exp(-i / (0.02 * len(trace.loss)))
        trace.loss[i] = (level + early) * math.exp(sigma * rng.gauss(0, 1))
        if frozen and stopped:
            trace.lr[i] = 0.0
    return Expected(frozenset({"loss.plateau"}))


def _resume(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """A restart from the last checkpoint with a wrong state: the loss is far up and comes back slowly, or not."""
    at = _middle(rng, trace)
    at -= at % (10 * interval)
    back = rng.randint(0, 5) * interval
    factor, tau = rng.uniform(1.35, 3.0), rng.uniform(8, 60) * interval
    trace.restart = at + back
    tail = range(at, len(trace.loss))
    trace.iteration = [*range(1, at + back + 1), *(i + 1 for i in tail)]
    for name in ("loss", "norm", "lr", "scale", "skipped", "ms", "data", "optimizer", "memory"):
        values = getattr(trace, name)
        setattr(trace, name, [*values[: at + back], *(values[i] for i in tail)])
    for i in range(at + back, len(trace.loss)):
        trace.loss[i] *= 1 + (factor - 1) * math.exp(-(i - at - back) / tau)
    return Expected(frozenset({"nan.checkpoint"}), onset=at + 1)


def _slower(rng: random.Random, trace: Trace, interval: int) -> Expected:
    at, factor = _middle(rng, trace), rng.uniform(1.25, 3.0)
    for i in range(at, len(trace.ms)):
        trace.ms[i] *= factor
    return Expected(frozenset({"speed.regression"}), onset=at + 1)


def _drift(rng: random.Random, trace: Trace, interval: int) -> Expected:
    at, factor = _middle(rng, trace, 0.1, 0.4), rng.uniform(1.4, 3.0)
    length = len(trace.ms) - at
    for i in range(at, len(trace.ms)):
        trace.ms[i] *= 1 + (factor - 1) * (i - at) / length
    return Expected(frozenset({"speed.regression"}), onset=at + 1, ramp=length)


def _periodic(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """Every so many steps one takes long: evaluation, a checkpoint, garbage collection."""
    period, extra = rng.choice((5, 10, 20)) * interval, rng.uniform(1.0, 6.0) * interval
    for i in range(period - 1, len(trace.ms), period):
        trace.ms[i] *= 1 + extra
    return Expected(note="speed.regression")


def _growth(rng: random.Random, trace: Trace, interval: int) -> Expected:
    """Allocated memory climbs step by step; in half of the runs until the card is full."""
    at = _middle(rng, trace, 0.05, 0.4)
    trace.grows = True
    base, trace.oom = trace.memory[-1], rng.random() < 0.5
    goal = trace.capacity * 0.97 if trace.oom else base + (trace.capacity * 0.95 - base) * rng.uniform(0.3, 0.9)
    for i in range(at, len(trace.memory)):
        trace.memory[i] += (goal - base) * (i - at) / (len(trace.memory) - at)
    return Expected(frozenset({"oom.growth"}), onset=at + 1, ramp=len(trace.memory) - at)


def _loader(rng: random.Random, trace: Trace, interval: int) -> Expected:
    share = rng.uniform(0.4, 0.8)
    for i in range(len(trace.ms)):
        trace.data[i] = trace.ms[i] * share * math.exp(0.1 * rng.gauss(0, 1))
        trace.ms[i] = max(trace.ms[i], trace.data[i] / 0.95)
    return Expected(frozenset({"speed.data"}))


def _offload(rng: random.Random, trace: Trace, interval: int) -> Expected:
    trace.offload = True
    share = rng.uniform(0.55, 0.85)
    for i in range(len(trace.ms)):
        trace.optimizer[i] = trace.ms[i] * share
    return Expected(frozenset({"speed.offload"}))


def _flushes(rng: random.Random, trace: Trace, interval: int) -> Expected:
    trace.flushes = {i for i in range(3, len(trace.ms)) if rng.random() < 0.5}
    return Expected(frozenset({"speed.allocator"}))


EVENTS: dict[str, Callable[[random.Random, Trace, int], Expected]] = {
    "healthy": _nothing,
    "ramp": _ramp,
    "leap": _leap,
    "sudden_nan": _sudden_nan,
    "spike": _spike,
    "collapse": _collapse,
    "plateau": _plateau,
    "resume": _resume,
    "slower": _slower,
    "drift": _drift,
    "periodic": _periodic,
    "growth": _growth,
    "loader": _loader,
    "offload": _offload,
    "flushes": _flushes,
}
_MEGATRON = ("megatron", "megatron_old", "megatron_deepspeed")
_LOSS = (*_MEGATRON, "deepspeed", "pipeline", "trainer", "bars", "nemo", "plain", "titan")
# What a shape does not print cannot be seen in it.
SHAPES_OF: dict[str, tuple[str, ...]] = {
    "healthy": _LOSS,
    **dict.fromkeys(("ramp", "leap", "sudden_nan", "spike", "plateau"), _LOSS),
    "collapse": (*_MEGATRON, "deepspeed"),
    "resume": (*_MEGATRON, "deepspeed", "nemo", "titan"),
    **dict.fromkeys(("slower", "drift", "periodic"), _LOSS),
    "growth": ("megatron", "megatron_old", "deepspeed", "titan"),
    "loader": (*_MEGATRON, "deepspeed", "plain"),
    "offload": ("megatron", "deepspeed"),
    "flushes": ("deepspeed",),
}


def make(event: str, shape: str, interval: int, seed: int) -> MadeRun:
    from tests.run_shapes import SHAPES

    rng = random.Random(f"{event} {shape} {interval} {seed}")
    least = -(-600 // interval) if event == "plateau" else 80  # nobody calls a loss stuck after a few steps
    rows = rng.randint(max(80, least), max(least + 50, {1: 400, 10: 300}.get(interval, 160)))
    trace = healthy(rng, rows * interval)
    expected = EVENTS[event](rng, trace, interval)
    return MadeRun("\n".join(SHAPES[shape](trace, interval, rng)) + "\n", expected, interval)
