"""All gates in one pass over a chunk, with hyperscan. Finds exactly what ``PlainMatcher`` finds.

Hyperscan tells where a gate ends, once for each such place; where its segment begins is looked for only then. A thousand gates compile in some
30 ms; what was compiled is kept in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from memdoctor import kept
from memdoctor.sources.logs.matcher import Gate, Hit, segment_at


class Unavailable(Exception):
    """Hyperscan is not there, or refuses these gates; the text says why."""


class BlockMatcher:
    """``without``: numbers of gates that are not looked for; ``once`` of those that are told of where they are first. Raises Unavailable."""

    def __init__(self, gates: Sequence[Gate], without: Collection[int] = (), once: Collection[int] = ()) -> None:
        self._found: list[tuple[int, int]] = []  # where a gate ends, and its number
        self._alone = tuple((number,) for number in range(len(gates)))
        self._note = _noting(self._found)
        self._database = _database({number: gate for number, gate in enumerate(gates) if number not in without}, once)

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


def _database(gates: Mapping[int, Gate], once: Collection[int] = ()) -> Any:
    """The gates compiled, from the user's cache where they are there; those of ``once`` are told of once. Raises Unavailable."""
    try:
        import hyperscan
    except ImportError as error:
        raise Unavailable(str(error)) from error
    expressions = [gate.text if gate.pattern else re.escape(gate.text) for gate in gates.values()]
    flags = [hyperscan.HS_FLAG_SINGLEMATCH if number in once else 0 for number in gates]
    state = _state(f"{getattr(hyperscan, '__version__', '')} {sorted(once)}", [*gates], expressions)
    kept_data = kept.get_bytes("gates", state)
    if kept_data is not None:
        with contextlib.suppress(hyperscan.error):  # of another processor, say
            database = hyperscan.loadb(kept_data, hyperscan.HS_MODE_BLOCK)
            database.scratch = hyperscan.Scratch(database)
            return database
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=expressions,
            ids=[*gates],
            elements=len(expressions),
            flags=flags,  # neither where a match starts, nor lines, nor UTF-8: gates are bytes
        )
        kept.put_bytes("gates", state, hyperscan.dumpb(database))
    except hyperscan.error as error:
        raise Unavailable(str(error)) from error
    return database


def _state(version: str, numbers: Sequence[int], expressions: Sequence[bytes]) -> str:
    """A name for just these gates and this hyperscan."""
    text = b"\n".join([version.encode(), repr(numbers).encode(), *expressions])
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}{len(text):x}.hs"
