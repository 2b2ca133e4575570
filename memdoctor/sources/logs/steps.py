"""Step lines: what a training loop prints once per iteration or log interval, kept as compact columns.

Read are Megatron-LM's and Megatron-DeepSpeed's iteration line (keyed, so every version's), DeepSpeed's ``step=…, skipped=…`` and
pipeline line, Hugging Face's ``{'loss': …}`` and the plain prints that loops of one's own use (``iter 3 loss nan … grad_norm inf``).
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Mapping

NAN = math.nan
KEEP = 4  # lines whose text is kept from the start, and of the first bad ones
COLUMNS = ("iteration", "loss", "grad_norm", "scale", "lr", "skipped", "nan", "ms")

# Gates: a segment that holds none of them is no step line.
GATES = (b"elapsed time per iteration", b"skipped=", b"loss", b"grad_norm")

_MEGATRON = re.compile(rb"iteration\s+(\d+)/\s*(\d+) \|(.*)")
_DEEPSPEED = re.compile(rb"\bstep=(\d+), skipped=(\d+), lr=\[([^\],]*)")
_PIPELINE = re.compile(rb"\bsteps: (\d+) loss: (\S+)")
_DICT = re.compile(rb"\{(?:['\"]\w+['\"]: [^{}]*)?['\"]loss['\"]: [^{}]*\}")
_PAIR = re.compile(rb"['\"](\w+)['\"]: ['\"]?([-+\w.]+)")
_NUMBER = rb"(nan|[-+]?inf(?:inity)?|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_PRINT = re.compile(
    rb"\b(?:iter(?:ation)?|(?:global[_ ]?|train[_ ]?|optimizer[_ ]?)?steps?)\b[ :=#\[]{0,4}(\d+)(?:\s*/\s*\d+)?\b.{0,120}?"
    rb"\b(?:train[_/ ]?|lm[_ ])?loss\b['\"]?[ :=]{1,4}" + _NUMBER + rb"\b(?!\s*scal)",
    re.I,
)
_EXTRA = {
    "grad_norm": re.compile(rb"\bgrad(?:ient)?[_ -]?norm\b['\"]?[ :=]{1,3}" + _NUMBER, re.I),
    "scale": re.compile(rb"\b(?:loss[_ ]?)?scale\b['\"]?[ :=]{1,3}" + _NUMBER, re.I),
    "lr": re.compile(rb"\b(?:lr|learning[_ ]rate)\b['\"]?[ :=]{1,3}\[?" + _NUMBER, re.I),
    "skipped": re.compile(rb"\bskipped\b['\"]?[ :=]{1,3}(\d+)", re.I),
}
_MEGATRON_KEYS: Mapping[bytes, str] = {
    b"lm loss": "loss",
    b"loss": "loss",
    b"grad norm": "grad_norm",
    b"loss scale": "scale",
    b"learning rate": "lr",
    b"number of skipped iterations": "skipped",
    b"number of nan iterations": "nan",
    b"elapsed time per iteration (ms)": "ms",
}
_STAMP = re.compile(rb"\[?(\d{4}-\d\d-\d\d)[ T_](\d\d:\d\d):(\d\d(?:[.,]\d+)?)")

Step = dict[str, float]


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return NAN


def read_step(raw: bytes) -> tuple[str, Step] | None:
    """A line as (shape, values), or None if it is no step line. Shapes: megatron, deepspeed, dict, print.

    Values that the line does not tell are absent; a printed NaN is NaN. ``skipped`` counts since the line before for megatron and
    since the start for the others.
    """
    if b"elapsed time per iteration" in raw:
        match = _MEGATRON.search(raw)
        if match is not None:
            step: Step = {"iteration": float(match[1])}
            for part in match[3].split(b"|"):
                key, colon, value = part.rpartition(b":")
                column = _MEGATRON_KEYS.get(key.strip()) if colon else None
                if column is not None:
                    step[column] = _number(value)
                elif (
                    colon
                    and "loss" not in step
                    and key.strip().endswith(b" loss")
                    and b"mtp" not in key
                    and b"balanc" not in key
                    and b"z_" not in key
                ):
                    step["loss"] = _number(value)
            return "megatron", step
    if b"skipped=" in raw:
        match = _DEEPSPEED.search(raw)
        if match is not None:
            return "deepspeed", {"iteration": float(match[1]), "skipped": float(match[2]), "lr": _number(match[3])}
    if b"loss" not in raw:
        return None
    match = _PIPELINE.search(raw)
    if match is not None:
        return "pipeline", {"iteration": float(match[1]), "loss": _number(match[2])}
    match = _DICT.search(raw)
    if match is not None:
        pairs = {key: _number(value) for key, value in _PAIR.findall(match[0])}
        if b"loss" in pairs and b"eval_loss" not in pairs and (b"epoch" in pairs or b"step" in pairs or b"learning_rate" in pairs):
            step = {"loss": pairs[b"loss"]}
            for key, column in (
                (b"grad_norm", "grad_norm"),
                (b"learning_rate", "lr"),
                (b"step", "iteration"),
                (b"global_step", "iteration"),
            ):
                if key in pairs:
                    step[column] = pairs[key]
            return "dict", step
        return None
    match = _PRINT.search(raw)
    if match is not None:
        step = {"iteration": float(match[1]), "loss": _number(match[2])}
        for column, pattern in _EXTRA.items():
            extra = pattern.search(raw, match.start())
            if extra is not None:
                step[column] = _number(extra[1])
        return "print", step
    return None


class Series:
    """The step lines of one file, a column each, in reading order. Absent values are NaN with a bit set in ``absent``.

    ``seq`` is the reading order of the line, ``epoch`` its time (NaN where it prints none), ``line`` its number. ``kept`` holds the text
    of a few lines worth showing: the first ones, the first with a loss or norm that is no number, and the last.
    """

    __slots__ = ("_bad", "_minutes", "_total", "absent", "columns", "epoch", "kept", "last", "line", "path", "seq", "shapes")

    def __init__(self, path: str) -> None:
        self.path = path
        self.seq = array("q")
        self.line = array("q")
        self.epoch = array("d")
        self.absent = array("B")
        self.columns: dict[str, array[float]] = {name: array("d") for name in COLUMNS}
        self.shapes: dict[str, int] = {}
        self.kept: dict[int, bytes] = {}
        self.last: bytes = b""
        self._bad = 0
        self._total = 0.0
        self._minutes: dict[bytes, float] = {}

    def __len__(self) -> int:
        return len(self.seq)

    def add(self, shape: str, step: Step, seq: int, line: int, raw: bytes, parse: Callable[[str], float | None]) -> None:
        """Keep one step. ``parse`` turns the text of a minute ("2025-01-01 10:00") into epoch seconds."""
        count = self.shapes.get(shape, 0) + 1
        self.shapes[shape] = count
        if shape == "deepspeed" and self.shapes.get("print", 0) > 0:
            return  # the loop's own print tells of the same steps, and has the loss
        if "iteration" not in step:
            step["iteration"] = float(count)
        if shape != "megatron" and "skipped" in step:
            total = step["skipped"]
            step["skipped"] = max(0.0, total - self._total)
            self._total = total
        missing = 0
        for bit, name in enumerate(COLUMNS):
            value = step.get(name)
            if value is None:
                missing |= 1 << bit
                value = NAN
            self.columns[name].append(value)
        self.absent.append(missing)
        self.seq.append(seq)
        self.line.append(line)
        self.epoch.append(self._time(raw, parse))
        bad = not (math.isfinite(step.get("loss", 0.0)) and math.isfinite(step.get("grad_norm", 0.0))) or step.get("skipped", 0.0) > 0
        if len(self.seq) <= KEEP or (bad and self._bad < KEEP):
            self._bad += bad
            self.kept[line] = raw[:600]
        self.last = raw

    def text(self, index: int) -> str:
        """The line of a step as read, '' where it was not kept."""
        raw = self.last if index == len(self) - 1 else self.kept.get(self.line[index], b"")
        return raw.decode("utf-8", "replace")

    def is_absent(self, index: int, name: str) -> bool:
        return bool(self.absent[index] & (1 << COLUMNS.index(name)))

    def _time(self, raw: bytes, parse: Callable[[str], float | None]) -> float:
        match = _STAMP.search(raw, 0, 64)
        if match is None:
            return NAN
        minute = match[1] + b" " + match[2]
        start = self._minutes.get(minute)
        if start is None:
            start = parse(minute.decode())
            if start is None:
                return NAN
            self._minutes.clear() if len(self._minutes) > 64 else None
            self._minutes[minute] = start
        return start + float(match[3].replace(b",", b"."))
