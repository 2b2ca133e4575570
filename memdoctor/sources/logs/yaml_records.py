"""Log lines within YAML, as Google Cloud's command prints log entries unless told otherwise: records between lines of ``---``.

Each message takes the place of the line on which it begins, and all others are empty, so that line numbers hold.
"""

from __future__ import annotations

from memdoctor.lazy import lazy
from memdoctor.sources.logs.envelopes import Told, tell
from memdoctor.sources.logs.pieces import piece_of

LOOK = 65_536  # bytes at the start in which the first records are looked for
ENOUGH = 20  # of them
LONGEST = 524_288  # bytes of one that is put together
_MARK = b"---"
_BEGINNINGS = (b"---\n", b"insertId:", b"textPayload:", b"jsonPayload:", b"labels:", b"logName:")
_PAYLOAD = lazy(rb"(?:^|\n)(?:textPayload|jsonPayload):")


class YamlRecords:
    """Takes the messages out, chunk after chunk of whole lines."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []  # of the record at hand
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """The lines of the records that are over by now."""
        out: list[bytes] = []
        for line in data[:-1].split(b"\n"):
            if line == _MARK or self._size > LONGEST:
                self._end(out)
            self._lines.append(line)
            self._size += len(line) + 1
        return b"".join([line + b"\n" for line in out])

    def finish(self) -> bytes:
        """The last record."""
        out: list[bytes] = []
        self._end(out)
        return b"".join([line + b"\n" for line in out])

    def _end(self, out: list[bytes]) -> None:
        lines, self._lines, self._size = self._lines, [], 0
        told = _told(b"\n".join(lines))
        if told is None:
            out += lines
            return
        place = next((number for number, line in enumerate(lines) if line.lstrip().startswith(told.key.encode() + b":")), 0)
        out += [piece_of(told).joined() if number == place else b"" for number in range(len(lines))]


def yaml_records(data: bytes) -> YamlRecords | None:
    """What takes the messages out of records that begin with ``data``; None where these are no such records."""
    if not begins(data) or _PAYLOAD.search(data[:LOOK]) is None:
        return None
    records = [text for text in b"\n".join([b"", data[:LOOK]]).split(b"\n---\n") if text.strip()][:ENOUGH]
    told = sum(_told(text) is not None for text in records)
    return YamlRecords() if 2 * told > len(records) else None


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
