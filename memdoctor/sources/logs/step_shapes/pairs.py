"""Step lines of MMEngine and XTuner, a count and then ``name: value`` to the end of the line.

``Epoch(train)  [2][ 50/625]  lr: 1.0e-02  eta: 0:12:00  time: 0.2311  data_time: 0.0112  memory: 4321  loss: 2.3013``
``Epoch 1 Step 10/400 data_time: 0.0101 lr: 6.000000e-06 time: 1.2300 ... total_loss: 2.301 ... max_memory: 31.45 GB``
"""

from __future__ import annotations

from collections.abc import Mapping

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes.numbers import Step, number

GATES = (b"Epoch(train) ", b"Iter(train) ")
GATE = rb"Step [0-9]{1,12}/[0-9]{1,12} data_time: "

_HEAD = lazy(
    rb"\b(?:Epoch\(train\) {1,8}\[(?P<epoch>\d{1,7})\]\[ {0,8}(?P<in>\d{1,9})/(?P<of>\d{1,9})\]"
    rb"|Iter\(train\) {1,8}\[ {0,12}(?P<iter>\d{1,12})/ {0,12}\d{1,12}\]"
    rb"|Step (?P<step>\d{1,12})/\d{1,12} (?=data_time: ))"
)
_PAIR = lazy(rb"(?<= )([A-Za-z_][\w/]{0,60}): {1,8}([-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf))(?![\w:])")
_KEYS: Mapping[bytes, tuple[str, float]] = {
    b"loss": ("loss", 1),
    b"total_loss": ("loss", 1),
    b"grad_norm": ("grad_norm", 1),
    b"lr": ("lr", 1),
    b"time": ("ms", 1000),
    b"data_time": ("data", 1000),
    b"memory": ("memory", 1024.0**2),
    b"max_memory": ("memory", 1024.0**3),
    b"tokens_per_sec": ("tokens", 1),
    b"tgs": ("tokens", 1),
}


def read(raw: bytes) -> Step | None:
    """The values of such a line, None where it is none."""
    head = _HEAD.search(raw)
    if head is None:
        return None
    step: Step = {"iteration": float(head["in"] or head["iter"] or head["step"])}
    for key, text in _PAIR.findall(raw[head.end() - 1 :]):
        column, unit = _KEYS.get(key, ("", 1.0))
        if column and column not in step:
            step[column] = unit * number(text)
    if "loss" not in step:
        return None
    if head["epoch"] is not None:
        step.update(in_epoch=float(head["epoch"]), of=float(head["of"]))
    return step
