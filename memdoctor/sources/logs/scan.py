"""One pass over one file: chunks → the few segments that matter → facts in the store.

Between open blocks the scan jumps from hit to hit; while a traceback or block is open it goes segment by segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memdoctor.model import Stamp
from memdoctor.sources.logs import formats
from memdoctor.sources.logs.beginning import Beginning
from memdoctor.sources.logs.index import SignalIndex
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.line_ends import counter
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.making import FactMaker, Found
from memdoctor.sources.logs.matcher import Hit, excerpts, find, segment_at
from memdoctor.sources.logs.place import BACK, END, Place
from memdoctor.sources.logs.reading import Chunk, Reader
from memdoctor.sources.logs.sampling import MANY, Sampling
from memdoctor.sources.logs.segments import SegmentReader
from memdoctor.sources.logs.stamps import parse_stamp
from memdoctor.sources.logs.step_batches import Known, StepReader
from memdoctor.sources.logs.steps import Series, bar_before, read_step
from memdoctor.sources.logs.store import Store
from memdoctor.sources.logs.streams import Streams

if TYPE_CHECKING:
    from memdoctor.sources.logs.nccl_setup import NcclSetup

FOLLOWING = 8_192  # bytes after the head of a table
SHORT = 2_048  # bytes before a line of one of many logs that are looked through for its stamp
LONG = 16_384  # a longer segment is looked at around its gates only


class FileScan:
    """Reads one file of ``logs`` into ``store``; ``known`` is what the files before taught of step lines.

    After ``run``: ``series`` of its step lines, its first and last ``Stamp``, the ranks seen.
    """

    def __init__(
        self,
        file: LogFile,
        number: int,
        index: SignalIndex,
        store: Store,
        logs: int = 1,
        known: Known | None = None,
        *,
        brief: bool = False,
    ) -> None:
        self.series = Series(file.path)
        self.last: Stamp | None = None
        self._file, self._number, self._index = file, number, index
        self._logs = logs
        self._beginning = Beginning(file, logs)
        self._place = Place(self._beginning, BACK if logs <= MANY else SHORT)
        self._maker = FactMaker(file, number, store)
        self._streams = Streams(number, self._place, self._maker, index)
        self._segments = SegmentReader(self._place, self._streams, self._maker, self.ranks)
        self._steps = StepReader(self.series, self._maker.seq(0, 0), known)
        self._sampling = Sampling(index.sampling(logs), logs, brief=brief)
        self._mean = 0.0  # bytes of a line
        self._met: set[tuple[int, ...]] = set()
        self._format: formats.Format | None = None
        self._nccl: NcclSetup | None = None
        self._store = store

    @property
    def first(self) -> Stamp | None:
        """The first moment that the log tells."""
        return self._beginning.first

    @property
    def machines(self) -> set[str]:
        return self._beginning.machines

    @property
    def dated(self) -> bool:
        """Whether the log tells its year, or needs none."""
        return self.first is None or self._beginning.prefixes.dated

    @property
    def ranks(self) -> set[int]:
        return self._beginning.ranks

    @property
    def met(self) -> frozenset[int]:
        """The gates of lines of which a sample is enough, and that were read."""
        return frozenset(gate for gates in self._met for gate in gates)

    @property
    def epochs(self) -> int:
        """How many attempts this file alone tells apart."""
        return self._maker.epoch

    def run(self, reader: Reader) -> None:
        begun = False
        for chunk in reader:
            if not begun:
                self._beginning.read(chunk.data, reader.mtime)
                self._format = formats.detect(self._beginning.lines) if formats.begins(chunk.data) else None
                begun = True
            self._place.enter(chunk)
            if self._format is not None:
                self._read_format(self._format, chunk)
            else:
                self._read(chunk)
        self._steps.flush()
        self._streams.close()
        if self._nccl is not None:
            self._nccl.close(whole=self._sampling.whole)
        self.last = self._place.stamp_at_end(BACK if self._logs <= MANY else END) or self.first

    def _read_format(self, reader: formats.Format, chunk: Chunk) -> None:
        for number, raw in enumerate(chunk.data.decode("utf-8", "replace").split("\n")[:-1], chunk.line):
            for kind, fields in reader.feed(raw):
                self._maker.make(kind, fields, Found(Line(raw), raw, number, 0, "", {}, None))

    def _read(self, chunk: Chunk) -> None:
        data, place, streams, steps, opened_by = chunk.data, self._place, self._streams, self._steps, self._index.opened
        count, waiting, met = counter(self._mean), steps.waiting, self._met
        number, places, counted, sampled, most = chunk.line, chunk.places, 0, 0.0, self._sampling.most
        for start, end, gates in self._to_read(data):
            number += count(data, counted, start)
            counted = start
            line = number if places is None else places[number - chunk.line]
            if gates in waiting and not streams.open:  # as nearly all step lines
                group = waiting[gates]
                group.lines.append(line)
                group.texts.append(data[start:end])
                continue
            opened = opened_by(gates)
            if sampled >= most and opened.sampled and not opened.nccl and not streams.open:
                continue
            step = False
            if opened.step and not opened.sampled:
                self._settle()
                step = steps.take(data, start, end, line, gates if opened.only_step else None)
                if step and opened.only_step and not streams.open:
                    continue
            place.line, place.start = line, start
            if opened.sampled:
                sampled += opened.weight
                met.add(gates)
            if opened.nccl:
                self._take_nccl(data[start:end], line)
            if opened.step and not step and end - start <= LONG:
                step = self._step(data[start:end])
            if not streams.open and (opened.only_step if step else not opened.plausible(data[start:end])):
                continue
            self._reached()
            self._read_segment(data, start, end, gates, step, chunk.part)
        self._reached()
        steps.leave()
        self._sampling.found(sampled)
        if not self._sampling.alarmed and not self._index.alarms.isdisjoint(self._maker.kinds):
            self._sampling.alarm()
            self._look_beside(chunk)
        chunk.lines = number - chunk.line + count(data, counted, len(data))
        self._mean = len(data) / (chunk.lines + 1)

    def _settle(self) -> None:
        """Collect the step lines that wait, before anything else that they come before."""
        self._steps.settle(self._no_layout)

    def _no_layout(self, raw: bytes, line: int) -> None:
        """One of them looks otherwise than the lines before it."""
        place = self._place
        here, place.line = place.line, line
        if len(raw) > LONG or not self._step(raw):
            rank = place.prefixes.strip(raw.decode("utf-8", "replace")).rank
            if rank is not None:
                self.ranks.add(rank)
        place.line = here

    def _take_nccl(self, raw: bytes, line: int) -> None:
        if self._nccl is None:
            from memdoctor.sources.logs.nccl_setup import NcclSetup  # few logs need it

            self._nccl = NcclSetup(self._place, self._maker, self._store, self._file)
        self._nccl.take(raw, line)

    def _step(self, raw: bytes) -> bool:
        """Whether the segment is a step line, or one that stands beside step lines; its numbers are kept then."""
        place = self._place
        after = place.start + len(raw) + 1
        found = read_step(raw, lambda: place.data[after : after + FOLLOWING])
        if found is None:
            return self.series.beside.read(raw, place.line, self._epoch, lambda: place.data[after : after + FOLLOWING])
        if found[0] == "dict" and "iteration" not in found[1]:
            found[1].update(bar_before(place.data, place.start))
        self._reached()
        if self._steps.holds(found[0]):
            self._steps.flush()
        self._maker.stepped(self.series.add(*found, self._maker.seq(place.line, 0), place.line, raw, _epoch_of_minute))
        self._steps.learn(found[0], raw)
        return True

    def _reached(self) -> None:
        """Let facts know how far the training is by the step lines so far."""
        self._settle()
        iteration = self._steps.reached()
        if iteration is not None:
            self._maker.stepped(iteration)

    def _epoch(self, raw: bytes) -> float:
        return self.series.time(raw, _epoch_of_minute)

    def _to_read(self, data: bytes) -> Iterator[Hit]:
        """Segments that hold a gate and, while something is open, all others, in order."""
        streams, position = self._streams, 0
        for hit in self._index.matcher.hits(data, self._sampling.next()):
            while streams.open and position < hit[0]:
                end = segment_at(data, position)[1]
                yield position, end, ()
                position = end + 1
            yield hit
            position = hit[1] + 1
        while streams.open and position < len(data):
            end = segment_at(data, position)[1]
            yield position, end, ()
            position = end + 1

    def _look_beside(self, chunk: Chunk) -> None:
        """Read what is looked for only beside what was just found in ``chunk``."""
        data, place = chunk.data, Place(self._beginning)
        place.enter(chunk)
        streams = Streams(self._number, place, self._maker, self._index)
        segments = SegmentReader(place, streams, self._maker, self.ranks)
        number, counted = chunk.line, 0
        for start, end, gates in self._index.matcher.hits(data, self._index.others):
            number += data.count(b"\n", counted, start)
            place.line = number if chunk.places is None else chunk.places[number - chunk.line]
            place.start, counted = start, start
            segments.read(data[start:end][-LONG:], self._index.opened(gates), step=False, window=chunk.part)
        streams.close()

    def _read_segment(self, data: bytes, start: int, end: int, gates: tuple[int, ...], step: bool, window: bool) -> None:
        """``step``: it was read as a step line; ``window``: it is a part of a line, and overlaps with the one before."""
        if end - start <= LONG:
            self._place.tick += 1
            self._segments.read(data[start:end], self._index.opened(gates), step=step, window=window)
            return
        raw = data[start:end]
        for excerpt in excerpts(raw, [self._index.gates[number] for number in gates]):
            inside = tuple(number for number in gates if find(self._index.gates[number], excerpt) >= 0)
            self._place.tick += 1
            self._segments.read(excerpt, self._index.opened(inside), step=False, window=True)


def _epoch_of_minute(text: str) -> float | None:
    stamp = parse_stamp(f"{text}:00", year=None)
    return None if stamp is None else stamp.epoch
