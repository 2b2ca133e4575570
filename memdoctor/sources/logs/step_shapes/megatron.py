"""The iteration line of Megatron-LM and Megatron-DeepSpeed, every version's: fields that end in `` |``, each with its key.

Here a line is read key by key; most are read by a pattern made from the one before (layouts.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes.numbers import Step, number

GATE = b"elapsed time per iteration"

HEAD = lazy(rb"iteration\s+(\d+)/\s*(\d+) \|")
SECONDS = "seconds"  # stands for a column of milliseconds whose numbers are seconds
KEYS: Mapping[bytes, str] = {
    b"lm loss": "loss",
    b"lm_loss": "loss",  # GPT-NeoX
    b"loss": "loss",
    b"reduced_train_loss": "loss",
    b"grad norm": "grad_norm",
    b"loss scale": "scale",
    b"learning rate": "lr",
    b"number of skipped iterations": "skipped",
    b"number of nan iterations": "nan",
    b"elapsed time per iteration (ms)": "ms",
    b"elapsed time per iteration (s)": SECONDS,  # Megatron-DeepSpeed of BigScience
    b"consumed samples": "samples",
    b"global batch size": "batch",
    b"throughput per GPU (TFLOP/s/GPU)": "tflops",
    b"TFLOPs": "tflops",
    b"samples per second": "rate",
    b"tokens per gpu per second (tgs)": "tokens",
    b"load_balancing_loss": "aux",
    b"load balancing loss": "aux",
    b"actual seqlen": "seqlen",
    b"curriculum seqlen": "seqlen",
}
_NO_LOSS = (b"mtp", b"balanc", b"z_", b"moe")  # other losses that stand beside the one that is trained on


def read(raw: bytes) -> Step | None:
    """The values of an iteration line, None where it is none. ``skipped`` and ``nan`` count since the line before."""
    head = HEAD.search(raw)
    if head is None:
        return None
    fields = fields_of(raw[head.end() :])
    step: Step = {"iteration": float(head[1])}
    step.update((column, number(fields[place].rpartition(b":")[2])) for place, column in columns(fields).items())
    if SECONDS in step:
        step["ms"] = 1000 * step.pop(SECONDS)
    return step


def fields_of(rest: bytes) -> list[bytes]:
    """The fields behind the iteration. What no ``|`` ends was cut off: a number that is half there is no other number, nor none."""
    return rest.split(b"|")[:-1]


def columns(fields: Sequence[bytes]) -> dict[int, str]:
    """Which column each field fills, by its place; of several losses the first that is none of the auxiliary ones."""
    keys: dict[int, str] = {}
    loss: int | None = None
    for place, field in enumerate(fields):
        key, colon, _ = field.rpartition(b":")
        key = key.strip()
        column = KEYS.get(key) if colon else None
        if column is not None and column not in keys.values():
            keys[place] = column
        elif colon and loss is None and key.endswith(b" loss") and not any(part in key for part in _NO_LOSS):
            loss = place
    if loss is not None and "loss" not in keys.values():
        keys[loss] = "loss"
    return keys
