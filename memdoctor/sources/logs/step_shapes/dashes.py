"""Step lines of reinforcement learning and fine-tuning with verl: ``step:40 - actor/grad_norm:0.31 - actor/lr:1e-06 - timing_s/step:91.2``.

The loss of a policy says nothing of how the training goes (it lies around 0), so it is no loss here; that of a fine-tuning is one.
"""

from __future__ import annotations

from collections.abc import Mapping

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes.numbers import Step, number

GATE = rb"step:[0-9]{1,12} - [A-Za-z_][\w/@.()-]{0,80}:"

_HEAD = lazy(rb"(?:^|[\s)\]])step:(\d{1,12}) - (?=[A-Za-z_][\w/@.()-]*:)")
_PAIR = lazy(rb"(?:^| - )([A-Za-z_][\w/@.()-]*): {0,16}(?:np\.\w+\()?([-+\w.]+)")
KEYS: Mapping[bytes, str] = {
    b"train/loss": "loss",
    b"train/grad_norm": "grad_norm",
    b"train/lr": "lr",
    b"actor/grad_norm": "grad_norm",
    b"actor/lr": "lr",
    b"timing_s/step": "ms",
    b"perf/time_per_step": "ms",
    b"perf/throughput": "tokens",
}


def read(raw: bytes) -> Step | None:
    """The values of such a line, None where it is none."""
    head = _HEAD.search(raw)
    if head is None:
        return None
    step: Step = {"iteration": float(head[1])}
    for key, text in _PAIR.findall(raw[head.end() :]):
        column = KEYS.get(key)
        if column is not None and column not in step:
            step[column] = 1000 * number(text) if column == "ms" else number(text)
    return step
