"""Progress bars of tqdm, as Lightning, NeMo and loops of one's own draw them with a loss, and as they stand before a Trainer's line."""

from __future__ import annotations

import re

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes import extras
from memdoctor.sources.logs.step_shapes.numbers import Step, number

LOOK_BACK = 1_024  # bytes before a line in which its bar is looked for

_BAR = lazy(rb"\| *(\d+)/(\d+) \[([\d:]+)<([\d:?]*)(?:, *([\d.]+|\?)(it/s|s/it))?")
_EPOCH = lazy(rb"\bEpoch:? (\d+)")
_LOSS = lazy(rb"\b(?:reduced_)?(?:train[_/ ]?)?loss(?:_step)?['\"]?[=:] {0,16}" + extras.NUMBER, re.I)
_STEP = lazy(rb"\b(?:global_)?step= {0,16}(\d+)")


def read(raw: bytes) -> Step | None:
    """A bar that shows a loss. The iteration is the step that it names, else its count, over all epochs where it names those."""
    if b"/" not in raw or b"<" not in raw:
        return None
    bar = _BAR.search(raw)
    if bar is None:
        return None
    loss = _LOSS.search(raw, bar.end())
    if loss is None:
        return None
    named, epoch = _STEP.search(raw, bar.end()), _EPOCH.search(raw, 0, bar.start())
    done = float(named[1]) if named is not None else float(bar[1]) + (float(epoch[1]) * float(bar[2]) if epoch is not None else 0.0)
    step: Step = {"iteration": done, "loss": extras.grouped(loss[1])}
    extras.read(raw, bar.end(), step)
    if "ms" not in step:
        step.update(_pace(bar))
    return step


def before(data: bytes, end: int) -> Step | None:
    """The count and the pace of the last bar that stands in ``data`` shortly before ``end``."""
    last = None
    for bar in _BAR.finditer(data, max(0, end - LOOK_BACK), end):
        last = bar
    return None if last is None else {"iteration": float(last[1]), **_pace(last)}


def _pace(bar: re.Match[bytes]) -> Step:
    rate = number(bar[5]) if bar[5] is not None else 0.0
    if not rate > 0:
        return {}
    return {"ms": 1000 / rate if bar[6] == b"it/s" else 1000 * rate}
