"""Finding the few segments of a chunk that may matter: the interface, and the plain matcher that is its reference.

A matcher knows gates: plain byte strings. It reports, for each segment of a chunk that holds at least one gate, where the segment
lies and which gates are in it. Which signals a gate opens, and whether they really match, is decided by the scan.
A segment ends at ``\\n`` or at a lone ``\\r`` (a progress bar).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Hit = tuple[int, int, tuple[int, ...]]  # start and end (without the line end) within the chunk, gate numbers in ascending order


class Matcher(Protocol):
    """What the scan needs of a matcher. ``gates`` are numbered from 0 in the order given."""

    def hits(self, data: bytes) -> Sequence[Hit]:
        """Segments of ``data`` that hold a gate, in order of their start."""
        ...


def segment_at(data: bytes, offset: int) -> tuple[int, int]:
    """Start and end of the segment that holds ``offset``."""
    start = data.rfind(b"\n", 0, offset) + 1
    carriage = data.rfind(b"\r", start, offset)
    if carriage >= 0:
        start = carriage + 1
    end = data.find(b"\n", offset)
    if end < 0:
        end = len(data)
    carriage = data.find(b"\r", offset, end)
    return start, carriage if carriage >= 0 else end


class PlainMatcher:
    """One ``bytes.find`` loop for each gate. Slow for many gates on big inputs, exact, and needs nothing."""

    def __init__(self, gates: Sequence[bytes]) -> None:
        self._gates = tuple(gates)

    def hits(self, data: bytes) -> list[Hit]:
        found: dict[int, tuple[int, list[int]]] = {}
        for number, gate in enumerate(self._gates):
            offset = data.find(gate)
            while offset >= 0:
                start, end = segment_at(data, offset)
                entry = found.get(start)
                if entry is None:
                    found[start] = (end, [number])
                else:
                    entry[1].append(number)
                offset = data.find(gate, max(end, offset + 1))
        return [(start, found[start][0], tuple(found[start][1])) for start in sorted(found)]
