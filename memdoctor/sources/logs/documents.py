"""Log lines within a JSON document: an array or a list in an object, on one line or pretty-printed over many, of which nothing is kept but one record.

The messages come out one after the other, each with the number of the line on which it stands. Of a document on one line each record counts
as a line: its number is the place of the record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memdoctor.lazy import lazy
from memdoctor.sources.logs.envelopes import Fields, Told, newest_first, tell
from memdoctor.sources.logs.pieces import piece_of

LOOK = 262_144  # bytes at the start in which the first records are looked for
ENOUGH = 40  # of them that tell in which order they stand
DEEPEST = 7  # brackets around a record
LONGEST = 1_048_576  # bytes of one
_BEGINS = lazy(rb"\s{0,64}(?:\[\s{0,64}[\[{]|\{\s{0,64}\")")
_TOKEN = lazy(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|[\[\]{}"\n]')
_NAMED = lazy(
    rb'"(?:log|textPayload|message|msg|MESSAGE|@message|_raw|Message|LogMessage|LogEntry|logMessage|event|line|body|text|content|values)"\s?:|"@message"'
)


class Document:
    """Takes the messages out of the records that stand within ``level`` brackets; ``one_line``: each is to be a line of its own.

    ``lines`` is how many lines there were so far, ``first`` what the first records told, ``newest_first`` that the last message comes first.
    """

    def __init__(self, level: int, *, one_line: bool) -> None:
        self._level, self._one_line = level, one_line
        self._depth = 0
        self._rest = b""  # a string that is not over
        self._record: list[bytes] | None = None  # what there is of the record at hand
        self._size = 0
        self._begun = 0  # the line on which it begins
        self._beside: Fields | None = None
        self._open: list[bytes] | None = None  # an object one level above the records, which may tell what they share
        self._bare = True  # the line at hand holds no bracket, and stands outside all
        self._out: list[bytes] = []
        self._places: list[int] = []
        self.lines = self.records = self.told = 0
        self.newest_first = False
        self.first: list[Told] = []

    def feed(self, data: bytes) -> tuple[bytes, Sequence[int]]:
        """The messages that are over by now, and their lines. ``data`` is whole lines or, of a document on one line, any part."""
        data, self._rest = self._rest + data, b""
        begin, shared, line = 0, 0, 0
        for match in _TOKEN.finditer(data):
            token, at = match[0], match.start()
            if token in (b"{", b"["):
                if self._depth == self._level and self._record is None:
                    self._record, begin, self._size, self._begun = [], at, 0, self.lines + 1
                elif self._depth == self._level - 1 and token == b"{" and self._open is None:
                    self._open, shared = [], at
                self._depth += 1
                self._bare = False
            elif token in (b"}", b"]"):
                self._depth = max(0, self._depth - 1)
                self._bare = False
                if self._record is not None and self._depth == self._level:
                    self._take(b"".join([*self._record, data[begin : match.end()]]))
                    self._record = None
                elif self._open is not None and self._depth == self._level - 1:
                    self._share(b"".join([*self._open, data[shared : match.end()]]))
                    self._open = None
            elif token == b"\n":
                self.lines += not self._one_line
                if self._bare and self._depth == 0 and not self._one_line:
                    self._tell(data[line:at], self.lines)
                line, self._bare = match.end(), self._depth == 0
            elif token == b'"' and data.find(b"\n", at) < 0 and len(data) - at < LONGEST:
                self._rest, data = data[at:], data[:at]
                break
        if self._record is not None:
            self._size += len(data) - begin
            self._record.append(data[begin:])
            if self._size > LONGEST:
                self._give_up()
        if self._open is not None:
            self._open = [*self._open, data[shared:]] if sum(map(len, self._open)) + len(data) - shared < LONGEST else None
        return self._given()

    def finish(self) -> tuple[bytes, Sequence[int]]:
        """What is left at the end of the file: a record that is cut off stays as it is."""
        if self._record is not None:
            self._give_up()
        return self._given()

    def _given(self) -> tuple[bytes, Sequence[int]]:
        out, places = self._out, self._places
        self._out, self._places = [], []
        return b"".join(out), places

    def _tell(self, text: bytes, line: int) -> None:
        self._out.append(text + b"\n")
        self._places.append(line)

    def _take(self, text: bytes) -> None:
        self.records += text[:1] == b"{"
        told = tell(_value(text), self._beside)
        if told is None:
            return
        self.told += 1
        if self.told <= ENOUGH:
            self.first.append(told)
        if self._one_line:
            self.lines += 1
        self._tell(piece_of(told).joined(), self.lines if self._one_line else self._begun + _line_of(told, text))

    def _share(self, text: bytes) -> None:
        value = _value(text)
        if isinstance(value, dict):
            self._beside = value

    def _give_up(self) -> None:
        """A record that is too long, or that is cut off, comes out as it is."""
        text = b"".join(self._record or [])
        self._record = None
        if self._one_line:
            self.lines += 1
            self._tell(text.replace(b"\n", b" "), self.lines)
            return
        for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), self._begun):
            self._tell(line, number)


def document(data: bytes) -> Document | None:
    """What takes the messages out of a document that begins with ``data``; None where it is no such document."""
    if not begins(data):
        return None
    head = data[:LOOK]
    if _NAMED.search(head) is None:
        return None
    for level in range(DEEPEST):
        trial = Document(level, one_line=False)
        end = head.find(b"\n") + 1 or len(head)
        trial.feed(head[:end])
        on_first = trial.told
        trial.feed(head[end:])
        if trial.told and 2 * trial.told > trial.records:
            found = Document(level, one_line=on_first > 1)
            found.newest_first = newest_first(trial.first)
            return found
    return None


def begins(data: bytes) -> bool:
    """False for what is no such document by its first bytes."""
    return data[:1] in b"[{ \n\t\r" and _BEGINS.match(data) is not None


def _value(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _line_of(told: Told, text: bytes) -> int:
    """In which line of the record its message stands."""
    at = text.find(f'"{told.key}":'.encode())
    return text.count(b"\n", 0, max(0, at))
