"""From a stream of bytes to clean chunks: whole lines, and windows of a line that is too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memdoctor.records import entity
from memdoctor.sources.logs.cleaning import LineCleaner, clean
from memdoctor.sources.logs.stored import AT_ONCE, Broken, Source

BLOCK = 262_144  # bytes read at a time: fits the second-level cache together with its copy
WINDOW = 1_048_576  # a longer line is given in windows of this size ...
OVERLAP = 4_096  # ... of which each repeats the end of the one before, so that what a cut goes through is whole in one of them


@entity
class Chunk:
    """A piece of a log.

    ``data`` is whole lines, each with its ``\\n`` (the last line of a file gets one); ``line`` is the 1-based number of the first.
    With ``part`` it is a window of one line instead: of ``WINDOW`` bytes, beginning with the last ``OVERLAP`` bytes of the window before;
    all windows of a line carry its number and only the last ends with ``\\n``. ``lines`` is how many line ends are in it, where whoever looks
    at the data counts them anyway and says so. ``places`` are the numbers of the lines where they do not follow each other.
    """

    data: bytes
    line: int
    part: bool = False
    lines: int | None = None
    places: Sequence[int] | None = None


class Cutter:
    """Iterates over the chunks of ``source``. ``broken`` says why it stopped early; ``ends_mid_line`` that the last line has no end."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.broken: Broken | None = None
        self.ends_mid_line = False

    def __iter__(self) -> Iterator[tuple[bytes, bool]]:
        """Yields ``(data, part)``: clean whole lines, or one window."""
        whole = self._source.whole(AT_ONCE)
        if whole is not None:
            cut = whole.rfind(b"\n") + 1
            if cut:
                yield clean(whole[:cut]), False
            if cut < len(whole):
                yield from self._unended(whole[cut:])
            return
        buffer = bytearray(WINDOW)
        view = memoryview(buffer)
        used, ended = 0, False
        long: _LongLine | None = None
        while not ended:
            goal = min(used + BLOCK, WINDOW)
            while used < goal:
                got = self._read(view[used:goal])
                if got == 0:
                    ended = True
                    break
                used += got
            if long is not None:
                cut = buffer.find(b"\n", 0, used) + 1
                yield from long.feed(bytes(view[: cut or used]))
                if cut:
                    yield from long.finish()
                    long = None
                buffer[: used - (cut or used)] = buffer[cut or used : used]
                used -= cut or used
            cut = buffer.rfind(b"\n", 0, used) + 1
            if cut:
                yield clean(bytes(view[:cut])), False
                buffer[: used - cut] = buffer[cut:used]
                used -= cut
            elif used == WINDOW:
                long = _LongLine()
                yield from long.feed(bytes(view))
                used = 0
        yield from self._unended(bytes(view[:used]), long)

    def _unended(self, rest: bytes, long: _LongLine | None = None) -> Iterator[tuple[bytes, bool]]:
        """The last line, of which ``rest`` is left, or which ``long`` was all given of."""
        if long is None:
            long = _LongLine()
            yield from long.feed(rest)
        if long.holds_text():
            self.ends_mid_line = True
            yield from long.feed(b"\n")
            yield from long.finish()

    def _read(self, view: memoryview) -> int:
        if self.broken is None:
            try:
                return self._source.readinto(view)
            except Broken as broken:
                self.broken = broken
        return 0


class _LongLine:
    """One line that may be longer than a window, in pieces."""

    def __init__(self) -> None:
        self._cleaner = LineCleaner()
        self._text = b""
        self._windowed = False

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, bool]]:
        self._text += self._cleaner.feed(piece)
        yield from self._windows()

    def finish(self) -> Iterator[tuple[bytes, bool]]:
        self._text += self._cleaner.finish()
        yield from self._windows()
        yield self._text, self._windowed

    def holds_text(self) -> bool:
        """True where the pieces so far leave something when they are clean (and are not over yet)."""
        self._text += self._cleaner.finish()
        return bool(self._text)

    def _windows(self) -> Iterator[tuple[bytes, bool]]:
        while len(self._text) > WINDOW:
            self._windowed = True
            yield self._text[:WINDOW], True
            self._text = self._text[WINDOW - OVERLAP :]
