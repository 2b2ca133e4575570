"""Step lines: what a training loop prints once per iteration or log interval, kept as compact columns.

Read are Megatron-LM's and Megatron-DeepSpeed's iteration line (keyed, so every version's), DeepSpeed's ``step=…, skipped=…`` and
pipeline line, verl's ``step:… - key:…``, the pairs of MMEngine and XTuner, MLPerf's ``:::MLLOG {…}``, the ``{'loss': …}`` of Hugging Face's Trainer, progress bars
with a loss, the plain prints that loops of one's own use (``iter 3 loss nan … grad_norm inf``), and the blocks of lines of OLMo, Composer and
DeepSpeed-Chat. Their shapes are in step_shapes/, and so are those of the lines that stand beside them.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from memdoctor.lazy import lazy
from memdoctor.sources.logs.layouts import STAMP_FAR, ZONE, seconds_of
from memdoctor.sources.logs.matcher import Gate
from memdoctor.sources.logs.packed import Packed
from memdoctor.sources.logs.stamps import find_with_year
from memdoctor.sources.logs.step_shapes import bars, beside, blocks, dashes, megatron, mllog, pairs, prints
from memdoctor.sources.logs.step_shapes.numbers import NAN, Step
from memdoctor.sources.logs.table import Table

MOST_ITERATIONS = 1e15  # a number beyond it is no iteration
LATEST = 4  # steps remembered of each rank that says its name ...
MOST_RANKS = 32_768  # ... of at most so many
KEEP = 4  # lines whose text is kept from the start of a shape, and of its first bad ones

_VALUE = rb"[-+]?(?:[0-9]|[Ii][Nn][Ff]|[Nn][Aa][Nn])"
_LOSS = rb"[Ll]oss(?:_step)?[\x22']? ?[=:] {0,16}[-+]?"
# Gates: a segment that holds none of them is no step line, and none that stands beside one.
GATES = (
    Gate(megatron.GATE),
    Gate(b", skipped="),
    Gate(dashes.GATE, pattern=True),
    Gate(mllog.GATE, pattern=True),
    Gate(rb"[\x22'](?:train[_/]|running_)?loss(?:_step)?[\x22']: ", pattern=True),  # dict
    Gate(  # pipeline, print
        rb"(?:[Ii][Tt][Ee][Rr](?:[Aa][Tt][Ii][Oo][Nn])?|[Ss][Tt][Ee][Pp][Ss]?)[ :=#\[]{1,16}[0-9][^\r\n]{0,150}[Ll]oss(?: train)?[\x22']?[ :=]{1,16}" + _VALUE, pattern=True,
    ),
    Gate(_LOSS + rb"(?:[Ii][Nn][Ff]|[Nn][Aa][Nn])", pattern=True),  # bar, where it tells trouble
    *map(Gate, blocks.GATES),
    *map(Gate, pairs.GATES),
    Gate(pairs.GATE, pattern=True),
    *map(Gate, prints.SHORT_GATES),
)  # fmt: skip
# The same, of lines of which a sample is enough.
SAMPLED_GATES = (Gate(_LOSS + rb"[0-9]", pattern=True), *map(Gate, beside.GATES))

# Array types: a double only where six digits are too few.
COLUMNS: Mapping[str, str] = {
    "iteration": "i", "loss": "f", "grad_norm": "f", "scale": "f", "lr": "f", "skipped": "f", "nan": "f", "ms": "f", "samples": "d", "batch": "f",
    "seqlen": "f", "tflops": "f", "rate": "f", "tokens": "f", "memory": "d", "data": "f", "aux": "f", "bar": "d",
    "in_epoch": "f", "of": "f",  # of iterations that each epoch may count anew, and how many it has
}  # fmt: skip

_TELLING = ("loss", "grad_norm", "skipped")  # columns that tell a bad step

_COUNTING = ("print", "counted", "block")
_OF_ALL = lazy(rb"(?:\b(?:iter(?:ation)?|step|batch)s?[ :=\[]{0,4}|\[ {0,16})(\d{1,15}) ?/ {0,16}(\d{1,15})\b", re.I)

_TAG = lazy(rb"\[rank(\d{1,6})\]:", needs=(b"[rank",))
_STAMP = lazy(rb"\[?(\d{4}-\d\d-\d\d)[ T_](\d\d:\d\d):(\d\d(?:[.,]\d+)?)")

__all__ = ["COLUMNS", "GATES", "KEEP", "Series", "Step", "bar_before", "read_step"]


def read_step(raw: bytes, rest: Callable[[], bytes] = bytes) -> tuple[str, Step] | None:
    """A line as (shape, values), or None if it is no step line. Shapes: megatron, deepspeed, mllog, mllog_loss, dashes,
    pairs, block, pipeline, dict, bar, print, counted. ``rest`` gives the text after the line, as far as it is at hand.

    Values that the line does not tell are absent; a printed NaN is NaN. ``skipped`` counts since the line before for megatron and
    since the start for the others.
    """
    step: Step | None
    if megatron.GATE in raw:
        step = megatron.read(raw)
        if step is not None:
            return "megatron", step
    if b"skipped=" in raw:
        step = prints.read_deepspeed(raw)
        if step is not None:
            return "deepspeed", step
    if mllog.MARK in raw:
        return mllog.read(raw)
    if b"step:" in raw and b" - " in raw:
        step = dashes.read(raw)
        if step is not None:
            return "dashes", step
    if b"[step=" in raw or b"[batch=" in raw or b"ppo_ep: " in raw or b"PPO Epoch: " in raw:
        step = blocks.read(raw, rest)
        if step is not None:
            return "block", step
    if b"(train) " in raw or b" data_time: " in raw:
        step = pairs.read(raw)
        if step is not None:
            return "pairs", step
    if b" train_time:" in raw or b" trl:" in raw:
        step = prints.read_short(raw)
        if step is not None:
            return "print", step
    if b"loss" not in raw and b"Loss" not in raw:
        return None
    for shape, read in _SHAPES:
        step = read(raw)
        if step is not None:
            return shape, step
    return None


def bar_before(data: bytes, end: int) -> Step:
    """The ``bar`` (a count) and pace of the progress bar shortly before the line that begins at ``end``; empty where there is none."""
    bar = bars.before(data, end)
    if bar is None or bar["iteration"] >= MOST_ITERATIONS:
        return {}
    bar["bar"] = bar.pop("iteration")
    return bar


_SHAPES: tuple[tuple[str, Callable[[bytes], Step | None]], ...] = (
    ("pipeline", prints.read_pipeline),
    ("dict", prints.read_dict),
    ("bar", bars.read),
    ("print", prints.read_print),
    ("counted", prints.read_counted),
    ("print", prints.read_named_after),
)


class Series:
    """The step lines of one file, a table for each shape, in reading order; and the tables of what stands beside them.

    Read without a shape's name it is the main one: the shape that tells the most losses. ``kept`` holds the text of a few lines worth
    showing: the first ones of each shape, the first with a loss or norm that is no number, and the last.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.tables: dict[str, Table] = {}
        self.beside = beside.Beside()
        self.kept: dict[int, bytes] = {}
        self._last: dict[str, tuple[int, bytes]] = {}
        self._bad: dict[str, int] = {}
        self._total: dict[str, float] = {}
        self._base: int | None = None  # the place of the file in the reading order
        self._minutes: dict[bytes, float] = {}
        self.own: dict[int, deque[tuple[int, int]]] = {}  # rank that says its name -> lines and iterations of its latest steps

    def note_rank(self, raw: bytes, line: int, iteration: float) -> None:
        """Note whose step ``raw`` is, where it begins with a rank's tag."""
        tag = _TAG.match(raw)
        if tag is not None:
            rank = int(tag[1])
            latest = self.own.get(rank)
            if latest is None:
                if len(self.own) >= MOST_RANKS:
                    return
                latest = self.own[rank] = deque(maxlen=LATEST)
            latest.append((line, int(iteration)))

    @property
    def shapes(self) -> dict[str, int]:
        return {shape: len(table) for shape, table in self.tables.items()}

    @property
    def main(self) -> str | None:
        """The shape that tells the most losses; progress bars, which are drawn over and over, only where nothing else tells a fifth as many."""
        best: tuple[int, int] | None = None
        main = None
        for shape, table in self.tables.items():
            rows = len(table) if shape != "bar" else len(table) // 5
            known = (rows if "loss" in table.spoken else 0, rows)
            if best is None or known > best:
                best, main = known, shape
        return main

    def __len__(self) -> int:
        main = self.main
        return 0 if main is None else len(self.tables[main])

    def add(self, shape: str, step: Step, seq: int, line: int, raw: bytes, parse: Callable[[str], float | None]) -> int:
        """Keep one step and return its iteration. ``parse`` turns the text of a minute ("2025-01-01 10:00") into epoch seconds."""
        table = self.open(shape, seq - (line << 8))
        iteration = step.get("iteration", NAN)
        if not iteration < MOST_ITERATIONS:
            iteration = step["iteration"] = float(len(table) + 1)
        elif shape == "bar" and self._drawn_again(table, step, line):
            return int(iteration)
        if shape != "megatron" and "skipped" in step:
            step["skipped"] = self._since_before(shape, [step["skipped"]])[0]
        table.add(line, self.time(raw, parse), step)
        self.note_rank(raw, line, iteration if iteration < MOST_ITERATIONS else len(table))
        self._show(shape, len(table), line, raw, _bad(step))
        self._last[shape] = line, raw
        return int(step.get("bar", iteration))

    def _drawn_again(self, table: Table, step: Step, line: int) -> bool:
        """True for a bar of the same step: in the same line, or with the same loss. After a resume a step comes again with another one."""
        if not len(table) or table.latest("iteration") != step["iteration"]:
            return False
        loss, before = step.get("loss", NAN), table.latest("loss")
        return line == self._last["bar"][0] or loss == before or (loss != loss and before != before)

    def extend(
        self,
        shape: str,
        base: int,
        lines: Sequence[int],
        epochs: Sequence[float],
        columns: Mapping[str, Sequence[float]],
        fixed: Mapping[str, float],
        raw: Callable[[int], bytes],
    ) -> None:
        """Keep some steps of one shape, column by column; ``fixed`` are columns with one value for all. ``base``: the place of the file
        in the reading order; ``raw(i)``: the line of the i-th of the steps."""
        table = self.open(shape, base)
        if shape != "megatron" and "skipped" in columns:
            columns = {**columns, "skipped": self._since_before(shape, columns["skipped"])}
        table.extend(lines, epochs, columns, fixed)
        count, shown = len(lines), self._bad.get(shape, 0) < KEEP
        told = {name: column for name, column in columns.items() if name in _TELLING}
        if len(table) - count < KEEP or (shown and (_bad(fixed) or not all(map(_fine, told.values(), told)))):
            for at in range(count):
                step = {**fixed, **{name: column[at] for name, column in told.items()}}
                self._show(shape, len(table) - count + at + 1, lines[at], raw(at), _bad(step))
        self._last[shape] = lines[-1], raw(count - 1)

    def open(self, shape: str, base: int) -> Table:
        """The table of a shape, which stands in the order of their first lines; ``base``: the place of the file in the reading order."""
        table = self.tables.get(shape)
        if table is None:
            table = self.tables[shape] = Table(COLUMNS)
            self._base = base
        return table

    def _since_before(self, shape: str, totals: Sequence[float]) -> list[float]:
        """Skipped steps from line to line, of lines that count from the start of the run."""
        before = [self._total.get(shape, 0.0), *totals]
        self._total[shape] = before[-1]
        return [max(0.0, after - total) for total, after in pairwise(before)]

    def _show(self, shape: str, count: int, line: int, raw: bytes, bad: bool) -> None:
        """Keep the text of the ``count``-th line of its shape where it is worth showing."""
        if count <= KEEP or (bad and self._bad.get(shape, 0) < KEEP):
            self._bad[shape] = self._bad.get(shape, 0) + bad
            self.kept[line] = raw[:600]

    def time(self, raw: bytes, parse: Callable[[str], float | None]) -> float:
        """Epoch seconds of the stamp that a line begins with; NaN where it has none."""
        match = _STAMP.search(raw, 0, 64) or _STAMP.search(raw, 0, STAMP_FAR)
        if match is None:
            odd = find_with_year(raw[:STAMP_FAR].decode("utf-8", "replace"))
            return NAN if odd is None else odd.epoch
        minute = match[1] + b" " + match[2]
        start = self._minutes.get(minute)
        if start is None:
            start = parse(minute.decode())
            if start is None:
                return NAN
            self._minutes.clear() if len(self._minutes) > 64 else None
            self._minutes[minute] = start
        zone = ZONE.match(raw, match.end())
        return start + float(match[3].replace(b",", b".")) - (0 if zone is None else seconds_of(zone))

    def text(self, line: int) -> str:
        """The line with this number as read, '' where it was not kept."""
        raw = self.kept.get(line)
        if raw is None:
            raw = next((raw for number, raw in self._last.values() if number == line), b"")
        return raw[:600].decode("utf-8", "replace")

    def seq(self, line: int) -> int:
        """The place of a line in the reading order of all files."""
        return (self._base or 0) + (line << 8)

    @property
    def through(self) -> bool:
        """True where the last step line counts to its end: ``step:1645/1645``. Only of loops of one's own, which may print nothing after it,
        and not where the count is one of an epoch."""
        main = self.main
        if main not in _COUNTING:
            return False
        raw = self._last[main][1]
        count = _OF_ALL.search(raw)
        return count is not None and count[1] == count[2] and b"poch" not in raw

    def __iter__(self) -> Iterator[tuple[str, Table]]:
        return iter(self.tables.items())

    def column(self, name: str) -> Packed:
        """A column of the main shape. Raises KeyError where there is no step line at all."""
        main = self.main
        if main is None:
            raise KeyError(name)
        return self.tables[main].column(name)


def _bad(step: Mapping[str, float]) -> bool:
    """A loss or norm that is no number, or a step that was skipped."""
    return not (math.isfinite(step.get("loss", 0.0)) and math.isfinite(step.get("grad_norm", 0.0))) or step.get("skipped", 0.0) > 0


def _fine(values: Sequence[float], name: str) -> bool:
    """False where some value of a column makes its step a bad one."""
    return not any(values) if name == "skipped" else all(map(math.isfinite, values))
