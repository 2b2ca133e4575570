"""Step lines of MLPerf's logging: ``:::MLLOG {..., "key": "tracked_stats", "value": {"train_step_time": 8.4}, "metadata": {..., "step": 768}}``, and ``train_loss``.

The iteration is what the program counts in, which is often samples.
"""

from __future__ import annotations

from collections.abc import Mapping

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes.numbers import Step, number

MARK = b":::MLLOG {"
GATE = rb'"key": "t(?:racked_stats|rain_loss)", "value": [-{\dNI]'

_STATS = lazy(rb'"key": "tracked_stats", "value": \{([^{}]{1,2000})\}, "metadata": \{[^{}]{0,2000}"step(?:_num)?": (\d{1,15})(?:\.0)?[,}]')
_LOSS = lazy(
    rb'"key": "train_loss", "value": ([-+\w.]+), "metadata": \{[^{}]{0,2000}"(?:samples_count|step(?:_num)?)": (\d{1,15})(?:\.0)?[,}]'
)
_RATE = lazy(rb'"lr": ([-+\w.]+)')
_PAIR = lazy(rb'"([\w ]+)": ([-+\w.]+)')
KEYS: Mapping[bytes, str] = {
    b"loss": "loss",
    b"train_loss": "loss",
    b"reduced_train_loss": "loss",
    b"loss_scale": "scale",
    b"lr": "lr",
    b"current_lr": "lr",
    b"throughput": "rate",
    b"train_step_time": "ms",
    b"train_step_timing in s": "ms",
}


def read(raw: bytes) -> tuple[str, Step] | None:
    """The shape (mllog, or mllog_loss for a loss alone, which comes more often) and the values of such a line, None where it tells no step."""
    stats = _STATS.search(raw)
    if stats is not None:
        step: Step = {"iteration": float(stats[2])}
        for key, text in _PAIR.findall(stats[1]):
            column = KEYS.get(key)
            if column is not None:
                step[column] = 1000 * number(text) if column == "ms" else number(text)
        return ("mllog", step) if len(step) > 1 else None
    loss = _LOSS.search(raw)
    if loss is None:
        return None
    step = {"iteration": float(loss[2]), "loss": number(loss[1])}
    rate = _RATE.search(raw, loss.end(1))
    if rate is not None:
        step["lr"] = number(rate[1])
    return "mllog_loss", step
