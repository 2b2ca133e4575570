"""Step lines of DeepSpeed, of Trainers that print a dict, and of loops of one's own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes import extras
from memdoctor.sources.logs.step_shapes.numbers import Step, number

DEEPSPEED = lazy(rb"\bstep=(\d+), skipped=(\d+), lr=\[([^\],]*)")
SHORT_GATES = (b" train_time:", b" trl:")

# Words before "loss" that make it another one than that which is trained on; of a policy it lies around 0 and says nothing. Looked for once
# "loss" was found: elsewhere it would cost more than all the rest.
_TRAINED = b"".join(
    rb"(?<!%s loss)" % word
    for word in b"val valid validation eval test best lowest min aux balancing actor critic policy value entropy unsupervised".split()
)
_PIPELINE = lazy(rb"\bsteps: {1,16}(\d+) loss: {1,16}(\S+)(?:.{0,200}?iter time \(s\): {1,16}(\S+) samples/sec: {1,16}(\S+))?")
_DICT = lazy(rb"\{(?:['\"][\w/.-]+['\"]: [^{}]*)?['\"](?:train[_/]|running_)?loss(?:_step)?['\"]: [^{}]*\}")
_PAIR = lazy(rb"['\"]([\w/.()-]+)['\"]: {1,16}['\"]? {0,16}([-+\w.]+)")
_PRINT = lazy(
    rb"(?<!validate )\b(?:iter(?:ation)?|(?:global[_ ]?|train[_ ]?|optimizer[_ ]?)?steps?)\b[ :=#\[]{0,16}(\d+)(?:\s*/\s*(\d+))?\b.{0,120}?"
    rb"\b(?:reduced_)?(?:train(?:ing)?[_/ ]?|lm[_ ])?loss"
    + _TRAINED
    + rb"(?: train)?\b['\"]?"
    + extras.GAP
    + extras.NUMBER
    + rb"\b(?!\s*scal)",
    re.I,
)
_EPOCH = lazy(rb"\b[Ee]poch\b[ :=#\[]{0,16}(\d{1,7})\b")
_COUNTED = lazy(  # "[145/400] loss=2.31", which no word names; not the "[3/10]" of an epoch
    rb"(?:^|[-|\]0-9] )\[ {0,16}(\d+)/ {0,16}\d+\].{0,120}?"
    rb"\b(?:train(?:ing)?[_/ ]?|lm[_ ])?loss" + _TRAINED + rb"['\"]?[=:] {0,16}" + extras.NUMBER + rb"\b(?!\s*scal)",
    re.I,
)
_NAMED_AFTER = lazy(  # "loss = 2.31, step = 400"
    rb"\b(?:train(?:ing)?[_/ ]?|lm[_ ])?loss" + _TRAINED + rb"['\"]? ?[=:] {0,16}" + extras.NUMBER + rb"\b(?!\s*scal)"
    rb".{0,250}?\b(?:(?:global_?|train_)?steps?|num_updates|iter(?:ation)?)['\"]? ?[=:] ?(\d{1,15})\b",
    re.I,
)
_TIMED = lazy(rb"(?:^|[\s\])])step:(\d{1,12})/\d{1,12} train_time:")
_LOGGED = lazy(rb"^s:(\d{1,12}) trl:(\S+)(?: lr:(\S+))?(?: norm:(\S+))?\s*$")  # llm.c's main.log
_COUNTS = (b"epoch", b"step", b"global_step", b"iteration", b"learning_rate", b"lr")
_DICT_KEYS: Mapping[bytes, str] = {
    b"loss": "loss",
    b"running_loss": "loss",
    b"train_loss": "loss",
    b"train/loss": "loss",
    b"train_loss_step": "loss",
    b"grad_norm": "grad_norm",
    b"train/grad_norm": "grad_norm",
    b"gnorm": "grad_norm",
    b"loss_scale": "scale",
    b"learning_rate": "lr",
    b"lr": "lr",
    b"step": "iteration",
    b"global_step": "iteration",
    b"iteration": "iteration",
    b"num_updates": "iteration",  # metaseq, fairseq
    b"global_step/max_steps": "iteration",  # ms-swift
    b"consumed_samples": "samples",
    b"tokens_per_second": "tokens",
    b"tokens_per_s": "tokens",
    b"wps": "tokens",
    b"samples_per_second": "rate",
    b"aux_loss": "aux",
    b"load_balancing_loss": "aux",
    b"tokens_per_sec": "tokens",
    b"samples_per_sec": "rate",
    b"step_time_ms": "ms",
}
_DICT_SECONDS: Mapping[bytes, str] = dict.fromkeys(
    (b"step_time", b"iter_time", b"iteration_time", b"batch_time", b"time_per_step"), "ms"
) | {
    b"data_time": "data",
    b"data_load_time": "data",
}
_GIB = b"memory(GiB)"
_SUMMARY = (b"eval_loss", b"train_runtime", b"test_loss")  # dicts of another kind


def read_deepspeed(raw: bytes) -> Step | None:
    match = DEEPSPEED.search(raw)
    return None if match is None else {"iteration": float(match[1]), "skipped": float(match[2]), "lr": number(match[3])}


def read_pipeline(raw: bytes) -> Step | None:
    match = _PIPELINE.search(raw)
    if match is None:
        return None
    step: Step = {"iteration": float(match[1]), "loss": number(match[2])}
    if match[3] is not None:
        step.update(ms=1000 * number(match[3]), rate=number(match[4]))
    return step


def read_dict(raw: bytes) -> Step | None:
    """``{'loss': 2.31, 'grad_norm': 0.51, ...}``; without an iteration where it tells none."""
    match = _DICT.search(raw)
    if match is None:
        return None
    pairs = dict(_PAIR.findall(match[0]))
    if any(key in pairs for key in _SUMMARY) or not any(key in pairs for key in _COUNTS):
        return None
    step: Step = {}
    for key, text in pairs.items():
        column, seconds = _DICT_KEYS.get(key), _DICT_SECONDS.get(key.removeprefix(b"train/"))
        if column is not None and column not in step:
            step[column] = number(text)
        elif seconds is not None and seconds not in step:
            step[seconds] = 1000 * number(text)
    if _GIB in pairs:
        step["memory"] = 1024.0**3 * number(pairs[_GIB])
    return step if "loss" in step else None


def read_print(raw: bytes) -> Step | None:
    match = _PRINT.search(raw)
    if match is None:
        return None
    step: Step = {"iteration": float(match[1]), "loss": extras.grouped(match[3])}
    if match[2] is not None and b"poch" in raw:
        epoch = _EPOCH.search(raw, 0, match.start())
        if epoch is not None:
            step.update(in_epoch=float(epoch[1]), of=float(match[2]))
    extras.read(raw, match.start(), step)
    return step


def read_named_after(raw: bytes) -> Step | None:
    """``loss = 2.31, step = 400``: the iteration stands behind the loss."""
    if b"tep=" not in raw and b"tep = " not in raw and b"tep: " not in raw and b"num_updates" not in raw and b"iter" not in raw:
        return None
    match = _NAMED_AFTER.search(raw)
    if match is None:
        return None
    step: Step = {"iteration": float(match[2]), "loss": extras.grouped(match[1])}
    extras.read(raw, match.start(), step)
    return step


def read_short(raw: bytes) -> Step | None:
    """``step:126/1480 train_time:11502ms step_avg:91.28ms`` (the times are totals and means), or ``s:126 trl:3.9112 lr:0.000600 norm:1.20``."""
    timed = _TIMED.search(raw)
    if timed is not None:
        return {"iteration": float(timed[1])}
    match = _LOGGED.search(raw)
    if match is None:
        return None
    texts = {"loss": match[2], "lr": match[3], "grad_norm": match[4]}
    return {"iteration": float(match[1]), **{name: number(text) for name, text in texts.items() if text is not None}}


def read_counted(raw: bytes) -> Step | None:
    """``[145/400] loss=2.31``: a count of all, without a word for it."""
    if b"/" not in raw or b"[" not in raw:
        return None
    match = _COUNTED.search(raw)
    if match is None:
        return None
    step: Step = {"iteration": float(match[1]), "loss": extras.grouped(match[2])}
    extras.read(raw, match.start(), step)
    return step
