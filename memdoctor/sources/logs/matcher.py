"""Finding the few segments of a chunk that may matter: the interface, and the plain matcher that is its reference.

A matcher knows gates. It reports, for each segment of a chunk that holds at least one gate, where the segment lies and which gates
are in it. Which signals a gate opens, and whether they really match, is decided by the scan.
A segment ends at ``\\n`` or at a ``\\r`` (a progress bar).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

AROUND = (2_048, 6_144)  # bytes of a long segment before and after a gate that are looked at
OWN = 2_048  # bytes at the end of such an excerpt in which a gate begins an excerpt of its own: its message may go on behind the end

Hit = tuple[int, int, tuple[int, ...]]  # start and end (without the line end) within the chunk, gate numbers in ascending order


class Gate(NamedTuple):
    """What makes a segment worth a look: a plain text or, where every plain text would let too much through, a small pattern.

    A pattern is written in what ``re`` and hyperscan read alike: characters, classes, groups, alternatives and bounded repeats; without
    anchors and look-around, and so that it matches neither nothing nor a line end.
    """

    text: bytes
    pattern: bool = False


class Matcher(Protocol):
    """What the scan needs of a matcher. ``gates`` are numbered from 0 in the order given."""

    def hits(self, data: bytes) -> Sequence[Hit]:
        """Segments of ``data`` that hold a gate, in order of their start."""
        ...


def segment_at(data: bytes, offset: int, redraws: bool = True) -> tuple[int, int]:
    """Start and end of the segment that holds ``offset``. ``redraws`` is False where no ``\\r`` is in ``data``."""
    start = data.rfind(b"\n", 0, offset) + 1
    end = data.find(b"\n", offset)
    if end < 0:
        end = len(data)
    if redraws:
        start = max(start, data.rfind(b"\r", start, offset) + 1)
        carriage = data.find(b"\r", offset, end)
        end = carriage if carriage >= 0 else end
    return start, end


class PlainMatcher:
    """One search loop for each gate. Slow for many gates on big inputs, exact, and needs nothing.

    ``without``: numbers of gates that are not looked for.
    """

    def __init__(self, gates: Sequence[Gate], without: Collection[int] = ()) -> None:
        self._gates = tuple((number, gate) for number, gate in enumerate(gates) if number not in without)

    def hits(self, data: bytes) -> list[Hit]:
        found: dict[int, tuple[int, list[int]]] = {}
        redraws = b"\r" in data
        for number, gate in self._gates:
            offset = find(gate, data)
            while offset >= 0:
                start, end = segment_at(data, offset, redraws)
                entry = found.get(start)
                if entry is None:
                    found[start] = (end, [number])
                else:
                    entry[1].append(number)
                offset = find(gate, data, end)
        return [(start, found[start][0], tuple(found[start][1])) for start in sorted(found)]


def find(gate: Gate, data: bytes, start: int = 0) -> int:
    """Where ``gate`` first is in ``data``, from ``start`` on; -1 where it is not."""
    if not gate.pattern:
        return data.find(gate.text, start)
    match = _compiled(gate.text).search(data, start)
    return -1 if match is None else match.start()


@lru_cache(maxsize=64)
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


def excerpts(raw: bytes, gates: Sequence[Gate]) -> Iterator[bytes]:
    """What stands around the gates of a segment that is too long to be looked at as a whole, in order.

    Every gate is whole in one of them; neighbours overlap. There is at most one for each 4 KB.
    """
    ahead = {gate: find(gate, raw) for gate in gates}  # where each gate is next
    start = 0
    while start < len(raw):
        for gate, place in ahead.items():
            if 0 <= place < start:
                ahead[gate] = find(gate, raw, start)
        place = min((place for place in ahead.values() if place >= 0), default=len(raw))
        if place < len(raw):
            yield raw[max(0, place - AROUND[0]) : place + AROUND[1]]
        start = place + AROUND[1] if place + AROUND[1] >= len(raw) else place + AROUND[1] - OWN
