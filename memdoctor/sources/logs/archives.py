"""Compressed logs: gzip, zstd, xz and bzip2, recognised by their first bytes and never by their name.

Memory stays constant: input goes in slices of ``FEED`` bytes, output comes out in pieces. Members and archives that follow each
other in one file are read through, and so is plain text that was appended to them; an archive that is cut off or damaged yields what comes before the damage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from memdoctor.sources.logs.stored import Broken, Source, Stored
from memdoctor.units import format_size

if TYPE_CHECKING:
    import bz2
    import lzma

READ = 65_536  # bytes of input asked for at a time
FEED = 1_024  # bytes of input per step: a zstd block of 4 bytes can hold 128 KiB, so one step yields 32 MiB at the very most
ROOM = 262_144  # bytes of output per step, where the codec can be told
APPENDED = 512  # bytes that show that plain text follows
MAGIC = 10  # bytes that tell a format

# Real logs shrink 5 to 50 times, the dullest (one line over and over) some hundred times; gzip itself cannot pass 1,032. Beyond
# this ratio a file is made to fill disks, not to be read; small ones are harmless whatever their ratio.
MAX_RATIO = 1_000
FREE_OUTPUT = 1 << 30
MAX_WINDOW = 1 << 27  # bytes of history: the limit of the zstd command line too; xz -9 needs half of it


_SIGNS = bytes({*range(32, 127), *range(128, 256), *b"\t\n\r\x1b"})  # of text in any encoding of one byte a sign, or of UTF-8


class _Codec(Protocol):
    """One member of an archive."""

    eof: bool
    unused: bytes  # input after the end of the member
    bare: bool  # no archive: it may end anywhere
    hungry: bool  # False while there is output left that needs no more input

    def step(self, data: bytes) -> bytes: ...


def packing(head: bytes) -> str | None:
    """The compression that ``head`` (the first ``MAGIC`` bytes) begins with: ``gzip``, ``zstd``, ``xz``, ``bzip2`` or None."""
    if head[:3] == b"\x1f\x8b\x08":
        return "gzip"
    if head[:4] == b"\x28\xb5\x2f\xfd" or (head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):  # the latter: a skippable frame
        return "zstd"
    if head[:6] == b"\xfd7zXZ\x00":
        return "xz"
    if head[:3] == b"BZh" and head[3:4].isdigit() and head[4:10] in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"):  # first block; empty file
        return "bzip2"
    return None


class Unpacked(Source):
    """What the archive in ``stored`` holds."""

    def __init__(self, stored: Stored) -> None:
        super().__init__()
        self._stored = stored
        self._codec: _Codec | None = None
        self._name = ""
        self._input, self._at = b"", 0
        self._output, self._given = b"", 0
        self._produced = 0

    def fill(self, view: memoryview) -> int:
        while self._given == len(self._output):
            output = self._next()
            if output is None:
                return 0
            self._output, self._given = output, 0
            self._produced += len(output)
            if self._produced > FREE_OUTPUT and self._produced > MAX_RATIO * self._stored.count:
                raise Broken(
                    f"the {self._name} archive expands more than {MAX_RATIO:,} times ({format_size(self._stored.count)} to over "
                    f"{format_size(self._produced)}): stopped there; unpack it yourself if it is a log"
                )
        got = min(len(view), len(self._output) - self._given)
        view[:got] = memoryview(self._output)[self._given : self._given + got]
        self._given += got
        return got

    def _next(self) -> bytes | None:
        """The next piece of output, maybe empty; None at the end."""
        if self._codec is None:
            self._codec = self._open()
            if self._codec is None:
                return None
        data = b""
        if self._codec.hungry:
            data = self._take()
            if not data and self._codec.bare:
                return None
            if not data:
                raise Broken(f"the {self._name} archive is cut off: read up to there ({format_size(self._produced)})")
        try:
            output = self._codec.step(data)
        except _errors() as error:
            raise Broken(f"the {self._name} archive is damaged ({error}): read up to there ({format_size(self._produced)})") from error
        if self._codec.eof:
            self._input, self._at = self._codec.unused + self._input[self._at :], 0
            self._codec = None
        return output

    def _take(self) -> bytes:
        if self._at == len(self._input):
            self._more()
        data = self._input[self._at : self._at + FEED]
        self._at += len(data)
        return data

    def _more(self) -> bool:
        buffer = bytearray(READ)
        got = self._stored.readinto(memoryview(buffer))
        self._input, self._at = self._input[self._at :] + buffer[:got], 0
        return got > 0

    def _open(self) -> _Codec | None:
        """The codec of the next member; None where only padding is left."""
        while True:
            while len(self._input) - self._at < MAGIC and self._more():
                pass
            rest = self._input[self._at :]
            if rest.strip(b"\0"):
                break
            self._at = len(self._input)
            if not rest:
                return None
        if rest[:1] == b"\0":
            self._input, self._at = rest.lstrip(b"\0"), 0
            return self._open()
        name = packing(rest[:MAGIC])
        if name is None and self._is_text():
            return _Bare()
        if name is None:
            raise Broken(
                f"what follows the {self._name} archive in the file is not an archive: left out after {format_size(self._produced)}"
            )
        self._name = name
        return _CODECS[name]()

    def _is_text(self) -> bool:
        while len(self._input) - self._at < APPENDED and self._more():
            pass
        return not self._input[self._at : self._at + APPENDED].translate(None, _SIGNS)


class _Bare:
    """Plain text behind the archives: a program that appended without packing."""

    def __init__(self) -> None:
        self.eof, self.unused, self.hungry, self.bare = False, b"", True, True

    def step(self, data: bytes) -> bytes:
        return data


class _Gzip:
    bare = False

    def __init__(self) -> None:
        import zlib

        self._inner = zlib.decompressobj(31)  # 31: a gzip header is expected, the checksum is compared
        self.eof, self.unused, self.hungry = False, b"", True

    def step(self, data: bytes) -> bytes:
        output = self._inner.decompress(self._inner.unconsumed_tail + data, ROOM)
        self.eof, self.unused, self.hungry = self._inner.eof, self._inner.unused_data, not self._inner.unconsumed_tail
        return output


class _Buffered:
    """bzip2 and xz, whose objects share one shape."""

    bare = False

    def __init__(self, inner: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._inner = inner
        self.eof, self.unused, self.hungry = False, b"", True

    def step(self, data: bytes) -> bytes:
        output = self._inner.decompress(data, ROOM)
        self.eof, self.unused, self.hungry = self._inner.eof, self._inner.unused_data, self._inner.needs_input
        return output


class _Zstd:
    bare = False

    def __init__(self) -> None:
        import zstandard

        self._inner = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()
        self.eof, self.unused, self.hungry = False, b"", True

    def step(self, data: bytes) -> bytes:
        output: bytes = self._inner.decompress(data)
        self.eof, self.unused = self._inner.eof, self._inner.unused_data
        return output


def _errors() -> tuple[type[Exception], ...]:
    import lzma
    import zlib

    import zstandard

    return OSError, EOFError, MemoryError, zlib.error, lzma.LZMAError, zstandard.ZstdError


def _bzip2() -> _Codec:
    import bz2

    return _Buffered(bz2.BZ2Decompressor())


def _xz() -> _Codec:
    import lzma

    return _Buffered(lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=2 * MAX_WINDOW))


_CODECS: dict[str, Callable[[], _Codec]] = {
    "gzip": _Gzip,
    "bzip2": _bzip2,
    "xz": _xz,
    "zstd": _Zstd,
}
