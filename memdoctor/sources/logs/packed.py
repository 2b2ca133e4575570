"""One column of numbers in little memory: a column that never changes (a loss scale of 1.0, a counter of 0) takes none."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, overload

NAN = math.nan
EXACT = 2**24  # the greatest whole number up to which four bytes hold every one


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
                self.value = values[0] if self.code == "I" else float(values[0])
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
