"""Logs that hold nothing but step lines of a known form, some dozens at a time: of the thousands of files of a big job nearly all are such.

They are looked through as one piece of text, and their step lines are turned into numbers together. What comes out is what the whole reader yields
(their first and last moments are those of their step lines, where these tell any), in a fraction of the time; whatever is out of the
ordinary is left to that one.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence

from memdoctor.model import FileRead, InputFile, Stamp
from memdoctor.records import entity
from memdoctor.sources.logs import documents, formats, yaml_records
from memdoctor.sources.logs.archives import MAGIC, packing
from memdoctor.sources.logs.beginning import Beginning
from memdoctor.sources.logs.cleaning import clean
from memdoctor.sources.logs.index import SignalIndex
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.layouts import Layout
from memdoctor.sources.logs.layouts import layout as layout_of
from memdoctor.sources.logs.place import END
from memdoctor.sources.logs.sampling import MANY, NOTHING
from memdoctor.sources.logs.stamps import last_stamp, ordinary_stamp
from memdoctor.sources.logs.step_batches import Known, numbers_of
from memdoctor.sources.logs.steps import Series, read_step
from memdoctor.sources.logs.stored import AT_ONCE
from memdoctor.sources.logs.wrapped import LOOK_CRI

SOME = 48  # logs looked through together
FORMS = 4  # of step lines that are learnt of them at the most
FIRST_WIDE = 0x80  # the least byte of a byte order mark
_TAG = b"[rank"  # a line that begins so names whose step it is

Read = tuple[InputFile, FileRead]


class _Log:
    """One of the logs that may be plain: its bytes as ``stored``, its lines as ``data``, from ``start`` to ``end`` of the text of all; ``parts`` are
    its step lines: the rows from the second to the third (half open) of a batch."""

    __slots__ = ("data", "end", "file", "mtime", "number", "parts", "place", "plain", "start", "stored")

    def __init__(self, place: int, number: int, file: LogFile, stored: bytes, mtime: float, data: bytes) -> None:
        self.place, self.number, self.file, self.stored, self.mtime, self.data = place, number, file, stored, mtime, data
        self.start = self.end = 0
        self.plain = True
        self.parts: list[tuple[_Batch, int, int]] = []


@entity
class _Batch:
    """Step lines of one layout: whose they are, where they begin and end within the text of all, and their numbers."""

    layout: Layout
    logs: list[_Log]
    spans: list[tuple[int, int]]
    texts: list[bytes]
    epochs: list[float]
    columns: Mapping[str, Sequence[float]]


_Entry = tuple[_Log, int, int]  # a step line: whose it is, where it begins and ends within the text of all


class PlainLogs:
    """Reads those that are plain of ``logs``; ``known`` is what other files taught of step lines."""

    def __init__(self, index: SignalIndex, known: Known, logs: int) -> None:
        self._index, self._known, self._logs = index, known, logs

    def read(self, some: Sequence[tuple[int, LogFile]]) -> tuple[list[Read | None], frozenset[int]]:
        """What each of ``some`` yields (``SOME`` at most; each with its place in the reading order); None for those that are not plain.

        With it come the gates that were not looked for, of lines of which a sample is enough, and are in one of these logs at least.
        Where logs are so few that each is worth a closer look, none is plain.
        """
        result: list[Read | None] = [None] * len(some)
        if self._logs <= MANY:
            return result, NOTHING
        logs = self._opened(some)
        text = b"".join([log.data for log in logs])
        if not _is_text(text):
            logs = [log for log in logs if _is_text(log.data)]
            text = b"".join([log.data for log in logs])
        if not logs:
            return result, NOTHING
        at = 0
        for log in logs:
            log.start, log.end = at, at + len(log.data)
            at = log.end
        spans, unread = self._spans(text, logs)
        for gates, found in spans.items():
            self._settle(text, gates, [entry for entry in found if entry[0].plain])
        for log in logs:
            if log.plain:
                result[log.place] = self._told(text, log)
        return result, unread

    def _opened(self, some: Sequence[tuple[int, LogFile]]) -> list[_Log]:
        """The logs that may be plain."""
        logs: list[_Log] = []
        for place, (number, file) in enumerate(some):
            if file.rank is None and not file.group:  # its prefixes must tell whose lines they are
                continue
            whole = _whole(file.opened or file.path)
            if whole is None:
                continue
            stored, mtime = whole
            data = _ended(stored)
            if data is not None and not data.isspace() and _is_log(data):
                logs.append(_Log(place, number, file, stored, mtime, data))
        return logs

    def _spans(self, text: bytes, logs: Sequence[_Log]) -> tuple[dict[tuple[int, ...], list[_Entry]], frozenset[int]]:
        """The segments of step lines by their gates; a log in which anything else is found is plain no more. And the gates not looked for, but met."""
        spans: dict[tuple[int, ...], list[_Entry]] = {}
        opened_by, rest = self._index.opened, iter(logs)
        log = next(rest)
        out, met = self._index.sampling(self._logs).out, set[int]()
        for start, end, gates in self._index.sparing(out).hits(text):
            if not out.isdisjoint(gates):
                met |= out.intersection(gates)
                gates = tuple(gate for gate in gates if gate not in out)
                if not gates:
                    continue
            while start >= log.end:
                log = next(rest)
            opened = opened_by(gates)
            if not opened.only_step or opened.sampled or text.startswith(_TAG, start):
                log.plain = False
            elif log.plain:
                spans.setdefault(gates, []).append((log, start, end))
        return spans, frozenset(met)

    def _settle(self, text: bytes, gates: tuple[int, ...], found: list[_Entry]) -> None:
        """Turn the lines with the same gates into numbers; a log with a line of a form that cannot be learnt is plain no more."""
        for layout in self._known.for_gates(gates):
            found = self._fit(text, gates, layout, found)
        for _ in range(FORMS):
            if not found:
                return
            log, start, end = found[0]
            new = _layout_of(text[start:end])
            if new is None:
                log.plain = False
                found = [entry for entry in found if entry[0] is not log]
            else:
                self._known.learn(new)
                found = self._fit(text, gates, new, found)
        for log, _, _ in found:
            log.plain = False

    def _fit(self, text: bytes, gates: tuple[int, ...], layout: Layout, found: list[_Entry]) -> list[_Entry]:
        """Read the lines that ``layout`` fits; returns the others."""
        if not found:
            return found
        texts = [text[start:end] for _, start, end in found]
        rows = layout.lines.findall(b"\n".join(texts) + b"\n")
        place = layout.groups.index("iteration")
        fits = [bool(row[place]) for row in rows]
        if not any(fits):
            return found
        self._known.fitted(gates, layout)
        own = [entry for entry, fit in zip(found, fits, strict=True) if fit]
        epochs, columns = numbers_of(layout, [row for row, fit in zip(rows, fits, strict=True) if fit], self._known.minutes)
        batch = _Batch(
            layout, [log for log, _, _ in own], [(start, end) for _, start, end in own],
            [raw for raw, fit in zip(texts, fits, strict=True) if fit], epochs, columns,
        )  # fmt: skip
        _part(batch)
        return [entry for entry, fit in zip(found, fits, strict=True) if not fit]

    def _told(self, text: bytes, log: _Log) -> Read:
        file, base = log.file, log.number << 44
        series = Series(file.path)
        first: tuple[int, int] | None = None
        last = (0, 0)
        line, counted = 1, log.start
        for batch, low, high in sorted(log.parts, key=_begin) if len(log.parts) > 1 else log.parts:
            spans = batch.spans[low:high]
            lines, line, counted = [], 1, log.start
            for start, _ in spans:
                line += text.count(b"\n", counted, start)
                counted = start
                lines.append(line)
            series.extend(
                batch.layout.shape, base, lines, batch.epochs[low:high], {name: column[low:high] for name, column in batch.columns.items()},
                batch.layout.fixed, batch.texts[low:high].__getitem__,
            )  # fmt: skip
            first = spans[0] if first is None else first
            last = max(last, spans[-1])
        begun = None if first is None else _moment(text, first)
        over = begun if first is None or first == last else _moment(text, last)
        if begun is None or over is None:
            beginning = Beginning(file, self._logs)
            beginning.read(log.data, log.mtime)
            found = last_stamp(log.data[-END:], beginning.year)
            begun, over = beginning.first, beginning.first if found is None else found[1]
        count = line - 1 + text.count(b"\n", counted, log.end)
        read = FileRead(
            file.path, log.number, file.rank, file.attempt, begun, over, 1, count, False, not log.stored.endswith(b"\n"), time.time() - log.mtime,
            frozenset(() if file.rank is None else (file.rank,)), series, file.opened, file.local_rank, file.host, file.unit, file.nodes,
        )  # fmt: skip
        return InputFile(file.path, len(log.stored), count), read


def _begin(part: tuple[_Batch, int, int]) -> tuple[int, int]:
    return part[0].spans[part[1]]


def _layout_of(raw: bytes) -> Layout | None:
    """The layout of a step line; None where it has none that is worth it."""
    found = read_step(raw)
    new = None if found is None else layout_of(found[0], raw, fixing=False)
    return new if new is not None and new.pattern.fullmatch(raw) is not None else None


def _part(batch: _Batch) -> None:
    """Hand the rows of a batch to their logs; a log with two layouts of one shape, whose lines alternate, is plain no more."""
    first, count = 0, len(batch.logs)
    while first < count:
        log, last = batch.logs[first], first + 1
        while last < count and batch.logs[last] is log:
            last += 1
        if any(other.layout.shape == batch.layout.shape for other, _, _ in log.parts):
            log.plain = False
        log.parts.append((batch, first, last))
        first = last


def _moment(text: bytes, span: tuple[int, int]) -> Stamp | None:
    start, end = span
    return ordinary_stamp(text[start : min(end, start + 64)].decode("utf-8", "replace"))


def _whole(path: str) -> tuple[bytes, float] | None:
    """All bytes of a small regular file that is at rest, and when it was written (seconds since 1970)."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        info = os.fstat(opened)
        if not stat.S_ISREG(info.st_mode) or not 0 < info.st_size < AT_ONCE:
            return None
        data = os.read(opened, info.st_size + 1)
    except OSError:
        return None
    finally:
        os.close(opened)
    return (data, info.st_mtime) if len(data) == info.st_size else None


def _ended(data: bytes) -> bytes | None:
    """``data`` with an end for its last line; None where that line may hold no text."""
    if data.endswith(b"\n"):
        return data
    rest = data[data.rfind(b"\n") + 1 :].removesuffix(b"\r")
    return data.removesuffix(b"\r") + b"\n" if rest.strip(b"\r\0") else None


def _is_log(data: bytes) -> bool:
    """True for a log that is not packed, of one byte a sign, and wrapped in nothing; False may be wrong. What is no log, sorting out has shown."""
    if (
        data.startswith((b"==> ", b"\n==> ")) or documents.begins(data) or yaml_records.begins(data)
    ):  # several logs in one, or none as it stands
        return False
    return data[0] < FIRST_WIDE and packing(data[:MAGIC]) is None and not formats.begins(data) and data.find(b" std", 0, LOOK_CRI) < 0


def _is_text(data: bytes) -> bool:
    """True for lines that need neither to be cleaned nor unwrapped, of one log or of several. False may be wrong."""
    return clean(data) is data and not (b"}" in data and b"}\n" in data)
