"""All gates in one pass over a chunk, with hyperscan. Finds exactly what ``PlainMatcher`` finds.

Hyperscan tells where a gate ends, once for each such place; where its segment begins is looked for only then. Gates are plain texts or
nearly so: hundreds of them compile in some ten milliseconds, less than a cache of compiled databases would be worth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from memdoctor.sources.logs.matcher import Gate, Hit, segment_at


class Unavailable(Exception):
    """Hyperscan is not there, or refuses these gates; the text says why."""


class BlockMatcher:
    """Raises Unavailable."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        self._found: list[tuple[int, int]] = []  # where a gate ends, and its number
        self._alone = tuple((number,) for number in range(len(gates)))
        self._note = _noting(self._found)
        self._database = _compile(gates)

    def hits(self, data: bytes) -> list[Hit]:
        found = self._found
        found.clear()
        self._database.scan(data, match_event_handler=self._note)
        found.sort(key=itemgetter(0))  # nearly sorted already
        redraws = b"\r" in data
        hits: list[Hit] = []
        start, end, gates = 0, -1, set[int]()
        for offset, number in found:
            if offset <= end:
                gates.add(number)
                continue
            if len(gates) > 1:
                hits[-1] = (start, end, tuple(sorted(gates)))
            start, end = segment_at(data, offset - 1, redraws)
            gates = {number}
            hits.append((start, end, self._alone[number]))
        if len(gates) > 1:
            hits[-1] = (start, end, tuple(sorted(gates)))
        return hits


def _noting(found: list[tuple[int, int]]) -> Callable[[int, int, int, int, Any], None]:
    append = found.append

    def note(number: int, _start: int, end: int, _flags: int, _context: Any) -> None:
        append((end, number))

    return note


def _compile(gates: Sequence[Gate]) -> Any:
    try:
        import hyperscan
    except ImportError as error:
        raise Unavailable(str(error)) from error
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[gate.text if gate.pattern else re.escape(gate.text) for gate in gates],
            ids=list(range(len(gates))),
            elements=len(gates),
            flags=[0] * len(gates),  # neither where a match starts, nor lines, nor UTF-8: gates are bytes
        )
    except hyperscan.error as error:
        raise Unavailable(str(error)) from error
    return database
