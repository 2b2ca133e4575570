"""What is made when it is first asked for: of a thousand signals one log needs a dozen, and few reports tell the series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class Shelf(Sequence[T]):
    """A tuple of which each item is made on first use. ``heads[n]`` is what tells, without item ``n``, whether it is of use."""

    def __init__(self, heads: Sequence[Sequence[Any]], make: Callable[[int], T]) -> None:
        self.heads = heads
        self._make = make
        self._made: dict[int, T] = {}

    def __len__(self) -> int:
        return len(self.heads)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        numbers = range(len(self.heads))[place]
        if isinstance(numbers, range):
            return tuple(self._item(number) for number in numbers)
        return self._item(numbers)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _item(self, number: int) -> T:
        item = self._made.get(number)
        if item is None:
            item = self._made[number] = self._make(number)
        return item


class Late(Mapping[str, Any]):
    """A mapping that ``make`` makes when it is first looked into."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make
        self._made: Mapping[str, Any] | None = None

    def _mapping(self) -> Mapping[str, Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: str) -> Any:
        return self._mapping()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())
