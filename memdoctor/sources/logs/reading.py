"""Reading one log from front to back in constant memory: ``Reader`` yields clean chunks, whatever the file is packed or wrapped in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from memdoctor.model import Skip
from memdoctor.sources.logs.archives import MAGIC, Unpacked, packing
from memdoctor.sources.logs.cutting import OVERLAP, WINDOW, Chunk, Cutter
from memdoctor.sources.logs.documents import Document, document
from memdoctor.sources.logs.encodings import decoded
from memdoctor.sources.logs.escapes import unescaped
from memdoctor.sources.logs.folded import unfolder
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.kinds import LOOK, foreign
from memdoctor.sources.logs.stored import Raw, Source, Stored, explain, open_stored
from memdoctor.sources.logs.wrapped import Unwrapper, unwrapper
from memdoctor.sources.logs.yaml_records import YamlRecords

__all__ = ["OVERLAP", "WINDOW", "Chunk", "Reader"]

HELD = 134_217_728  # bytes of messages that are turned round where they stand newest first ...
BATCH = 4_096  # ... and of these lines go on together
TURNED = "its messages stand newest first: they were read from its end, and their line numbers count from there"
NOT_TURNED = (
    "its messages stand newest first, and are too many to be turned round: fetch them oldest first (gcloud --order=asc, logcli --forward)"
)

_Item = tuple[
    bytes, bool, Sequence[int] | None
]  # data, whether it is a window, and the numbers of its lines where they do not follow each other


class Reader:
    """Iterates over the chunks of one log; never raises on what the file is or does.

    Afterwards: ``bytes_read`` (as stored), ``lines``, ``truncated`` (the archive or the file ended in the middle), ``ends_mid_line`` (the last
    line had no line end), ``blank`` (there is no text in it), ``skip`` (why reading stopped early, or that the file is empty) and ``mtime`` (seconds since 1970, of a regular file).
    ``on_bytes`` is told, chunk by chunk, how many stored bytes went into it. ``raw`` is read instead of the file where it is given.
    """

    def __init__(self, file: LogFile, on_bytes: Callable[[int], None] | None = None, raw: Raw | None = None) -> None:
        self.file = file
        self._on_bytes, self._raw = on_bytes, raw
        self._told = 0
        self._decided = self._newest_first = False
        self._held = True  # all messages, to be turned round
        self.bytes_read = self.lines = 0
        self.truncated = self.ends_mid_line = False
        self.blank = True
        self.skip: Skip | None = None
        self.mtime: float | None = None

    def __iter__(self) -> Iterator[Chunk]:
        try:
            stored = open_stored(self.file.opened or self.file.path) if self._raw is None else Stored(self._raw)
        except (OSError, ValueError) as error:
            self._stop(explain(error))
            return
        self.mtime = stored.mtime
        try:
            yield from self._chunks(stored)
        finally:
            self.bytes_read = stored.count
            stored.raw.close()

    def _chunks(self, stored: Stored) -> Iterator[Chunk]:
        source: Source = Unpacked(stored) if packing(stored.peek(MAGIC)) else stored
        head = source.peek(LOOK)
        strange = foreign(head)
        if strange is not None:
            self._stop(strange.reason)
            return
        if source is not stored and packing(head[:MAGIC]) is not None:
            self._stop("an archive within an archive: unpack it once")
            return
        cutter = Cutter(decoded(source))
        for data, part, places in self._turned(self._unwrapped((unescaped(data), part) for data, part in cutter)):
            self.bytes_read = stored.count
            self._tell()
            self.blank = self.blank and (data.isspace() or not data)
            if places is not None:
                self.lines = places[-1]
                yield Chunk(data, places[0], part, places=places)
                continue
            chunk = Chunk(data, self.lines + 1, part)
            yield chunk
            self.lines += data.count(b"\n") if chunk.lines is None else chunk.lines
        self.bytes_read = stored.count
        self._tell()
        self.ends_mid_line = cutter.ends_mid_line
        if cutter.broken is not None:
            self.truncated = True
            self._stop(str(cutter.broken))
        elif self._newest_first:
            self._stop(TURNED if self._held else NOT_TURNED)
        elif self.blank:
            self._stop("empty" if stored.count == 0 else f"empty: nothing but {'blank lines' if self.lines else 'padding'} in it")

    def _unwrapped(self, pieces: Iterator[tuple[bytes, bool]]) -> Iterator[_Item]:
        """Whole lines without their wrapping; windows pass as they are. What the file is wrapped in, its first lines tell."""
        wrapping: Unwrapper | None = None
        for data, part in pieces:
            if not self._decided:
                found, self._decided = _wrapping(data, part), True
                self._newest_first = found is not None and found.newest_first
                if isinstance(found, (Document, YamlRecords)):
                    yield from self._records(found, chain(((data, part),), pieces))
                    return
                wrapping = found
            if wrapping is None:
                yield data, part, None
                continue
            before, data = (wrapping.finish(), data) if part else (b"", wrapping.feed(data))
            if before:
                yield before, False, None
            if data:
                yield data, part, None
        rest = b"" if wrapping is None else wrapping.finish()
        if rest:
            yield rest, False, None

    def _turned(self, items: Iterator[_Item]) -> Iterator[_Item]:
        """``items``, the last message first where the newest stands first: what a service lists so is read as it came about."""
        held: list[_Item] = []
        size = 0
        for item in items:
            if self._newest_first and self._held:
                held.append(item)
                size += len(item[0])
                self._held = size <= HELD and not item[1]
            else:
                yield item
            if held and not self._held:
                yield from held
                held.clear()
        lines: list[bytes] = []
        numbers: list[int] = []
        for data, _, places in held:
            numbers += range(len(lines) + 1, len(lines) + 1 + data.count(b"\n")) if places is None else places
            lines += data.split(b"\n")[:-1]
        held.clear()
        total = max(self.lines, len(lines))
        for end in range(len(lines), 0, -BATCH):
            begin = max(0, end - BATCH)
            yield b"\n".join([*lines[begin:end][::-1], b""]), False, [total + 1 - number for number in numbers[begin:end][::-1]]
        if lines:
            self.lines = total

    def _records(self, wrapping: Document | YamlRecords, pieces: Iterator[tuple[bytes, bool]]) -> Iterator[_Item]:
        """The messages of records, and where they stand."""
        within = False
        for data, part in pieces:
            out, places = wrapping.feed(data[OVERLAP:] if within else data)
            within = part and not data.endswith(b"\n")
            if places:
                yield out, False, places
        out, places = wrapping.finish()
        if places:
            yield out, False, places
        self.lines = wrapping.lines

    def _tell(self) -> None:
        new = self.bytes_read - self._told
        if new and self._on_bytes is not None:
            self._told = self.bytes_read
            self._on_bytes(new)

    def _stop(self, reason: str) -> None:
        self.skip = Skip(self.file.path, reason)


def _wrapping(data: bytes, part: bool) -> Unwrapper | Document | YamlRecords | None:
    if part:
        return document(data)
    if data.startswith((b"==> ", b"\n==> ")):
        from memdoctor.sources.logs.followed import follower  # few logs begin so

        return follower(data) or unwrapper(data)
    return unwrapper(data) or unfolder(data)
