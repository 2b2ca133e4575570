"""All gates in one pass over a chunk, with hyperscan. Finds exactly what ``PlainMatcher`` finds.

Hyperscan tells where a gate ends, once for each such place; where its segment begins is looked for only then. Gates are plain texts or
nearly so: hundreds of them compile in some ten milliseconds, less than a cache of compiled databases would be worth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from memdoctor.sources.logs.matcher import Gate, Hit, segment_at


class Unavailable(Exception):
    """Hyperscan is not there, or refuses these gates; the text says why."""


class BlockMatcher:
    """``without``: numbers of gates that are not looked for. Raises Unavailable."""

    def __init__(self, gates: Sequence[Gate], without: Collection[int] = ()) -> None:
        self._found: list[tuple[int, int]] = []  # where a gate ends, and its number
        self._alone = tuple((number,) for number in range(len(gates)))
        self._note = _noting(self._found)
        self._database = _compile({number: gate for number, gate in enumerate(gates) if number not in without})

    def hits(self, data: bytes) -> list[Hit]:
        found, alone, redraws = self._found, self._alone, b"\r" in data
        found.clear()
        self._database.scan(data, match_event_handler=self._note)
        found.sort()
        hits: list[Hit] = []
        start, end = 0, -1
        several: set[int] | None = None  # the gates of the last segment, where it holds more than one
        for offset, number in found:
            if offset > end:
                if several is not None:
                    hits[-1] = (start, end, tuple(sorted(several)))
                    several = None
                if redraws:
                    start, end = segment_at(data, offset - 1)
                else:  # the same, without a call
                    start, end = data.rfind(b"\n", 0, offset) + 1, data.find(b"\n", offset - 1)
                    end = end if end >= 0 else len(data)
                hits.append((start, end, alone[number]))
            elif several is not None:
                several.add(number)
            elif number != hits[-1][2][0]:
                several = {hits[-1][2][0], number}
        if several is not None:
            hits[-1] = (start, end, tuple(sorted(several)))
        return hits


def _noting(found: list[tuple[int, int]]) -> Callable[[int, int, int, int, Any], None]:
    append = found.append

    def note(number: int, _start: int, end: int, _flags: int, _context: Any) -> None:
        append((end, number))

    return note


def _compile(gates: Mapping[int, Gate]) -> Any:
    try:
        import hyperscan
    except ImportError as error:
        raise Unavailable(str(error)) from error
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[gate.text if gate.pattern else re.escape(gate.text) for gate in gates.values()],
            ids=list(gates),
            elements=len(gates),
            flags=[0] * len(gates),  # neither where a match starts, nor lines, nor UTF-8: gates are bytes
        )
    except hyperscan.error as error:
        raise Unavailable(str(error)) from error
    return database
