"""The lines of a segment that tell something usable, without copies that a run of millions of lines could not bear."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

LONG = 200_000  # lines from which on holes are filled with the value before them, in place of being left out


def stretch(values: Sequence[float], first: int, last: int) -> Sequence[float]:
    """The values from ``first`` to ``last`` (half open); no copy of an array."""
    whole: Any = memoryview(values) if isinstance(values, array) else values
    part: Sequence[float] = whole[first:last]
    return part


def at(values: Sequence[float], places: Sequence[int]) -> Sequence[float]:
    """The values at ``places``, which are a stretch or any."""
    if isinstance(places, range):
        return stretch(values, places.start, places.stop)
    return array("d", (values[place] for place in places))


def select(values: Sequence[float], first: int, last: int, usable: Callable[[int], bool]) -> tuple[Sequence[float], Sequence[int]]:
    """The usable ones of ``values`` from ``first`` to ``last``, and their places; ``usable`` is asked for each place.

    Of very many lines all are kept, and the value before stands in for one that is not usable: what is sought there are trends.
    """
    if last - first <= LONG:
        places = array("q", (place for place in range(first, last) if usable(place)))
        return array("d", (values[place] for place in places)), places
    result = array("f")
    start: int | None = None
    before = 0.0
    for place in range(first, last):
        if usable(place):
            before = values[place]
            start = place if start is None else start
        if start is not None:
            result.append(before)
    return result, range(last if start is None else start, last)
