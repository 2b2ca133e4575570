"""What loops of one's own print beside loss and iteration: norms, rates, times, memory. Each is looked for only where its word stands."""

from __future__ import annotations

import re

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes.numbers import NAN, Step, number

GAP = rb"[ :=]{1,16}"  # between a word and its number, which formats such as ``12.4f`` pad with blanks: NaN is padded most
NUMBER = rb"([-+]?nan|[-+]?inf(?:inity)?|[-+]?\d+(?:,\d{3})*(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_SIZES = {b"k": 1024.0, b"m": 1024.0**2, b"g": 1024.0**3, b"t": 1024.0**4}

_PLAIN: tuple[tuple[str, tuple[bytes, ...], re.Pattern[bytes]], ...] = tuple(
    (column, words, lazy(pattern, re.I))
    for column, words, pattern in (
        (
            "grad_norm",
            (b"norm", b"Norm"),
            rb"(?:\b(?:total[_ ]|global[_ ])?g(?:rad(?:ient)?)?[_ -]?norm|(?<=[|,)] )norm)\b['\"]?" + GAP + NUMBER,
        ),
        ("scale", (b"scale", b"Scale"), rb"\b(?:loss[_ ]?)?scaler?\b['\"]?" + GAP + NUMBER),
        ("lr", (b"lr", b"LR", b"earning"), rb"\b(?:lr|learning[_ ]rate)\b['\"]?" + GAP + rb"\[?" + NUMBER),
        ("skipped", (b"skipped",), rb"\bskipped\b['\"]?" + GAP + NUMBER),
        ("samples", (b"consumed",), rb"\bconsumed[_ ]samples['\"]?" + GAP + NUMBER),
        ("batch", (b"global_batch_size",), rb"\bglobal_batch_size['\"]?" + GAP + NUMBER),
        ("rate", (b"samples",), rb"\bsamples?(?:/s(?:ec)?\b|_per_sec(?:ond)?)['\"]?" + GAP + NUMBER),
        ("tokens", (b"tok", b"tps"), rb"\b(?:tps|tok(?:en)?s?(?:/s(?:ec)?\b|_per_sec(?:ond)?)\S{0,8})['\"]?" + GAP + NUMBER),
        ("tokens", (b"tok",), NUMBER + rb" ?tok(?:en)?s?/s(?:ec)?\b"),
        ("tflops", (b"flops", b"FLOP"), rb"\bTFLOP\S{0,12}['\"]?" + GAP + NUMBER),
        ("aux", (b"balanc", b"aux"), rb"\b(?:load_balancing|aux)_loss['\"]?" + GAP + NUMBER),
    )
)
# A time of one step: with a word that says so, or as time per step. A bare "time" counts only in ms: in seconds it is often the time so far.
_TIME = lazy(
    rb"\b(?:(?:step|iter(?:ation)?|batch|train_step)[_ ]?tim(?:e|ing)(?:[_ ]per[_ ]\w{4,9})?|time[_ /](?:per[_ ])?(?:step|iter(?:ation)?|batch)|dt)"
    rb"(?:[_ ]?(?:in )?\(?(ms|s|sec)\)?)?['\"]?" + GAP + NUMBER + rb" ?(ms|sec|s)?\b"
    rb"|\btime" + GAP + NUMBER + rb" ?ms\b"
    rb"|" + NUMBER + rb" ?(ms|s|sec)/(?:it|iter|iteration|step|batch)\b"
    rb"|[|(] ?(?:took )?" + NUMBER + rb" ms(?=[ |),]|$)",
    re.I,
)
_DATA = lazy(
    rb"\bdata(?:[_ ]?load(?:er|ing)?)?[_ ]?(?:time|wait|fetch)?(?:[_ ]?\(?(ms|s)\)?)?['\"]?" + GAP + NUMBER + rb" ?(ms|sec|s)\b"
    rb"|\bdata(?:[_ ]?load(?:er|ing)?)?[_ ]?(?:time|wait|fetch)(?:[_ ]?\(?(ms|s)\)?)?['\"]?" + GAP + NUMBER,
    re.I,
)
_MEMORY = lazy(rb"\b(?:max[_ ]?)?mem(?:ory)?(?:[_ ]?(?:allocated|used|usage|peak))?['\"]?" + GAP + NUMBER + rb" ?([kmgt])i?b\b", re.I)


def read(raw: bytes, start: int, step: Step) -> None:
    """Add to ``step`` what stands in ``raw`` from ``start`` on."""
    for column, words, pattern in _PLAIN:
        if column not in step and any(word in raw for word in words):
            match = pattern.search(raw, start)
            if match is not None:
                step[column] = grouped(match[1])
    if b"ime" in raw or b"iming" in raw or b"TIME" in raw or b"s/" in raw or b"dt" in raw or b" ms" in raw:
        match = _TIME.search(raw, start)
        if match is not None:
            text, unit = match[2] or match[4] or match[5] or match[7], match[1] or match[3] or (b"ms" if match[4] or match[7] else match[6])
            step["ms"] = _milliseconds(text, unit)
    if b"ata" in raw:
        match = _DATA.search(raw, start)
        if match is not None:
            step["data"] = _milliseconds(match[2] or match[5], match[1] or match[3] or match[4])
    if b"em" in raw:
        match = _MEMORY.search(raw, start)
        if match is not None:
            step["memory"] = grouped(match[1]) * _SIZES[match[2].lower()]


def grouped(text: bytes) -> float:
    """A number that may hold commas between its thousands."""
    return number(text.replace(b",", b"") if b"," in text else text)


def _milliseconds(text: bytes | None, unit: bytes | None) -> float:
    value = grouped(text) if text is not None else NAN
    return value if unit is not None and unit.lower() == b"ms" else value * 1000
