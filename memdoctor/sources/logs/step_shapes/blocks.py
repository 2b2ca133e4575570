"""Steps that are told over several lines: a head that names the iteration, and one value a line below it.

OLMo and OLMo-core print ``[step=10/5000,epoch=0]`` over ``train/CrossEntropyLoss=2.31``, Composer ``[batch=10/4800]:`` over
``Train loss/train/total: 2.31``. DeepSpeed-Chat's reinforcement learning prints ``epoch: 0|step: 405|ppo_ep: 1|act_loss: ...`` over a line
of times; the losses of actor and critic lie around 0 and say nothing of how it goes, so they are no loss here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes import extras
from memdoctor.sources.logs.step_shapes.numbers import Step

GATES = (b"[step=", b"[batch=", b"|ppo_ep: ", b"| PPO Epoch: ")
MOST = 4_096  # bytes below the head that belong to it

_HEAD = lazy(rb"(?:^|\s|\])\[(?:step|batch)=(\d{1,12})/\d{1,12}(?:,[a-z]+=[^\]\n]{1,40})?\]:?\s*$")
_CHAT = lazy(rb"[Ee]poch: \d+ ?\| ?[Ss]tep: (\d{1,12}) ?\| ?(?:ppo_ep|PPO Epoch): ")
_VALUE = lazy(rb"(?:^|[\s\]:])([A-Za-z][\w/.-]{1,60}(?: [\w()]{1,12}){0,3}?)(?:=|: )" + extras.NUMBER + rb"\s*$")
_LATENCY = lazy(rb"\bE2E latency=([\d.]+)s|\bEnd-to-End => Latency: ([\d.]+)s")
_MIB = 1024.0**2
KEYS: Mapping[bytes, tuple[str, float]] = {  # the column, and how many of its units the number counts
    b"train/CrossEntropyLoss": ("loss", 1),
    b"train/CE loss": ("loss", 1),
    b"loss/train/total": ("loss", 1),
    b"optim/total_grad_norm": ("grad_norm", 1),
    b"optim/total grad norm": ("grad_norm", 1),
    b"l2_norm/grad/global": ("grad_norm", 1),
    b"optim/LR (group 0)": ("lr", 1),
    b"throughput/device/tokens_per_second": ("tokens", 1),
    b"throughput/device/tokens_per_sec": ("tokens", 1),
    b"throughput/device/TPS": ("tokens", 1),
    b"System/Peak GPU Memory (MB)": ("memory", _MIB),
}
RATES = (b"throughput/device/batches_per_second", b"throughput/device/batches_per_sec", b"throughput/device/BPS")  # steps per second


def read(raw: bytes, rest: Callable[[], bytes]) -> Step | None:
    """The step whose head is ``raw``, None where it is no head. ``rest`` gives the text after it, as far as it is at hand."""
    chat = _CHAT.search(raw)
    if chat is not None:
        step: Step = {"iteration": float(chat[1])}
        latency = _LATENCY.search(_own(rest()))
        if latency is not None:
            step["ms"] = 1000 * float(latency[1] or latency[2])
        return step
    head = _HEAD.search(raw)
    if head is None:
        return None
    step = {"iteration": float(head[1])}
    for line in _own(rest()).split(b"\n"):
        found = _VALUE.search(line)
        if found is not None:
            _put(step, found[1].removeprefix(b"Train "), extras.grouped(found[2]))
    return step if len(step) > 1 else None


def _own(text: bytes) -> bytes:
    """What belongs to a head: up to the next one."""
    text = text[:MOST]
    ends = [at for gate in GATES if (at := text.find(gate)) >= 0]
    return text[: text.rfind(b"\n", 0, min(ends)) + 1] if ends else text


def _put(step: Step, key: bytes, value: float) -> None:
    column, unit = KEYS.get(key, ("", 1))
    if key in RATES:
        step.setdefault("ms", 1000 / value if value else 0.0)
    elif column:
        step.setdefault(column, value * unit)
    elif key.startswith(b"lr-"):  # Composer's, with the name of the optimizer
        step.setdefault("lr", value)
