"""One pass over one file: chunks → the few segments that matter → facts in the store.

Between open blocks the scan jumps from hit to hit; while a traceback or block is open it goes line by line, stream by stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memdoctor.model import Signal, Stamp
from memdoctor.sources.logs import formats, steps
from memdoctor.sources.logs.blocks import Block, read_line
from memdoctor.sources.logs.glue import split_glued
from memdoctor.sources.logs.index import Opened, SignalIndex
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.making import STARTS, FactMaker, Found
from memdoctor.sources.logs.prefixes import Prefixes
from memdoctor.sources.logs.reading import Chunk, Reader
from memdoctor.sources.logs.sites import locate
from memdoctor.sources.logs.stamps import find_stamp, parse_stamp
from memdoctor.sources.logs.store import Store
from memdoctor.sources.logs.tracebacks import RawException, TracebackReader, bare_name, from_tail, lone_exception, starts

SAMPLE_LINES = 200  # read to learn the prefixes of a file
SAMPLE_BYTES = 65_536
LONG = 16_384  # a longer segment is looked at around its gates only
AROUND = (2_048, 6_144)  # bytes before and after a gate of a long segment
IDLE = 400  # lines after which an open traceback or block whose stream is silent is closed
BACK = 8_192  # bytes looked back for a stamp or for the frames of a lone exception
QUIET_LEVELS = ("DEBUG", "INFO", "WARNING", "WARN", "TRACE", "I", "W", "D", "V")


class _Open:
    """An open traceback of one stream, with the signal facts found on its lines."""

    __slots__ = ("after", "context", "line", "pending", "raws", "reader", "tick")

    def __init__(self, line: Line, tick: int, context: Mapping[str, Any], after: Stamp | None) -> None:
        self.reader = TracebackReader()
        self.line = line
        self.tick = tick
        self.context = context  # phase and iteration when it began
        self.after = after
        self.pending: list[tuple[Signal, dict[str, Any], int, Line, str]] = []
        self.raws: dict[int, str] = {}


@dataclass(slots=True)
class _OpenBlock:
    """An open block of one stream, with the line that opened it."""

    block: Block
    line: Line
    number: int
    raw: str
    part: int
    tick: int
    after: Stamp | None


class FileScan:
    """Reads one file into ``store``. After ``run``: ``series`` of its step lines, its first and last ``Stamp``, the ranks seen."""

    def __init__(self, file: LogFile, number: int, index: SignalIndex, store: Store) -> None:
        self.file, self.number, self.index, self.store = file, number, index, store
        self.series = steps.Series(file.path)
        self.first: Stamp | None = None
        self.last: Stamp | None = None
        self.ranks: set[int] = set() if file.rank is None else {file.rank}
        self._maker = FactMaker(file, number, store)
        self._prefixes = Prefixes(file_rank=file.rank, file_host=file.host)
        self._format: formats.Format | None = None
        self._tracebacks: dict[str, _Open] = {}
        self._blocks: dict[str, _OpenBlock] = {}
        self._data, self._start, self._before = b"", 0, b""
        self._line = 0
        self._part = 0
        self._tick = 0
        self._seen_in_part: set[tuple[int, str]] = set()

    @property
    def epochs(self) -> int:
        """How many attempts this file alone tells apart."""
        return self._maker.epoch

    def run(self, reader: Reader) -> None:
        tail = b""
        for chunk in reader:
            if self._line == 0:
                self._prefixes = Prefixes(file_rank=self.file.rank, file_host=self.file.host, not_after=reader.mtime)
                self._learn(chunk.data)
            if self._format is not None:
                self._read_format(chunk)
            else:
                self._read(chunk)
            tail = chunk.data[-BACK:]
            self._before = tail
        for stream in list(self._tracebacks):
            self._finish_traceback(stream)
        for stream in list(self._blocks):
            self._finish_block(stream)
        self.last = self._stamp_back(tail, len(tail)) or self.first

    # --- chunks and segments ----------------------------------------------------------------------------------------

    def _learn(self, data: bytes) -> None:
        sample = [part.decode("utf-8", "replace") for part in data[:SAMPLE_BYTES].split(b"\n")[:SAMPLE_LINES]]
        self._format = formats.detect(sample)
        self._prefixes.learn(sample)
        for raw in sample:
            if self.first is None:
                self.first = find_stamp(raw, self._prefixes.year)
            rank = self._prefixes.strip(raw).rank
            if rank is not None:
                self.ranks.add(rank)

    def _read_format(self, chunk: Chunk) -> None:
        assert self._format is not None
        for offset, raw in enumerate(chunk.data.decode("utf-8", "replace").split("\n")[:-1]):
            number = chunk.line + offset
            for kind, fields in self._format.feed(raw):
                self._line, self._part = number, 0
                self._emit(kind, dict(fields), Line(text=raw), raw, number)

    def _read(self, chunk: Chunk) -> None:
        data = self._data = chunk.data
        self._line, self._counted = chunk.line, 0
        if not chunk.part:
            self._seen_in_part.clear()
        hits = self.index.matcher.hits(data)
        at, position = 0, 0
        while True:
            if self._tracebacks or self._blocks:
                if position >= len(data):
                    return
                start, end = position, self._segment_end(data, position)
                while at < len(hits) and hits[at][0] < start:
                    at += 1
                gates = hits[at][2] if at < len(hits) and hits[at][0] == start else ()
            else:
                while at < len(hits) and hits[at][0] < position:
                    at += 1
                if at == len(hits):
                    return
                start, end, gates = hits[at]
            self._line += data.count(b"\n", self._counted, start)
            self._counted = self._start = start
            self._segment(data, start, end, gates, chunk.part)
            position = end + 1

    @staticmethod
    def _segment_end(data: bytes, start: int) -> int:
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        carriage = data.find(b"\r", start, end)
        return carriage if carriage >= 0 else end

    def _segment(self, data: bytes, start: int, end: int, gates: tuple[int, ...], part: bool) -> None:
        if end - start > LONG:
            for cut in self._around(data, start, end, gates):
                self._one(cut, self.index.opened(tuple(g for g in gates if self.index.gates[g] in cut)), True)
        else:
            self._one(data[start:end], self.index.opened(gates), part)

    def _around(self, data: bytes, start: int, end: int, gates: tuple[int, ...]) -> Iterator[bytes]:
        """Excerpts of a very long segment around its gates, in order, each gate's place once."""
        places: list[int] = []
        for gate in (self.index.gates[number] for number in gates):
            offset = data.find(gate, start, end)
            while offset >= 0 and len(places) < 1_000:
                places.append(offset)
                offset = data.find(gate, offset + len(gate), end)
        done = start
        for place in sorted(places):
            if place >= done:
                done = min(end, place + AROUND[1])
                yield data[max(start, place - AROUND[0]) : done]

    def _one(self, raw: bytes, opened: Opened, part: bool) -> None:
        self._tick += 1
        self._part = 0
        step = steps.read_step(raw) if opened.step else None
        if step is not None:
            self._add_step(step, raw)
            if not (opened.signals or self._tracebacks or self._blocks):
                return
        text = raw.decode("utf-8", "replace")
        for number, piece in enumerate(split_glued(text)):
            self._part = number
            self._handle(self._prefixes.strip(piece), piece, opened, step is not None, part)
        if self._tracebacks or self._blocks:
            self._close_idle()

    def _add_step(self, step: tuple[str, steps.Step], raw: bytes) -> None:
        self.series.add(step[0], step[1], self._maker.seq(self._line, 0), self._line, raw, self._epoch_of_minute)
        self._maker.stepped(int(step[1]["iteration"]))

    @staticmethod
    def _epoch_of_minute(text: str) -> float | None:
        stamp = parse_stamp(f"{text}:00", year=None)
        return None if stamp is None else stamp.epoch

    # --- one line of one stream ----------------------------------------------------------------------------------------

    def _handle(self, line: Line, raw: str, opened: Opened, is_step: bool, part: bool) -> None:
        if line.rank is not None:
            self.ranks.add(line.rank)
        stream, number = line.stream, self._line
        inside = self._feed_traceback(line, raw, opened)
        block = self._blocks.get(stream)
        if block is not None:
            block.tick = self._tick
            if not block.block.feed(line.text):
                self._finish_block(stream)
        known = False
        for signal in opened.signals:
            if part and (number, signal.id) in self._seen_in_part:
                known = True
                continue
            if not all(text in raw for text in signal.has):
                continue
            found = read_line(signal, line.text)
            if found is None:
                continue
            known = True
            if part:
                self._seen_in_part.add((number, signal.id))
            if inside is not None:
                inside.pending.append((signal, found, number, line, raw))
            elif signal.block:
                if stream in self._blocks:
                    self._finish_block(stream)
                self._blocks[stream] = _OpenBlock(
                    Block(signal, {**signal.set, **found}), line, number, raw, self._part, self._tick, self._stamp_before(line)
                )
            else:
                self._emit(signal.fact, {**signal.set, **found}, line, raw, number)
        if inside is None and opened.error and not is_step:
            self._error(line, raw, number, known)

    def _feed_traceback(self, line: Line, raw: str, opened: Opened) -> _Open | None:
        """The open traceback that ``line`` belongs to, if it does."""
        stream = line.stream
        current = self._tracebacks.get(stream)
        if current is not None:
            if current.reader.feed(line, self._line):
                current.tick = self._tick
                current.raws[self._line] = raw
                return current if current.reader.took else None
            self._finish_traceback(stream)
        if opened.traceback and starts(line.text):
            current = self._tracebacks[stream] = _Open(line, self._tick, self._maker.context(), self._stamp_before(line))
            current.raws[self._line] = raw
            if current.reader.feed(line, self._line):
                return current
            self._finish_traceback(stream)
        return None

    def _error(self, line: Line, raw: str, number: int, known: bool) -> None:
        lone = lone_exception(line.text)
        if lone is not None:
            frames = from_tail(self._tail(line))
            site, owner = locate(frames, *lone)
            last = frames[-1] if frames else None
            fields: dict[str, Any] = {"type": lone[0], "message": lone[1][:2000], "complete": False, "chained": False, "root": True}
            if last is not None:
                fields.update(file=last.file, function=last.function, source=last.source)
            if (line.level or "").upper() in QUIET_LEVELS:
                fields["logged"] = True  # told at a level at which nothing ends
            self._emit("exception", {**fields, "site": site, "owner": owner}, line, raw, number)
        elif not known and (line.level or "").upper() not in QUIET_LEVELS:
            self._emit("error.line", {"text": line.text.strip()[:500]}, line, raw, number)

    def _tail(self, line: Line) -> list[tuple[int, Line]]:
        """The lines of the same stream just before this one, oldest first."""
        before = (self._before + self._data[: self._start])[-BACK:] if self._start < BACK else self._data[self._start - BACK : self._start]
        lines = [self._prefixes.strip(raw) for raw in before.decode("utf-8", "replace").split("\n")[1:-1]]
        first = self._line - len(lines)
        return [(first + offset, other) for offset, other in enumerate(lines) if other.stream == line.stream][-80:]

    # --- closing ----------------------------------------------------------------------------------------------------------

    def _close_idle(self) -> None:
        for stream in [key for key, current in self._tracebacks.items() if self._tick - current.tick > IDLE]:
            self._finish_traceback(stream)
        for stream in [key for key, block in self._blocks.items() if self._tick - block.tick > IDLE]:
            self._finish_block(stream)

    def _finish_block(self, stream: str) -> None:
        done = self._blocks.pop(stream)
        event = f"{self.number}:{done.number}.{done.part}"
        self._maker.make(
            done.block.signal.fact, done.block.result(), Found(done.line, done.raw, done.number, done.part, event, {}, done.after)
        )

    def _finish_traceback(self, stream: str) -> None:
        current = self._tracebacks.pop(stream)
        exceptions = current.reader.finish()
        chain = f"{self.number}:{exceptions[0].line}:{stream}" if exceptions else ""
        for raised in exceptions:
            site, owner = locate(raised.frames, raised.type, raised.message)
            context = {**current.context, "site": site, "owner": owner}
            raw = current.raws.get(raised.line, f"{raised.type}: {raised.message}")
            event = chain if raised.chained else f"{self.number}:{raised.line}:{stream}"
            where = Found(current.line, raw, raised.line, 0, event, context, current.after)
            self._maker.make("exception", self._exception_fields(raised), where)
            for signal, found, number, line, text in current.pending:
                if raised.line <= number <= raised.last_line:
                    known = {**context, "exception": bare_name(raised.type)}
                    fields = self._following(signal, found, raised.message.split("\n")[number - raised.line + 1 :])
                    self._maker.make(signal.fact, fields, Found(line, text, number, 0, event, known, current.after))

    @staticmethod
    def _following(signal: Signal, found: dict[str, Any], lines: Sequence[str]) -> dict[str, Any]:
        """The fields of a fact whose line is part of an exception's message, with what the next ``lines`` of the message add."""
        block = Block(signal, {**signal.set, **found})
        if signal.block:
            for line in lines:
                if not block.feed(line):
                    break
        return block.result()

    @staticmethod
    def _exception_fields(raised: RawException) -> dict[str, Any]:
        last = raised.frames[-1] if raised.frames else None
        fields = {
            "type": raised.type,
            "message": raised.message[:2000],
            "complete": raised.complete,
            "chained": raised.chained,
            "root": raised.root,
        }
        if last is not None:
            fields.update(file=last.file, function=last.function, source=last.source)
        return fields

    def _emit(self, kind: str, found: dict[str, Any], line: Line, raw: str, number: int) -> None:
        """A fact of this one line."""
        if kind in STARTS:  # what is still open belongs to the attempt before
            for stream in list(self._tracebacks):
                self._finish_traceback(stream)
        if self._maker.wants(kind, found, line):
            self._maker.make(kind, found, Found(line, raw, number, self._part, "", {}, self._stamp_before(line)))

    # --- the neighbourhood ------------------------------------------------------------------------------------------

    def _stamp_before(self, line: Line) -> Stamp | None:
        """The last stamp before this line, where the line has none of its own."""
        if line.time is not None:
            return None
        if self._start < BACK and self._before:
            data = self._before + self._data[: self._start]
            return self._stamp_back(data, len(data))
        return self._stamp_back(self._data, self._start)

    def _stamp_back(self, data: bytes, end: int) -> Stamp | None:
        """The last stamp in the lines before ``end``, at most ``BACK`` bytes away."""
        for raw in reversed(data[max(0, end - BACK) : end].split(b"\n")):
            stamp = find_stamp(raw[:256].decode("utf-8", "replace"), self._prefixes.year)
            if stamp is not None:
                return stamp
        return None
