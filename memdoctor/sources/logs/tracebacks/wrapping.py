"""How a message was wrapped to the width of the console: rich does so with the line below its box.

A line was wrapped where the next word would not have fitted any more. Words longer than a whole line are cut in pieces of the full width.
Rich draws a box at most 100 wide unless told otherwise; the console is then wider than the box, nobody knows how much.
"""

from __future__ import annotations

import unicodedata

from memdoctor.lazy import lazy

DRAWN = 100  # columns of a box on a wider console
# What begins a line of its own within the messages of PyTorch and NCCL, and an end after which nothing is due.
_OWN = lazy(
    r"(?:nccl\w+:|Last error:|Exception raised from |frame #|C\+\+ CapturedTraceback|(?:CUDA|HIP) kernel errors might|For debugging consider|Compile with `?TORCH|Device-side assert)"
)
_ENDED = lazy(r"[.!?)\]}'\"]$")
_WIDE = ("W", "F")


class Wrapping:
    """``width``: of the box, in columns; ``first``: the exception line."""

    __slots__ = ("_last", "_width")

    def __init__(self, width: int, first: str) -> None:
        self._width, self._last = width, first.rstrip()

    def glue(self, text: str, like_a_record: bool) -> str | None:
        """What ``text`` is joined with to the line before it; None where it is a line of its own. ``like_a_record``: it may be another writer's."""
        if _OWN.match(text):
            return None
        last, word = columns(self._last), columns(text.split(maxsplit=1)[0])
        if max(last, columns(text)) <= self._width:
            ended = like_a_record and _ENDED.search(self._last) is not None
        elif self._width == DRAWN:
            ended = like_a_record or (_ENDED.search(self._last) is not None and text[0].isupper())
        else:
            return None
        if ended or last + 1 + word <= max(self._width, last):
            return None
        return "" if last >= self._width and " " not in self._last else " "

    def take(self, text: str) -> None:
        """``text`` is of the message, joined or not."""
        self._last = text.rstrip()


def columns(text: str) -> int:
    """How wide ``text`` is on a console."""
    return len(text) if text.isascii() else sum(1 + (unicodedata.east_asian_width(sign) in _WIDE) for sign in text)
