"""Byte encodings: UTF-16 and UTF-32 become UTF-8, a byte order mark goes. Other bytes pass untouched (they are decoded later)."""

from __future__ import annotations

import codecs

from memdoctor.lazy import lazy
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
_SOME = 0.08  # share of them in a log that is mostly Chinese, Japanese or Korean ...
_READABLE = 0.98  # ... and share of its signs that can be printed, without any control byte
_SPACES = "\t\n\r\x1b"
# So many signs of one byte in a row, none of which is NUL, are no UTF-16: another program wrote on in UTF-8.
_NARROW = lazy(rb"[\t\n\r\x1b -~]{40}")
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
        for zeros, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
            if zeros.count(0) >= _SOME * pairs and others.count(0) <= pairs // 100 and _is_readable(head, name):
                return name, 0
    return "utf-8", 0


def _is_readable(head: bytes, name: str) -> bool:
    """Whether ``head`` is text of several lines in the encoding ``name``."""
    try:
        text = codecs.getincrementaldecoder(name)().decode(head)
    except UnicodeDecodeError:
        return False
    strange = [sign for sign in text if not sign.isprintable() and sign not in _SPACES]
    return "\n" in text and len(strange) <= (1 - _READABLE) * len(text) and not any(sign < " " for sign in strange)


def decoded(source: Source) -> Source:
    """``source`` without its byte order mark, as UTF-8 where it was wider; ``source`` itself where there is nothing to do."""
    name, mark = encoding(source.peek(LOOK))
    if mark:
        source.readinto(memoryview(bytearray(mark)))
    return source if name == "utf-8" else _Narrowed(source, name)


class _Narrowed(Source):
    """UTF-16 or UTF-32 as UTF-8; what cannot be decoded becomes U+FFFD. What another program appended in UTF-8 is read as that."""

    def __init__(self, source: Source, name: str) -> None:
        super().__init__()
        self._source = source
        self._decoder = codecs.getincrementaldecoder(name)(errors="replace")
        self._buffer = bytearray(65_536)
        self._output, self._given = b"", 0
        self._final = self._over = False

    def fill(self, view: memoryview) -> int:
        while self._given == len(self._output):
            if self._final:
                return 0
            got = self._source.readinto(memoryview(self._buffer))
            self._final = got == 0
            data = bytes(self._buffer[:got])
            narrow = None if self._over else _NARROW.search(data)
            if self._over:
                self._output = data
            elif narrow is None:
                self._output = self._decoder.decode(data, self._final).encode("utf-8", "replace")
            else:
                self._over = True
                wide = self._decoder.decode(data[: narrow.start()])
                self._output = wide.encode("utf-8", "replace") + data[narrow.start() :]
            self._given = 0
        got = min(len(view), len(self._output) - self._given)
        view[:got] = memoryview(self._output)[self._given : self._given + got]
        self._given += got
        return got
