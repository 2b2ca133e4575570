"""Byte encodings: UTF-16 and UTF-32 become UTF-8, a byte order mark goes. Other bytes pass untouched (they are decoded later)."""

from __future__ import annotations

import codecs

from memdoctor.sources.logs.stored import Source

LOOK = 4_096  # bytes that are looked at
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_WIDE = 0.9  # share of pairs that must look like ASCII in UTF-16; a log in any language is full of digits, spaces and paths
_FEWEST = 8  # pairs below which a file without a mark is not guessed at


def encoding(head: bytes) -> tuple[str, int]:
    """The encoding that ``head`` shows and the length of its byte order mark; ``("utf-8", 0)`` for everything of one byte a sign."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name, len(mark)
    if b"\0" not in head:  # as nearly always
        return "utf-8", 0
    even, odd = head[0::2], head[1::2]
    pairs = len(odd)
    if pairs >= _FEWEST:
        if odd.count(0) >= _WIDE * pairs and even.count(0) <= pairs - _WIDE * pairs:
            return "utf-16-le", 0
        if even.count(0) >= _WIDE * pairs and odd.count(0) <= pairs - _WIDE * pairs:
            return "utf-16-be", 0
    return "utf-8", 0


def decoded(source: Source) -> Source:
    """``source`` without its byte order mark, as UTF-8 where it was wider; ``source`` itself where there is nothing to do."""
    name, mark = encoding(source.peek(LOOK))
    if mark:
        source.readinto(memoryview(bytearray(mark)))
    return source if name == "utf-8" else _Narrowed(source, name)


class _Narrowed(Source):
    """UTF-16 or UTF-32 as UTF-8; what cannot be decoded becomes U+FFFD."""

    def __init__(self, source: Source, name: str) -> None:
        super().__init__()
        self._source = source
        self._decoder = codecs.getincrementaldecoder(name)(errors="replace")
        self._buffer = bytearray(65_536)
        self._output, self._given = b"", 0
        self._final = False

    def fill(self, view: memoryview) -> int:
        while self._given == len(self._output):
            if self._final:
                return 0
            got = self._source.readinto(memoryview(self._buffer))
            self._final = got == 0
            text = self._decoder.decode(bytes(self._buffer[:got]), self._final)
            self._output, self._given = text.encode("utf-8", "replace"), 0
        got = min(len(view), len(self._output) - self._given)
        view[:got] = memoryview(self._output)[self._given : self._given + got]
        self._given += got
        return got
