"""Compact tables of numbers, filled row by row in one pass and read column by column after it.

Rows wait in a buffer and are packed a few thousand at a time, which costs a fraction of appending each number to its column. A column
that never comes takes no memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from memdoctor.sources.logs.packed import NAN, Packed, Same

BATCH = 2_048  # rows packed at a time
FEW = 64  # rows that wait until somebody looks, and batches of them
_MOST = 2**32 - 1  # the greatest number of a line that is kept; longer logs end in it

_Batch = tuple[Sequence[int], Sequence[float], Mapping[str, Sequence[float]], Mapping[str, float]]  # as Table.extend takes it


class Table:
    """Rows of numbers with the line and the time (epoch seconds, NaN where unknown) of each.

    ``columns`` maps each possible column to its array type. Values that a row does not tell are NaN with a bit set in ``absent``; a NaN
    that was printed has none.
    """

    __slots__ = ("_absent", "_codes", "_columns", "_count", "_epoch", "_line", "_made", "_names", "_rows", "_spoken", "_waiting")

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._codes = columns
        self._count = 0
        self._spoken: dict[str, None] = {}
        self._columns: dict[str, Packed] = {}  # those that some row tells
        self._made = False
        self._names: tuple[str, ...] = ()
        self._rows: list[tuple[Any, ...]] = []
        self._waiting: list[_Batch] = []  # few rows at a time, as they came

    def __len__(self) -> int:
        return self._count

    def add(self, line: int, epoch: float, row: Mapping[str, float]) -> None:
        """One row. Keys that are no column of the table are an error."""
        names = tuple(row)
        if names != self._names:
            self._gather()
            self._names = names
            self._speak(names)
        self._rows.append((line, epoch, *row.values()))
        self._count += 1
        if len(self._rows) >= BATCH:
            self.pack()

    def extend(
        self, lines: Sequence[int], epochs: Sequence[float], columns: Mapping[str, Sequence[float]], fixed: Mapping[str, float]
    ) -> None:
        """Some rows at once, column by column; ``fixed`` are columns with one value for all of them."""
        self._gather()
        self._speak((*columns, *fixed))
        self._count += len(lines)
        self._waiting.append((lines, epochs, columns, fixed))
        if len(lines) > FEW or len(self._waiting) >= FEW:
            self.pack()

    def _speak(self, names: Collection[str]) -> None:
        for name in names:
            if name not in self._spoken:
                self._codes[name]  # no other is a column
                self._spoken[name] = None

    def _gather(self) -> None:
        """Put the rows of the buffer among the batches."""
        if self._rows:
            line, epoch, *values = zip(*self._rows, strict=True)
            self._rows = []
            self._waiting.append((line, epoch, dict(zip(self._names, values, strict=True)), {}))

    def pack(self) -> None:
        """Move what waits into the columns; every reader does so first."""
        if not self._made:
            self._line, self._epoch, self._absent, self._made = Packed("I"), Packed("d"), Packed("I"), True
        if self._rows or self._waiting:
            self._gather()
            batches, self._waiting = self._waiting, []
            for batch in batches:
                self._pack(*batch)

    def _pack(
        self, lines: Sequence[int], epochs: Sequence[float], columns: Mapping[str, Sequence[float]], fixed: Mapping[str, float]
    ) -> None:
        for name in (*columns, *fixed):
            if name not in self._columns:
                self._columns[name] = self._unsaid(name)
        self._line.extend(lines if lines[-1] <= _MOST else [min(line, _MOST) for line in lines])
        self._epoch.extend(epochs)
        missing = (1 << len(self._codes)) - 1
        for name, packed in self._columns.items():
            if name in columns:
                packed.extend(columns[name])
            elif name in fixed:
                packed.fill(fixed[name], len(lines))
            else:
                packed.fill(NAN, len(lines))
                continue
            missing ^= self.bit(name)
        self._absent.fill(missing, len(lines))

    def halve(self) -> None:
        """Keep every second row, the first among them."""
        self.pack()
        for packed in (self._line, self._epoch, self._absent, *self._columns.values()):
            packed.halve()
        self._count = len(self._line)

    @property
    def line(self) -> Packed:
        self.pack()
        return self._line

    @property
    def epoch(self) -> Packed:
        self.pack()
        return self._epoch

    @property
    def absent(self) -> Packed:
        self.pack()
        return self._absent

    @property
    def spoken(self) -> Collection[str]:
        """The columns that at least one row tells."""
        return self._spoken.keys()

    def latest(self, name: str) -> float:
        """The value of the last row; NaN where it tells none."""
        if self._rows:
            return self._rows[-1][2 + self._names.index(name)] if name in self._names else NAN
        self.pack()
        return float(self._columns[name][-1]) if name in self._columns else NAN

    def column(self, name: str) -> Packed:
        """A column of the table, also one that no row tells. Raises KeyError for any other."""
        self.pack()
        packed = self._columns.get(name)
        return self._unsaid(name) if packed is None else packed

    def glance(self, name: str) -> Sequence[float]:
        """All values of a column, or of "line" or "epoch"; as exact as they were read where they are few, and were not looked at before."""
        if len(self._waiting) == 1 and not self._made and not self._rows:
            lines, epochs, columns, fixed = self._waiting[0]
            if name in fixed:
                return Same(fixed[name], len(lines))
            found = lines if name == "line" else epochs if name == "epoch" else columns.get(name)
            return Same(NAN, len(lines)) if found is None else found
        packed = self.line if name == "line" else self.epoch if name == "epoch" else self.column(name)
        return packed.slice(0, len(packed))

    def _unsaid(self, name: str) -> Packed:
        return Packed(self._codes[name], NAN, len(self._line))

    def is_absent(self, index: int, name: str) -> bool:
        self.pack()
        return bool(self.absent[index] & self.bit(name))

    def bit(self, name: str) -> int:
        """The bit of ``absent`` that stands for ``name``."""
        return _bits(tuple(self._codes))[name]


@lru_cache(maxsize=64)
def _bits(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: 1 << place for place, name in enumerate(names)}
