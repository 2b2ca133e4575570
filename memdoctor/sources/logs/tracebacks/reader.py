"""One traceback of one stream, in whichever layout it is printed."""

from __future__ import annotations

from typing import Protocol

from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.tracebacks.crash import Crash
from memdoctor.sources.logs.tracebacks.notebook import Notebook
from memdoctor.sources.logs.tracebacks.plain import Plain
from memdoctor.sources.logs.tracebacks.raised import Chain, RawException
from memdoctor.sources.logs.tracebacks.rich_box import RichBox
from memdoctor.sources.logs.tracebacks.shapes import CRASH_TEXT, is_rich_head, notebook_type
from memdoctor.sources.logs.tracebacks.strangers import Strangers

MAX_LINES = 600
MAX_LINE = 8_192  # characters of a line that are looked at


class _Layout(Protocol):
    chain: Chain

    def feed(self, text: str, number: int, foreign: bool, alone: bool) -> bool: ...

    def finish(self) -> Chain: ...


class TracebackReader:
    """Reads one traceback with its whole chain, from the line that ``starts`` on.

    ``feed`` every line of the stream until it returns False: that line is not of the traceback, which is then finished. Lines of
    other writers may stand in the middle of it: ``took`` tells whether the last line that was fed is the traceback's own.
    Work and memory are bounded: 600 lines, 120 frames and 8 KB of message per exception.
    """

    __slots__ = ("_done", "_header", "_layout", "_lines", "_strangers")

    def __init__(self) -> None:
        self._strangers = Strangers()
        self._layout: _Layout | None = None
        self._header: tuple[str | None, str | None] = (None, None)
        self._lines = 0
        self._done = False

    @property
    def took(self) -> bool:
        return self._strangers.took and not self._done

    @property
    def raised(self) -> bool:
        """True once the exception line was read: what may still come is more of its message, or of its chain."""
        if self._layout is None or not self._layout.chain.drafts:
            return False
        return bool(self._layout.chain.drafts[-1].type)

    def feed(self, line: Line, number: int) -> bool:
        """Whether ``line``, number ``number`` of its file, is still within the traceback."""
        self._lines += 1
        if self._done or self._lines > MAX_LINES:
            self._done = True
            return False
        text = line.text[:MAX_LINE].rstrip()
        header = (line.level, line.logger)
        if self._layout is None:
            self._layout = self._choose(text)
            self._header = header
        foreign = header not in ((None, None), self._header)  # python's own lines have no header; torch's logger heads each line
        alone = line.rank is not None or line.local_rank is not None or line.pid is not None
        self._done = not self._layout.feed(text, number, foreign, alone)
        return not self._done

    def finish(self) -> list[RawException]:
        """The exceptions of the chain as printed, causes first where Python chains them; [] where nothing was read."""
        self._done = True
        return [] if self._layout is None else self._layout.finish().build()

    def _choose(self, text: str) -> _Layout:
        if text.startswith(CRASH_TEXT):
            return Crash(self._strangers)
        if is_rich_head(text):
            return RichBox(self._strangers)
        return Plain(self._strangers) if notebook_type(text) is None else Notebook(self._strangers)
