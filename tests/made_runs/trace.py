"""A run step by step, as it happened: what every printer of a log reads, and a healthy one to plant an event in."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

NAN = math.nan
GIB = 1024.0**3
COLUMNS = ("loss", "norm", "lr", "scale", "skipped", "ms", "data", "optimizer", "memory", "aux", "batch")


@dataclass
class Trace:
    """One entry a step; step i+1 is at index i. ``iteration`` are the numbers of the steps (a resume goes back)."""

    loss: list[float]
    norm: list[float]
    lr: list[float]
    scale: list[float]
    skipped: list[bool]
    ms: list[float]
    data: list[float]  # of ms, spent waiting for data
    optimizer: list[float]  # of ms, spent in the optimizer
    memory: list[float]  # allocated bytes after the step
    aux: list[float]  # what balances the load of experts; empty for a dense model
    iteration: list[int]
    batch: list[int]  # samples of a step; empty where it is the same throughout
    restart: int | None = None  # index of the first step after a resume
    capacity: float = 80 * GIB
    rise: float = 0.0  # bytes by which a step rises above what is allocated after it
    flushes: set[int] = field(default_factory=set)  # indices of steps with an allocator's cache flush
    beats: dict[int, str] = field(default_factory=dict)  # what else was done in the step at an index: evaluation, checkpoint
    arguments: dict[str, object] = field(default_factory=dict)  # what Megatron-LM dumps of its arguments, beside its usual ones
    grows: bool = False
    oom: bool = False
    offload: str | None = None  # cpu or nvme
    fp16: bool = False


def healthy(rng: random.Random, steps: int) -> Trace:
    """A run with nothing wrong: a curve of one of three kinds, its noise, and step times with the odd hiccup."""
    gauss, exp = rng.gauss, math.exp
    loss = _losses(rng, steps)
    level = rng.uniform(0.2, 2.0)
    early, jitter = rng.uniform(0, 6), rng.uniform(0.05, 0.3)
    norm = [level * (1 + early * exp(-i / (0.03 * steps))) * exp(jitter * gauss(0, 1)) for i in range(steps)]
    peak, warm = 10 ** rng.uniform(-5, -3.3), max(1, int(steps * rng.uniform(0.005, 0.05)))
    lr = [peak * min(1.0, (i + 1) / warm) * (0.55 + 0.45 * math.cos(math.pi * i / steps)) for i in range(steps)]
    base, wobble = exp(rng.uniform(math.log(150), math.log(30_000))), rng.uniform(0.003, 0.05)
    ms = [base * exp(wobble * gauss(0, 1)) * (rng.uniform(1.2, 3) if rng.random() < 0.003 else 1) for _ in range(steps)]
    ms[0] *= rng.uniform(2, 20)
    held = rng.uniform(10, 60) * GIB
    waiting, update = rng.uniform(0.0, 0.05), rng.uniform(0.02, 0.15)
    memory = [held * (1 + 0.002 * gauss(0, 1)) if i else held * 0.8 for i in range(steps)]
    aux = _balance(rng, steps) if rng.random() < 0.2 else []
    return Trace(
        loss, norm, lr, [1.0] * steps, [False] * steps, ms, [value * waiting for value in ms], [value * update for value in ms], memory, aux,
        list(range(1, steps + 1)), [], rise=random.Random(held).uniform(0.0, 0.3) * min(held, 80 * GIB - held), beats=_told(rng, steps) if rng.random() < 0.3 else {},
    )  # fmt: skip


def _told(rng: random.Random, steps: int) -> dict[int, str]:
    """Evaluations or saves now and then, as lines beside the steps."""
    period = max(1, steps // rng.randint(3, 12))
    return dict.fromkeys(range(period - 1, steps, period), rng.choice(("evaluation", "checkpoint")))


def _losses(rng: random.Random, steps: int) -> list[float]:
    kind = rng.choice(("scratch", "continued", "tuning", "epochs", "shifted"))
    if kind == "scratch":
        top, floor = rng.uniform(9.5, 12.0), rng.uniform(1.7, 2.6)
        tau, power = steps * rng.uniform(0.005, 0.05), rng.uniform(0.5, 1.0)
        curve = [floor + (top - floor) * (1 + i / tau) ** -power for i in range(steps)]
    elif kind == "continued":
        level, fall = rng.uniform(1.6, 3.0), rng.uniform(0.0, 0.04)
        curve = [level * (1 - fall * i / steps) for i in range(steps)]
    elif kind == "epochs":  # each epoch begins lower than the one before it ended
        level, fall, epochs = rng.uniform(0.9, 2.5), rng.uniform(0.05, 0.25), rng.randint(2, 5)
        curve = [level * (1 - fall) ** (i * epochs // steps) * (1 - 0.2 * fall * i / steps) for i in range(steps)]
    elif kind == "shifted":  # other data from some step on
        level, at, shift = rng.uniform(1.6, 3.0), int(steps * rng.uniform(0.2, 0.9)), rng.uniform(-0.15, 0.05)
        curve = [level * (1 + (shift if i >= at else 0)) for i in range(steps)]
    else:
        level, fall, tau = rng.uniform(0.8, 2.5), rng.uniform(0.1, 0.5), steps * rng.uniform(0.05, 0.4)
        curve = [level * (1 - fall * (1 - math.exp(-i / tau))) for i in range(steps)]
    sigma = math.exp(rng.uniform(math.log(0.003), math.log(0.04)))
    drift, loss = 0.0, []
    for value in curve:
        drift = 0.8 * drift + 0.3 * sigma * rng.gauss(0, 1)
        loss.append(value * math.exp(drift + sigma * rng.gauss(0, 1)))
    return loss


def _balance(rng: random.Random, steps: int) -> list[float]:
    """The load balancing loss of even experts: 1, or the number of experts a token goes to (Megatron-LM before core 0.8); a little above
    it at first."""
    even, early = rng.choice((1.0, 1.0, 2.0)), rng.uniform(0.0, 0.3)
    rest = rng.uniform(0.005, 0.08)
    return [
        even * (1 + rest + early * math.exp(-i / (0.05 * steps))) * math.exp(rng.uniform(0.002, 0.02) * rng.gauss(0, 1))
        for i in range(steps)
    ]


def with_experts(rng: random.Random, trace: Trace) -> None:
    if not trace.aux:
        trace.aux = _balance(rng, len(trace.loss))


def search_scale(rng: random.Random, trace: Trace) -> int:
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


def middle(rng: random.Random, trace: Trace, low: float = 0.4, high: float = 0.75) -> int:
    """Where in the run an event begins."""
    return int(len(trace.loss) * rng.uniform(low, high))
