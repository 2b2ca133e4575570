"""Reading one log: what a worker does, and what it hands back."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

from memdoctor.model import FileRead, InputFile, Signal, Skip
from memdoctor.records import entity
from memdoctor.sources.logs.index import SignalIndex
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.plain import SOME, PlainLogs
from memdoctor.sources.logs.reading import Reader
from memdoctor.sources.logs.sampling import NOTHING, of_the_sample
from memdoctor.sources.logs.scan import FileScan
from memdoctor.sources.logs.step_batches import Known
from memdoctor.sources.logs.store import Store

OnBytes = Callable[[int], None]
Numbered = tuple[int, LogFile]  # a log, and its place in the reading order


@entity
class Outcome:
    """What one log yielded. ``skip`` says why reading stopped early; without an ``input`` nothing could be read.

    Of lines of which a sample is enough: ``met`` are the gates of those that were read, ``unread`` of those that were not, in this log or in one
    of those that were looked through together with it.
    """

    store: Store
    skip: Skip | None
    input: InputFile | None = None
    read: FileRead | None = None
    met: frozenset[int] = NOTHING
    unread: frozenset[int] = NOTHING


NO_FACTS = Store()


class LogReader:
    """Reads logs, ``logs`` of them, with one set of signals."""

    def __init__(self, signals: Sequence[Signal], logs: int = 1) -> None:
        self._signals, self._logs = signals, logs
        self._known = Known()

    def __reduce__(self) -> tuple[Any, ...]:
        """From process to process it goes without what it made of the signals."""
        return LogReader, (tuple(self._signals), self._logs)

    def some(self, logs: Sequence[Numbered], on_bytes: OnBytes | None = None) -> Iterator[Outcome]:
        """What each of ``logs`` yields, in their order."""
        plain = PlainLogs(self.index, self._known, self._logs)
        for first in range(0, len(logs), SOME):
            batch = logs[first : first + SOME]
            reads, unread = plain.read(batch)
            for numbered, read in zip(batch, reads, strict=True):
                if read is None:
                    yield self(numbered, on_bytes)
                elif of_the_sample(numbered[0], self._logs):
                    yield self(numbered, on_bytes, brief=True)
                else:
                    if on_bytes is not None:
                        on_bytes(read[0].bytes)
                    yield Outcome(NO_FACTS, None, *read, NOTHING, unread)

    @cached_property
    def index(self) -> SignalIndex:
        """The signals as the scan needs them."""
        return SignalIndex(self._signals)

    def __call__(self, numbered: Numbered, on_bytes: OnBytes | None = None, *, brief: bool = False) -> Outcome:
        """``on_bytes`` is told, chunk by chunk, how many stored bytes were read. ``brief``: little of it is enough, as it is like all the others."""
        number, file = numbered
        store = Store()
        reader = Reader(file, on_bytes)
        scan = FileScan(file, number, self.index, store, self._logs, self._known, brief=brief)
        scan.run(reader)
        if reader.skip is not None and reader.blank:
            return Outcome(store, reader.skip)
        read = FileRead(
            path=file.path,
            number=number,
            rank=file.rank,
            attempt=file.attempt,
            first=scan.first,
            last=scan.last,
            epochs=scan.epochs,
            lines=reader.lines,
            truncated=reader.truncated,
            ends_mid_line=reader.ends_mid_line,
            age=None if reader.mtime is None else time.time() - reader.mtime,
            ranks=frozenset(scan.ranks),
            series=scan.series,
            opened=file.opened,
            local_rank=file.local_rank,
            host=file.host,
            unit=file.unit,
            nodes=file.nodes,
            machines=frozenset(scan.machines),
            dated=scan.dated,
        )
        return Outcome(store, reader.skip, InputFile(file.path, reader.bytes_read, reader.lines), read, scan.met)


class Engine(Protocol):
    """Who has logs read: one after the other, in processes of its own, or on the machines of a cluster."""

    def __call__(self, read: LogReader, logs: Sequence[Numbered], on_bytes: OnBytes | None) -> Generator[Outcome, None, None]:
        """``read`` of each of ``logs``, in their order. Closing the iterator ends all work."""
        ...


def in_turn(read: LogReader, logs: Sequence[Numbered], on_bytes: OnBytes | None) -> Generator[Outcome, None, None]:
    """The engine that reads here, one log after the other."""
    yield from read.some(logs, on_bytes)
