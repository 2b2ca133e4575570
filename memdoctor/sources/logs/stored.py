"""Bytes as they are stored: a file, a FIFO or standard input, read once from front to back."""

from __future__ import annotations

import io
import os
import stat
import sys
from typing import BinaryIO, Protocol

from memdoctor.units import format_size

STDIN = "-"
AT_ONCE = 65_536  # bytes of a file that is small enough to be read in one go


class Broken(Exception):
    """Reading cannot go on; the text says why, for a person. What was read before it counts."""


class Raw(Protocol):
    """The border to the operating system: an unbuffered binary stream."""

    def readinto(self, view: memoryview, /) -> int | None:
        """Bytes read; 0 at the end, None where a stream that does not block has none just now (it then has a ``fileno``)."""

    def close(self) -> None: ...


class Source:
    """A stream of bytes whose first bytes can be looked at before they are read. Layers are stacked: stored, unpacked, decoded."""

    def __init__(self) -> None:
        self._head = b""
        self._broken: Broken | None = None
        self._ended = False  # the first end counts: what is written later is not waited for

    def fill(self, view: memoryview) -> int:
        """Put at least one byte at the start of ``view`` and return how many; 0 at the end. Raises Broken."""
        raise NotImplementedError

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, or fewer at the end; they stay unread. An error met here shows when reading gets there."""
        buffer = bytearray(size)
        while len(self._head) < size and self._broken is None and not self._ended:
            try:
                got = self.fill(memoryview(buffer)[: size - len(self._head)])
            except Broken as error:
                self._broken = error
            else:
                self._ended = got == 0
                self._head += buffer[:got]
        return self._head[:size]

    def whole(self, most: int) -> bytes | None:
        """All that is left where it is less than ``most`` bytes and can be had at once; None where it cannot."""
        return None

    def readinto(self, view: memoryview) -> int:
        """Like ``fill``, beginning with what was peeked at."""
        if self._head:
            got = min(len(view), len(self._head))
            view[:got], self._head = self._head[:got], self._head[got:]
            return got
        if self._broken is not None:
            raise self._broken
        if self._ended:
            return 0
        got = self.fill(view)
        self._ended = got == 0
        return got


class Stored(Source):
    """The lowest layer. ``count`` is how many bytes were taken; ``size`` and ``mtime`` are those at opening, of a regular file only."""

    def __init__(self, raw: Raw, size: int | None = None, mtime: float | None = None) -> None:
        super().__init__()
        self.raw, self.size, self.mtime, self.count = raw, size, mtime, 0

    def whole(self, most: int) -> bytes | None:
        if self.size is None or self.size >= most or self.count > len(self._head):
            return None
        data = self.peek(self.size + 1)
        if not self._ended:  # it grows, or cannot be read
            return None
        self._head = b""
        return data

    def fill(self, view: memoryview) -> int:
        try:
            got = self.raw.readinto(view)
            while got is None:  # a non-blocking pipe that is empty just now
                import select

                select.select([self.raw.fileno()], [], [])  # type: ignore[attr-defined]  # only real files do that
                got = self.raw.readinto(view)
        except (OSError, ValueError) as error:  # ValueError: the stream is closed
            raise Broken(f"read error after {format_size(self.count)}: {explain(error)}") from error
        self.count += got
        if got == 0 and self.size is not None and self.count < self.size:
            raise Broken(f"the file shrank while it was read: {format_size(self.count)} of {format_size(self.size)}")
        return got


def open_stored(path: str) -> Stored:
    """Open ``path`` ("-" is standard input). Raises OSError."""
    if path == STDIN:
        if sys.stdin is None:
            raise OSError("standard input is closed")
        return Stored(_Lent(sys.stdin.buffer))
    raw = io.FileIO(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY))
    info = os.fstat(raw.fileno())
    if not stat.S_ISREG(info.st_mode):
        return Stored(raw)
    stored = Stored(raw, info.st_size, info.st_mtime)
    if info.st_size < AT_ONCE:
        stored.peek(info.st_size + 1)
    return stored


def explain(error: BaseException) -> str:
    """Why the system refused, in a few words and without the path."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error) or type(error).__name__


class _Lent:
    """Standard input: read, but never closed by us."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readinto(self, view: memoryview, /) -> int | None:
        got: int | None = self._stream.readinto(view)  # type: ignore[attr-defined]  # BinaryIO lacks it, every binary stream has it
        return got

    def fileno(self) -> int:
        return self._stream.fileno()

    def close(self) -> None:
        return None
