"""The iteration line of Megatron-LM and Megatron-DeepSpeed, every version's: fields that end in `` |``, each with its key.

The keys of a run hardly ever change from line to line, so a pattern is made from the keys of the first line and serves as long as it fits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memdoctor.sources.logs.step_shapes.numbers import Step, number

GATE = b"elapsed time per iteration"
LAYOUTS = 8  # patterns kept; a line that none of them fits is read key by key
_KNOWN = 64  # combinations of keys remembered: a log made to be slow gets no pattern for each of its lines

_HEAD = re.compile(rb"iteration\s+(\d+)/\s*(\d+) \|")
KEYS: Mapping[bytes, str] = {
    b"lm loss": "loss",
    b"loss": "loss",
    b"reduced_train_loss": "loss",
    b"grad norm": "grad_norm",
    b"loss scale": "scale",
    b"learning rate": "lr",
    b"number of skipped iterations": "skipped",
    b"number of nan iterations": "nan",
    b"elapsed time per iteration (ms)": "ms",
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

_layouts: list[tuple[re.Pattern[bytes], tuple[str, ...]]] = []
_seen: dict[tuple[bytes, ...], int] = {}


def read(raw: bytes) -> Step | None:
    """The values of an iteration line, None where it is none. ``skipped`` and ``nan`` count since the line before."""
    for place, (pattern, names) in enumerate(_layouts):
        match = pattern.search(raw)
        if match is not None:
            if place:
                _layouts.insert(0, _layouts.pop(place))
            return dict(zip(names, map(number, match.groups()), strict=True))
    head = _HEAD.search(raw)
    if head is None:
        return None
    fields = raw[head.end() :].split(b"|")
    keys = _keys(fields)
    known = tuple(field.rpartition(b":")[0] for field in fields)
    if known in _seen or len(_seen) < _KNOWN:
        _seen[known] = _seen.get(known, 0) + 1
        if _seen[known] in (2, 200):  # again later, where other layouts have pushed it out
            _learn(fields, keys)
    step: Step = {"iteration": float(head[1])}
    step.update((column, number(fields[place].rpartition(b":")[2])) for place, column in keys.items())
    return step


def _keys(fields: list[bytes]) -> dict[int, str]:
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


def _learn(fields: list[bytes], keys: Mapping[int, str]) -> None:
    """Make a pattern that reads a line of just these keys in one go."""
    parts: list[bytes] = [rb"iteration\s+(\d+)/[ \d]+ \|"]
    for place, field in enumerate(fields):
        key, colon, _ = field.rpartition(b":")
        if place == len(fields) - 1 and place not in keys:
            break  # what follows the last bar is no field
        value = rb"([^|]*)" if place in keys else rb"[^|]*"
        parts.append((re.escape(key + colon) if colon else b"") + value + rb"\|")
    end = b""
    if len(fields) - 1 in keys:  # a line without its last bar
        parts[-1] = parts[-1].removesuffix(rb"\|")
        end = rb"\s*$"
    elif fields[-1].strip() == b"":
        end = rb"\s*$"
    _layouts.insert(0, (re.compile(b"".join(parts) + end), ("iteration", *keys.values())))
    del _layouts[LAYOUTS:]
