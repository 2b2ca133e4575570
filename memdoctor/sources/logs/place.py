"""Where the scan is in its file, and what stands just before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from memdoctor.lazy import lazy
from memdoctor.model import Stamp
from memdoctor.sources.logs.beginning import Beginning
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.prefixes import Prefixes
from memdoctor.sources.logs.reading import Chunk
from memdoctor.sources.logs.stamps import last_stamp

if TYPE_CHECKING:
    from memdoctor.sources.logs.tracebacks import Frame

BACK = 8_192  # bytes looked back for a stamp or for the frames of a lone exception
END = 512  # bytes at the end of one of many logs in which its last moment is looked for
LINES = 80  # looked back for frames
_IN_BOX = lazy(rb":\d{1,9} in ")  # in each frame that rich draws
_LOUD = ("ERROR", "CRITICAL")
FOLLOWING = 20  # lines behind one that are looked at at once
SOURCE = 8  # lines of one statement below its frame


class Place:
    """``beginning`` is that of the log, ``back`` how many bytes before a line are looked through for its stamp. ``start`` is the offset within the chunk of the segment at hand, ``line`` its line's number, ``part`` its place in a glued line.

    ``tick`` counts the segments that were looked at.
    """

    def __init__(self, beginning: Beginning, back: int = BACK) -> None:
        self._beginning, self._back = beginning, back
        self.data, self.start = b"", 0
        self.line, self.part, self.tick = 0, 0, 0
        self._before = b""  # the end of the chunk before
        self._base = 0  # bytes before this chunk
        self._searched = 0  # up to where in the file a stamp was looked for ...
        self._stamp: tuple[int, Stamp] | None = None  # ... and where the last one found stands

    @property
    def prefixes(self) -> Prefixes:
        """What the lines of the log begin with."""
        return self._beginning.prefixes

    def enter(self, chunk: Chunk) -> None:
        """Go to the start of the next chunk."""
        if self.data:
            self._base += len(self.data)
            self._before = (self._before + self.data)[-BACK:] if len(self.data) < BACK else self.data[-BACK:]
        self.data, self.start, self.line = chunk.data, 0, chunk.line

    def before(self) -> bytes:
        """What stands before the segment, at most ``BACK`` bytes."""
        missing = BACK - self.start
        return self.data[self.start - BACK : self.start] if missing <= 0 else self._before[-missing:] + self.data[: self.start]

    def following(self) -> list[str]:
        """Some of the lines behind the segment."""
        begin = self.data.find(b"\n", self.start) + 1
        return self.data[begin : begin + BACK].decode("utf-8", "replace").split("\n")[:-1][:FOLLOWING] if begin else []

    def stamp_at_end(self, within: int) -> Stamp | None:
        """The last stamp in the last ``within`` bytes of what was read."""
        self.start = len(self.data)
        self._searched = max(self._searched, self._base + self.start - within)
        return self.stamp_before(Line(""))

    def stamp_before(self, line: Line) -> Stamp | None:
        """The last stamp before ``line``, where it has none of its own. Costs little where it is asked line after line."""
        if line.time is not None:
            return None
        here = self._base + self.start
        if here > self._searched:
            before = self.before()[-min(here - self._searched, self._back) :]
            found = last_stamp(before, self._beginning.year)
            if found is not None:
                self._stamp = here - len(before) + found[0], found[1]
            self._searched = here
        return self._stamp[1] if self._stamp is not None and here - self._stamp[0] <= BACK else None

    def introduce(self, line: Line) -> None:
        """Give ``line``, with which a traceback begins, the moment and the rank of the record of an error that it goes on with: what a logger
        prints below the header of a message has none of its own."""
        if line.time is not None or line.level is not None:
            return
        above = next((above for above in islice(self._lines_before(self.before(), line.stream), 2) if above.text.strip()), None)
        if above is not None and above.level in _LOUD and above.time is not None:
            line.time = above.time
            line.rank = above.rank if line.rank is None else line.rank

    def goes_on_bare(self, line: Line) -> bool:
        """Whether the frames of the traceback that begins with ``line`` lack the tag that it has: it is one record of several lines."""
        if not line.stream:
            return False
        following = self.following()
        if not following or 'File "' not in following[0]:
            return False
        from memdoctor.sources.logs.tracebacks.shapes import FRAME

        below = self.prefixes.strip(following[0])
        return not below.stream and FRAME.match(below.text) is not None

    def frames_before(self, line: Line) -> tuple[Frame, ...]:
        """The frames that stand just before ``line`` in its stream, as they do before an exception line whose head is missing."""
        before = self.before()
        if b'File "' not in before and _IN_BOX.search(before) is None:  # as before nearly all: nothing to take apart line by line
            return ()
        from memdoctor.sources.logs.tracebacks import from_tail  # a healthy log holds no traceback

        return from_tail(islice(self._lines_before(before, line.stream), LINES))

    def is_source(self, line: Line) -> bool:
        """Whether ``line`` is the source text below a frame of a traceback whose head is missing: what is raised there, not what was raised."""
        if not line.text.startswith("    "):
            return False
        before = self.before()
        if b'File "' not in before[-2_000:]:
            return False
        from memdoctor.sources.logs.tracebacks.shapes import FRAME

        for above in islice(self._lines_before(before, line.stream), SOURCE):
            if FRAME.match(above.text):
                return True
            if not above.text.startswith("    "):
                return False
        return False

    def _lines_before(self, before: bytes, stream: str) -> Iterator[Line]:
        """The lines of ``stream`` in ``before``, the newest first; one that is cut off is left out, the file's first is not."""
        whole = len(before) < BACK
        end = before.rfind(b"\n")
        while end > 0:
            begin = before.rfind(b"\n", 0, end)
            if begin < 0 and not whole:
                return
            line = self.prefixes.strip(before[begin + 1 : end].decode("utf-8", "replace"))
            if line.stream == stream:
                yield line
            end = begin
