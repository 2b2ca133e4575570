"""Logs that were copied from a terminal, whose long lines it folded at its width: they are put together again.

Believed only where many of the first lines are as long as the longest, and put together make step lines of what alone is none. Like the
pieces of a container engine (wrapped.py) all of a line stands where its last piece stood.
"""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.sources.logs.peeling import prefix_end
from memdoctor.sources.logs.pieces import Piece
from memdoctor.sources.logs.steps import read_step
from memdoctor.sources.logs.wrapped import Unwrapper

SAMPLE = 16_384  # bytes looked at
WIDTHS = range(60, 401)
FEWEST = 4  # lines as long as the longest, ...
SHARE = 0.2  # ... and of all
LONGEST = 4_000  # bytes of a line of which it is folded
STEPS = 3  # step lines put together


def unfolder(data: bytes) -> Unwrapper | None:
    """How the file that begins with ``data`` is to be put together; None where its lines are whole."""
    lines = data[:SAMPLE].split(b"\n")[:-1]
    widths = [_columns(line) for line in lines]
    width = max(widths, default=0)
    full = widths.count(width)
    if width not in WIDTHS or full < max(FEWEST, SHARE * len(lines)) or not _makes_steps(lines, widths, width):
        return None
    return _Unfolder(width)


def _columns(line: bytes) -> int:
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))


def _makes_steps(lines: Sequence[bytes], widths: Sequence[int], width: int) -> bool:
    made, joined = 0, b""
    for line, own in zip(lines, widths, strict=True):
        if _tells_loss(line):
            return False
        joined += line
        if own < width or len(joined) > LONGEST:
            made += len(joined) > own and _tells_loss(joined)
            joined = b""
    return made >= STEPS


def _tells_loss(line: bytes) -> bool:
    found = read_step(line) if b"loss" in line else None
    return found is not None and "loss" in found[1] and "iteration" in found[1]


class _Unfolder(Unwrapper):
    def __init__(self, width: int) -> None:
        super().__init__(self._line)
        self._width = width

    def _line(self, line: bytes) -> Piece | None:
        full = _columns(line) == self._width
        if not self._open:
            return Piece(b"", "", line, True) if full else None
        begins = prefix_end(line.decode("utf-8", "replace")) > 0  # the line before was just as long as the terminal is wide
        return Piece(b"", "", b"\r" + line if begins else line, full)
