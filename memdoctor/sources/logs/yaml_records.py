"""Log lines within YAML, as Google Cloud's command prints log entries unless told otherwise: records between lines of ``---``.

The messages come out one after the other, each with the number of the line on which it begins.
"""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.lazy import lazy
from memdoctor.sources.logs.envelopes import Told, newest_first, tell
from memdoctor.sources.logs.pieces import piece_of

LOOK = 65_536  # bytes at the start in which the first records are looked for
ENOUGH = 20  # of them
LONGEST = 524_288  # bytes of one that is put together
_MARK = b"---"
_BEGINNINGS = (b"---\n", b"insertId:", b"textPayload:", b"jsonPayload:", b"labels:", b"logName:")
_PAYLOAD = lazy(rb"(?:^|\n)(?:textPayload|jsonPayload):")


class YamlRecords:
    """Takes the messages out, chunk after chunk of whole lines. ``lines`` is how many there were so far."""

    def __init__(self) -> None:
        self._record: list[bytes] = []  # the lines of the record at hand
        self._size = 0
        self._out: list[bytes] = []
        self._places: list[int] = []
        self.lines = 0
        self.newest_first = False

    def feed(self, data: bytes) -> tuple[bytes, Sequence[int]]:
        """The messages of the records that are over by now, and their lines. ``data`` is whole lines, or a part of a long one."""
        if not data.endswith(b"\n"):  # of the last part the line is counted
            return b"", ()
        for line in data[:-1].split(b"\n"):
            if line == _MARK or self._size > LONGEST:
                self._end()
            self._record.append(line)
            self._size += len(line) + 1
            self.lines += 1
        return self._given()

    def finish(self) -> tuple[bytes, Sequence[int]]:
        """The last record."""
        self._end()
        return self._given()

    def _given(self) -> tuple[bytes, Sequence[int]]:
        out, places = self._out, self._places
        self._out, self._places = [], []
        return b"".join(out), places

    def _end(self) -> None:
        lines, self._record, self._size = self._record, [], 0
        first = self.lines - len(lines) + 1
        told = _told(b"\n".join(lines))
        if told is None:
            self._out += [line + b"\n" for line in lines]
            self._places += range(first, first + len(lines))
            return
        self._out.append(piece_of(told).joined() + b"\n")
        place = next((number for number, line in enumerate(lines) if line.lstrip().startswith(told.key.encode() + b":")), 0)
        self._places.append(first + place)


def yaml_records(data: bytes) -> YamlRecords | None:
    """What takes the messages out of records that begin with ``data``; None where these are no such records."""
    if not begins(data) or _PAYLOAD.search(data[:LOOK]) is None:
        return None
    records = [text for text in b"\n".join([b"", data[:LOOK]]).split(b"\n---\n") if text.strip()][:ENOUGH]
    told = [each for text in records if (each := _told(text)) is not None]
    if 2 * len(told) <= len(records):
        return None
    found = YamlRecords()
    found.newest_first = newest_first(told)
    return found


def begins(data: bytes) -> bool:
    """False for what is no such record by its first bytes."""
    return data.startswith(_BEGINNINGS)


def _told(text: bytes) -> Told | None:
    import yaml  # few logs need it

    try:
        value = yaml.load(text.decode("utf-8", "replace"), getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # texts, no objects
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return tell(value) if isinstance(value, dict) else None
