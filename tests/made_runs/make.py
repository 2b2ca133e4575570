"""Training runs made up from a seed: healthy ones, and ones with a single event planted. What each should be called, and since when.

``make(event, shape, interval, seed)`` simulates every step (loss, norm, scale, step time, memory) with the noise of real runs, plants the
event, and prints one line per log interval in the shape of one of the frameworks.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.made_runs import bars, deepspeed, loops, losses, megatron, speed
from tests.made_runs.expected import Expected, MadeRun
from tests.made_runs.rows import Lines, Printer
from tests.made_runs.trace import Trace, healthy

_PRINTERS: tuple[Printer, ...] = (
    megatron.megatron_2, megatron.megatron_09, megatron.megatron, megatron.megatron_deepspeed, deepspeed.deepspeed, deepspeed.pipeline,
    bars.trainer, bars.lightning, bars.nemo_1, bars.tqdm, loops.nemo, loops.plain, loops.dicts, loops.columns, loops.titan,
)  # fmt: skip
SHAPES: dict[str, Printer] = {printer.__name__: printer for printer in _PRINTERS}
EVENTS: dict[str, Callable[[random.Random, Trace, int], Expected]] = {
    "healthy": losses.nothing, "ramp": losses.ramp, "after_norm": losses.after_norm, "after_rate": losses.after_rate, "after_scale": losses.after_scale,
    "leap": losses.leap, "sudden_nan": losses.sudden_nan, "skipped_nan": losses.skipped_nan, "norm_nan": losses.norm_nan, "spike": losses.spike,
    "collapse": losses.collapse, "plateau": losses.plateau, "resume": losses.resume, "good_resume": losses.good_resume, "experts": losses.experts,
    "slower": speed.slower, "rampup": speed.rampup, "drift": speed.drift, "periodic": speed.periodic, "evaluations": speed.evaluations, "saves": speed.saves,
    "collections": speed.collections, "growth": speed.growth, "loader": speed.loader, "offload": speed.offload, "flushes": speed.flushes,
}  # fmt: skip
_ALL = tuple(SHAPES)
_LM = ("megatron_2", "megatron_09", "megatron")
_MEGATRON = (*_LM, "megatron_deepspeed")
# What a shape does not print cannot be seen in it.
SHAPES_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("healthy", "ramp", "leap", "sudden_nan", "spike", "plateau"), _ALL),
    "after_norm": (*_MEGATRON, "deepspeed", "dicts", "columns", "titan"),
    "after_rate": (*_MEGATRON, "deepspeed", "trainer", "tqdm", "nemo", "dicts", "columns"),
    **dict.fromkeys(("after_scale", "skipped_nan", "collapse"), (*_MEGATRON, "deepspeed")),
    "norm_nan": (*_MEGATRON, "deepspeed", "trainer", "dicts", "columns", "titan"),
    **dict.fromkeys(
        ("resume", "good_resume"), (*_MEGATRON, "deepspeed", "trainer", "lightning", "tqdm", "nemo", "plain", "dicts", "columns", "titan")
    ),
    "rampup": _MEGATRON,
    "experts": ("megatron_09", "megatron", "deepspeed", "plain", "dicts"),
    **dict.fromkeys(("slower", "drift", "periodic"), _ALL),
    "evaluations": ("deepspeed", "trainer", "lightning", "nemo", "plain", "titan"),
    "saves": ("deepspeed", "pipeline", "trainer", "plain", "titan"),
    "collections": _LM,
    "growth": (*_LM, "deepspeed", "titan"),
    "loader": (*_MEGATRON, "deepspeed", "plain"),
    "offload": (*_LM, "deepspeed"),
    "flushes": ("deepspeed", "titan"),
}
_NOISY = 0.3  # of the runs that begin with lines which only look alarming
_NOISE = (
    "/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py:86: UserWarning: None of the inputs have requires_grad=True. Gradients will be None",
    "  warnings.warn(",
    "WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt",
    "    will not load any checkpoints and will start from random",
    "node-01:4242:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
    "Using bfloat16 Automatic Mixed Precision (AMP)",
    "0 errors, 0 failures, loss scale 1.0 at step 0 of the last run",
)
_LABELLED = 0.15  # of the runs with one line a step whose launcher puts a label in front of each line


def make(event: str, shape: str, interval: int, seed: int) -> MadeRun:
    rng = random.Random(f"{event} {shape} {interval} {seed}")
    least = -(-600 // interval) if event == "plateau" else 80  # nobody calls a loss stuck after a few steps
    rows = rng.randint(max(80, least), max(least + 50, {1: 400, 10: 300}.get(interval, 160)))
    trace = healthy(rng, rows * interval)
    expected = EVENTS[event](rng, trace, interval)
    lines = SHAPES[shape](trace, interval, rng)
    if rng.random() < _NOISY:
        lines = [*rng.sample(_NOISE, rng.randint(1, len(_NOISE))), *lines]
    if shape not in ("trainer", "lightning", "nemo_1", "tqdm") and rng.random() < _LABELLED:
        lines = _labelled(lines, rng)
    return MadeRun("\n".join(lines) + "\n", expected, interval)


def _labelled(lines: Lines, rng: random.Random) -> Lines:
    """As srun, pdsh or torchrun's tee prefix what a process prints."""
    label = rng.choice(("15: ", "node-03: ", "[default7]:"))
    return [label + line for line in lines]
