"""The step lines of one attempt in one file, column by column."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from memdoctor.lazy import lazy
from memdoctor.model import FileRead, StepMark

HEAD, TAIL, BETWEEN = 50, 50, 300  # step marks kept of an attempt: its first, its last, and about so many in between
FEW = 8  # where there are very many logs
NEAR = 50  # lines before the first of an attempt in which what stands beside it may be
LOOK = 96  # bytes of a step line in which its time is
_STAMP = lazy(rb"\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)?")
BARS = 0.8  # share of lines with a progress bar before them from which on its count is the iteration


class Steps:
    """Rows ``first`` to ``last`` (half open) of the main shape of a file's series, which is ``shape`` where that is known."""

    def __init__(self, file: FileRead, first: int, last: int, shape: str | None = None) -> None:
        self.file, self.series, self.first, self.last = file, file.series, first, last
        self.shape: str = self.series.main if shape is None else shape
        self.table = self.series.tables[self.shape]
        self._columns: dict[str, Sequence[Any]] = {}
        self.since = 0  # the seq at which the part of the file begins that holds them, where files were joined

    def __len__(self) -> int:
        return self.last - self.first

    def has(self, name: str) -> bool:
        """True where some line of the file tells ``name``, or a line beside its step lines does."""
        return name in self.table.spoken or self._side(name) is not None

    def column(self, name: str) -> Sequence[Any]:
        """The values of a column; NaN where a line tells none."""
        found = self._columns.get(name)
        if found is None:
            side = self._side(name) if name not in self.table.spoken else None
            if name == "iteration":
                found = self._iterations()
            elif name == "skipped" and side is not None:
                found = self._sums(side, name)
            elif side is not None:
                found = self._last(side, side.column(name))
            else:
                found = self.table.column(name).slice(self.first, self.last)
            self._columns[name] = found
        return found

    def _side(self, name: str) -> Any:
        """The table of DeepSpeed's own lines that tells ``name``, where a loop prints its losses by itself."""
        if name in ("skipped", "lr") and self.shape != "deepspeed":
            return self.series.tables.get("deepspeed")
        return self.series.beside.tables.get("throughput") if name == "rate" else None

    @property
    def masks(self) -> Sequence[Any]:
        found: Sequence[Any] = self.table.absent.slice(self.first, self.last)
        return found

    @property
    def lines(self) -> Sequence[Any]:
        found = self._columns.get("line")
        if found is None:
            found = self._columns["line"] = self._glance("line")
        return found

    @property
    def epochs(self) -> Sequence[Any]:
        """Times of the lines, NaN where unknown; of DeepSpeed's own lines where the loop prints none."""
        found = self._columns.get("epoch")
        if found is None:
            found = self._glance("epoch")
            side = self.series.tables.get("deepspeed")
            if self.shape != "deepspeed" and side is not None and len(found) and math.isnan(found[0]) and math.isnan(found[-1]):
                side.pack()
                found = self._last(side, side.epoch)
            self._columns["epoch"] = found
        return found

    def line(self, row: int) -> int:
        """The number of the line of a row; rows count from 0 within these steps."""
        return int(self.lines[row])

    def epoch(self, row: int) -> float:
        return float(self.epochs[row])

    def text(self, row: int) -> str:
        found: str = self.series.text(self.line(row))
        return found

    def seq(self, row: int) -> int:
        found: int = self.series.seq(self.line(row))
        return found

    def own_marks(self) -> list[StepMark]:
        """The latest steps of each rank that says its name in front of them."""
        if not self.series.own:
            return []
        first, last = self.line(0), self.line(len(self) - 1)
        return [
            StepMark(self.series.seq(line), self.file.path, rank, iteration, None, self.since)
            for rank, latest in self.series.own.items()
            for line, iteration in latest
            if first <= line <= last
        ]

    def marks(self, rank: int | None, *, few: bool = False) -> list[StepMark]:
        """Signs of progress; ``few``: the first and the last alone."""
        count, lines, iterations, epochs = len(self), self.lines, self.column("iteration"), self.epochs
        chosen: Sequence[int] = range(count)
        if few and count > FEW:
            chosen = [*range(FEW // 2), *range(count - FEW // 2, count)]
        elif count > HEAD + TAIL:
            stride = max(1, (count - HEAD - TAIL) // BETWEEN)
            chosen = sorted({*range(HEAD), *range(0, count, stride), *range(count - TAIL, count)})
        path, seq, since, zoned = self.file.path, self.series.seq, self.since, self.zoned
        return [
            StepMark(
                seq(int(lines[row])),
                path,
                rank,
                int(iterations[row]),
                None if math.isnan(epochs[row]) else float(epochs[row]),
                since,
                zoned,
            )
            for row in chosen
        ]

    @property
    def zoned(self) -> bool:
        """True where the times of the lines have a zone."""
        stamp = next((found for raw in self.series.kept.values() if (found := _STAMP.search(raw, 0, LOOK)) is not None), None)
        return stamp is not None and stamp[1] is not None

    def iterations(self) -> tuple[int, int]:
        column = self.column("iteration")
        return int(min(column)), int(max(column))

    def _iterations(self) -> Sequence[Any]:
        """The iterations as printed; for lines that print none the count of the bar before them, where nearly all have one."""
        own = self._glance("iteration")
        if "bar" in self.table.spoken:
            bars = self.table.column("bar").slice(self.first, self.last)
            if sum(not math.isnan(value) for value in bars) >= BARS * len(bars):
                return _filled(bars)
        if any(map(math.isnan, own)):
            return _filled(own)
        return own

    def _glance(self, name: str) -> Sequence[Any]:
        found: Sequence[Any] = self.table.glance(name)
        return found if self.first == 0 and self.last == len(found) else found[self.first : self.last]

    def is_fine(self) -> bool:
        """True where every loss and norm is a number, no loss 0 and no step skipped: line after line tells no trouble. False may be wrong."""
        if self.last - self.first != len(self.table) or (self.shape == "megatron" and "loss" not in self.table.spoken):
            return False
        side = self._side("skipped")
        if side is not None and "skipped" in side.spoken and any(side.glance("skipped")):
            return False
        for name in ("loss", "grad_norm", "skipped", "nan"):
            if name in self.table.spoken:
                values = self.table.glance(name)
                if not math.isfinite(sum(values)) or (any(values) if name in ("skipped", "nan") else name == "loss" and 0.0 in values):
                    return False
        return True

    def _sums(self, side: Any, name: str) -> Sequence[Any]:
        """What the lines of ``side`` add up to since the line before."""
        column = side.column(name)
        return array("f", [sum(column[row] for row in range(first, last)) for first, last in self._between(side)])

    def _last(self, side: Any, column: Any) -> Sequence[Any]:
        """The last value of ``side`` since the line before; NaN where there is none."""
        return array("d", [column[last - 1] if last > first else math.nan for first, last in self._between(side)])

    def _between(self, side: Any) -> Iterator[tuple[int, int]]:
        """For each line of these steps the rows of ``side`` that stand between the line before it and itself (half open)."""
        side.pack()
        lines = side.line.slice(0, len(side))
        before = bisect_left(lines, self.line(0) - NEAR) if self.first else 0
        for line in self.lines:
            after = bisect_left(lines, line, before)
            yield before, after
            before = after


def _filled(values: Sequence[float]) -> Sequence[Any]:
    """``values`` with each NaN replaced by the value before it."""
    result, last = array("d"), 0.0
    for value in values:
        last = last if math.isnan(value) else value
        result.append(last)
    return result


def steps_of(files: Sequence[FileRead], parts: Mapping[int, Sequence[tuple[int, int]]]) -> dict[int, list[Steps]]:
    """Step lines by attempt. ``parts``: per file the seq at which each part of it begins, and its attempt."""
    result: dict[int, list[Steps]] = {}
    for file in files:
        series = file.series
        main = None if series is None else series.main
        if series is None or main is None or not len(series.tables[main]):
            continue
        table = series.tables[main]
        own = parts.get(file.number) or [(0, 1)]
        bounds = [0]
        for start, _ in own[1:]:
            bounds.append(max(bounds[-1], bisect_left(table.glance("line"), start, key=series.seq)))
        bounds.append(len(table))
        for (low, high), (_, attempt) in zip(pairwise(bounds), own, strict=True):
            if high > low:
                result.setdefault(attempt, []).append(Steps(file, low, high, main))
    return result
