"""Compact tables of numbers, filled row by row in one pass and read column by column after it.

Rows wait in a buffer and are packed a few thousand at a time, which costs a fraction of appending each number to its column. A column
that never changes (a loss scale of 1.0, a counter of 0) takes no memory, nor does one that never comes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, overload

NAN = math.nan
BATCH = 2_048  # rows packed at a time
EXACT = 2**24  # the greatest whole number up to which four bytes hold every one
_MOST = 2**32 - 1  # the greatest number of a line that is kept; longer logs end in it


class Same(Sequence[float]):
    """``count`` times the same value, in no memory."""

    __slots__ = ("length", "value")

    def __init__(self, value: float, length: int) -> None:
        self.value, self.length = value, length

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Same: ...
    def __getitem__(self, index: int | slice) -> float | Same:
        if isinstance(index, slice):
            return Same(self.value, len(range(*index.indices(self.length))))
        if not -self.length <= index < self.length:
            raise IndexError(index)
        return self.value

    def __iter__(self) -> Iterator[float]:
        return repeat(self.value, self.length)

    def __contains__(self, value: object) -> bool:
        return self.length > 0 and (value is self.value or value == self.value)

    def count(self, value: Any) -> int:
        return self.length if value in self else 0


class Packed:
    """One column: ``value`` for every row as long as all are the same, then an array of type ``code``.

    The code "i" is for whole numbers, never NaN: they take four bytes each as long as four hold them exactly, then eight.
    """

    __slots__ = ("code", "count", "data", "value")

    def __init__(self, code: str, value: float = NAN, count: int = 0) -> None:
        self.code, self.value, self.count = code, value, count
        self.data: array[Any] | None = None

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """From another process, where NaN was another object."""
        for name, value in state[1].items():
            setattr(self, name, value)
        if self.value != self.value:
            self.value = NAN

    def extend(self, values: Sequence[float]) -> None:
        if self.code == "i" and max(values) > EXACT:
            self._widen()
        if self.data is None:
            if not self.count:
                self.value = values[0]
            if values.count(self.value) == len(values):  # the one NaN of this module is equal to itself here
                self.count += len(values)
                return
            self.data = array(self._type, [self.value]) * self.count
        self.data.fromlist(values if isinstance(values, list) else list(values))  # twice as fast as extend
        self.count += len(values)

    @property
    def _type(self) -> str:
        return "f" if self.code == "i" else self.code

    def _widen(self) -> None:
        self.code = "d"
        if self.data is not None:
            self.data = array("d", self.data)

    def fill(self, value: float, times: int) -> None:
        """Append ``value``, ``times`` over."""
        if self.code == "i" and value > EXACT:
            self._widen()
        if self.data is None:
            if not self.count:
                self.value = value
            if value is self.value or value == self.value:
                self.count += times
                return
            self.data = array(self._type, [self.value]) * self.count
        self.data.extend(array(self._type, [value]) * times)
        self.count += times

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if self.data is not None:
            return self.data[index]
        if not -self.count <= index < self.count:
            raise IndexError(index)
        return self.value

    def slice(self, first: int, last: int) -> Sequence[Any]:
        """The rows ``first`` to ``last`` (half open); not a copy where it is the whole column."""
        if self.data is None:
            return Same(self.value, max(0, min(last, self.count) - first))
        return self.data if first == 0 and last >= self.count else self.data[first:last]

    def halve(self) -> None:
        """Keep every second row, the first among them."""
        if self.data is not None:
            self.data = self.data[::2]
        self.count = (self.count + 1) // 2


class Table:
    """Rows of numbers with the line and the time (epoch seconds, NaN where unknown) of each.

    ``columns`` maps each possible column to its array type. Values that a row does not tell are NaN with a bit set in ``absent``; a NaN
    that was printed has none.
    """

    __slots__ = ("_bits", "_columns", "_names", "_rows", "_spoken", "absent", "epoch", "line")

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.line = Packed("I")
        self.epoch = Packed("d")
        self.absent = Packed("I")
        self._columns = {name: Packed(code) for name, code in columns.items()}
        self._bits = {name: 1 << bit for bit, name in enumerate(columns)}
        self._names: tuple[str, ...] = ()
        self._rows: list[tuple[Any, ...]] = []
        self._spoken: set[str] = set()

    def __len__(self) -> int:
        return len(self.line) + len(self._rows)

    def add(self, line: int, epoch: float, row: Mapping[str, float]) -> None:
        """One row. Keys that are no column of the table are an error."""
        names = tuple(row)
        if names != self._names:
            self.pack()
            self._names = names
        self._rows.append((line, epoch, *row.values()))
        if len(self._rows) >= BATCH:
            self.pack()

    def pack(self) -> None:
        """Move what waits in the buffer into the columns; every reader does so first."""
        rows = self._rows
        if not rows:
            return
        line, epoch, *values = zip(*rows, strict=True)
        self._rows = []
        self.extend(line, epoch, dict(zip(self._names, values, strict=True)), {})

    def extend(
        self, lines: Sequence[int], epochs: Sequence[float], columns: Mapping[str, Sequence[float]], fixed: Mapping[str, float]
    ) -> None:
        """Some rows at once, column by column; ``fixed`` are columns with one value for all of them."""
        self.pack()
        self.line.extend(lines if lines[-1] <= _MOST else [min(line, _MOST) for line in lines])
        self.epoch.extend(epochs)
        self._spoken.update(columns, fixed)
        missing = 0
        for name, packed in self._columns.items():
            if name in columns:
                packed.extend(columns[name])
            elif name in fixed:
                packed.fill(fixed[name], len(lines))
            else:
                missing |= self._bits[name]
                packed.fill(NAN, len(lines))
        self.absent.fill(missing, len(lines))

    def halve(self) -> None:
        """Keep every second row, the first among them."""
        self.pack()
        for packed in (self.line, self.epoch, self.absent, *self._columns.values()):
            packed.halve()

    @property
    def spoken(self) -> Collection[str]:
        """The columns that at least one row tells."""
        self.pack()
        return self._spoken

    def latest(self, name: str) -> float:
        """The value of the last row; NaN where it tells none."""
        if self._rows:
            return self._rows[-1][2 + self._names.index(name)] if name in self._names else NAN
        packed = self._columns[name]
        return float(packed[-1]) if len(packed) else NAN

    def column(self, name: str) -> Packed:
        self.pack()
        return self._columns[name]

    def is_absent(self, index: int, name: str) -> bool:
        self.pack()
        return bool(self.absent[index] & self._bits[name])

    def bit(self, name: str) -> int:
        """The bit of ``absent`` that stands for ``name``."""
        return self._bits[name]
