"""What is still open in the streams of a file: a traceback, or a block of lines that one fact goes on over; and the facts they end in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from memdoctor.model import Signal, Stamp
from memdoctor.records import entity
from memdoctor.sources.logs.blocks import Block
from memdoctor.sources.logs.index import SignalIndex
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.making import MESSAGE, FactMaker, Found
from memdoctor.sources.logs.place import Place

if TYPE_CHECKING:  # what reads tracebacks is imported when there is one: most logs have none
    from memdoctor.sources.logs.tracebacks import Frame, RawException, TracebackReader

PLACE = "rank.place"  # what may stand between two tracebacks of a chain: whose the next one is
IGNORED = 2  # lines between Python's word that it ignores an exception and its traceback
IDLE = 400  # segments after which a traceback or block whose stream is silent is closed ...
IDLE_RAISED = 16  # ... and for each traceback that is open, once the exception line was read: a process writes all of it in one go
EVERY = 8  # segments from one look for silent ones to the next


Pending = tuple[Signal, dict[str, Any], int, Line, str]  # what a signal found, on which line of the file, and that line


@entity
class OpenTraceback:
    """A traceback, and what signals found on its lines: facts once it is known which exception the lines belong to."""

    line: Line
    tick: int
    context: Mapping[str, Any]  # phase and iteration when it began
    after: Stamp | None
    reader: TracebackReader
    headless: bool = False  # its head was cut off: the frames were found by looking back
    logged: bool = False  # told at a level at which nothing ends
    ignored: bool = False  # Python says that it ignored it
    pending: list[Pending] = field(default_factory=list)
    raws: dict[int, str] = field(default_factory=dict)


@entity
class OpenBlock:
    """A block, and where it began."""

    block: Block
    found: Found
    tick: int


class Streams:
    """Reads what is open in the streams of file ``number``. ``open`` is true while there is anything."""

    def __init__(self, number: int, place: Place, maker: FactMaker, index: SignalIndex) -> None:
        self._number, self._place, self._maker, self._index = number, place, maker, index
        self._tracebacks: dict[str, OpenTraceback] = {}
        self._blocks: dict[str, OpenBlock] = {}
        self._ignored: dict[str, int] = {}  # stream -> line that says that Python ignores what comes next
        self.open = False

    def feed_traceback(self, line: Line, raw: str, gate: bool) -> OpenTraceback | None:
        """The open traceback that ``line`` belongs to, if it does. ``gate``: the line may open one."""
        stream = line.stream
        current = self._tracebacks.get(stream)
        if current is not None:
            if self._takes(current, line, raw):
                return current if current.reader.took else None
            self._end_traceback(stream)
        if gate and _starts(line.text):
            self._place.introduce(line)
            if "" not in self._tracebacks and self._place.goes_on_bare(line):
                stream = line.stream = ""
            current = self._open(line)
            current.ignored = self._place.line - self._ignored.get(stream, -IGNORED) <= IGNORED
            if self._takes(current, line, raw):
                return current
            self._end_traceback(stream)
        return None

    def open_headless(self, line: Line, raw: str, frames: Sequence[Frame], logged: bool) -> OpenTraceback | None:
        """Begin a traceback at its exception line; ``frames`` were found above it. None where the line turns out to be none."""
        current = self._open(line)
        current.headless, current.logged = True, logged
        number = self._place.line
        current.reader.feed(Line("Traceback (most recent call last):"), number)
        for frame in frames:
            current.reader.feed(Line(f'  File "{frame.file}", line {frame.lineno}, in {frame.function}'), number)
            if frame.source:
                current.reader.feed(Line(f"    {frame.source}"), number)
        if self._takes(current, line, raw):
            return current
        self._tracebacks.pop(line.stream)
        self.open = bool(self._tracebacks or self._blocks)
        return None

    def ignore_next(self, line: Line) -> None:
        """Python says on ``line`` that it ignores the exception that it prints next."""
        self._ignored[line.stream] = self._place.line

    def _open(self, line: Line) -> OpenTraceback:
        from memdoctor.sources.logs.tracebacks import TracebackReader

        current = OpenTraceback(line, self._place.tick, self._maker.context(), self._place.stamp_before(line), TracebackReader())
        self._tracebacks[line.stream], self.open = current, True
        return current

    def feed_block(self, line: Line) -> None:
        """Give ``line`` to the open block of its stream, where there is one."""
        current = self._blocks.get(line.stream)
        if current is not None:
            current.tick = self._place.tick
            if not current.block.feed(line.text):
                self._end_block(line.stream)

    def open_block(self, signal: Signal, fields: dict[str, Any], found: Found) -> None:
        """Begin a block; the one that its stream had open ends."""
        stream = found.line.stream
        if stream in self._blocks:
            self._end_block(stream)
        self._blocks[stream], self.open = OpenBlock(Block(signal, fields), found, self._place.tick), True

    def close_idle(self) -> None:
        """End what has heard nothing of its stream for long."""
        now = self._place.tick
        if now % EVERY:
            return
        raised = min(IDLE, IDLE_RAISED * len(self._tracebacks))
        for stream, traceback in list(self._tracebacks.items()):
            if now - traceback.tick > (raised if traceback.reader.raised else IDLE):
                self._end_traceback(stream)
        for stream, block in list(self._blocks.items()):
            if now - block.tick > IDLE:
                self._end_block(stream)

    def close_tracebacks(self) -> None:
        """End all tracebacks: what comes now belongs to another attempt."""
        for stream in list(self._tracebacks):
            self._end_traceback(stream)

    def close(self) -> None:
        """End all."""
        self.close_tracebacks()
        for stream in list(self._blocks):
            self._end_block(stream)

    # --- from what ended to facts -----------------------------------------------------------------------------------

    def _takes(self, current: OpenTraceback, line: Line, raw: str) -> bool:
        if not current.reader.feed(line, self._place.line):
            return False
        current.tick = self._place.tick
        current.raws[self._place.line] = raw
        return True

    def _end_block(self, stream: str) -> None:
        done = self._blocks.pop(stream)
        self.open = bool(self._tracebacks or self._blocks)
        self._maker.make(done.block.signal.fact, done.block.result(), done.found)

    def _end_traceback(self, stream: str) -> None:
        from memdoctor.sources.logs.complaints import complaint_of
        from memdoctor.sources.logs.sites import caller_of, locate
        from memdoctor.sources.logs.tracebacks import bare_name

        done = self._tracebacks.pop(stream)
        self.open = bool(self._tracebacks or self._blocks)
        exceptions = done.reader.finish()
        chain = f"{self._number}:{exceptions[0].line}:{stream}" if exceptions else ""
        for signal, found, number, line, text in done.pending:
            if signal.fact == PLACE and not any(raised.line <= number <= raised.last_line for raised in exceptions):
                self._maker.make(signal.fact, {**signal.set, **found}, Found(line, text, number, 0, "", done.context, done.after))
        for raised in exceptions:
            if not raised.type:
                self._cut_off(done, raised)
                continue
            ignored = done.ignored or _while_leaving(raised.frames)
            site, owner = locate(raised.frames, raised.type, raised.message)
            context = {**done.context, "site": site, "owner": owner, "caller": caller_of(raised.frames) or None}
            raw = done.raws.get(raised.line, f"{raised.type}: {raised.message}")
            if raised.begins:
                done.pending = [entry for entry in done.pending if not raised.line <= entry[2] <= raised.last_line] + self._unwrapped(
                    done, raised
                )
            event = chain if raised.chained else f"{self._number}:{raised.line}:{stream}"
            fields: dict[str, Any] = {"complete": raised.complete and not done.headless, "chained": raised.chained, "root": raised.root}
            if done.logged or ignored:
                fields["logged"] = True
            fields.update(exception_fields(raised.type, raised.message, raised.frames))
            matched = any(raised.line <= number <= raised.last_line for _, _, number, _, _ in done.pending)
            if not matched and not fields.get("logged") and (says := complaint_of(raised.type, raised.message, raised.frames)) is not None:
                fields["says"] = says
            self._maker.make("exception", fields, Found(done.line, raw, raised.line, 0, event, context, done.after))
            for signal, found, number, line, text in () if ignored else done.pending:
                if raised.line <= number <= raised.last_line:
                    line.time = done.line.time if line.time is None else line.time
                    line.rank = done.line.rank if line.rank is None else line.rank
                    known = {**context, "exception": bare_name(raised.type)}
                    where = Found(line, text, number, 0, event, known, done.after)
                    self._maker.make(signal.fact, _with_following(signal, found, raised, number), where)

    def _unwrapped(self, done: OpenTraceback, raised: RawException) -> list[Pending]:
        """What signals find in the lines of a message that was wrapped, each as one line again."""
        lines = f"{raised.type}: {raised.message}".split("\n")
        found: list[Pending] = []
        for text, number in zip(lines, raised.begins, strict=False):
            line = Line(text, done.line.rank, done.line.local_rank, done.line.host, done.line.pid, done.line.time, stream=done.line.stream)
            found += [(signal, fields, number, line, done.raws.get(number, text)) for signal, fields in self._index.found_in(text)]
        return found

    def _cut_off(self, done: OpenTraceback, raised: RawException) -> None:
        """The log ends within a traceback: which exception it is nobody knows."""
        last = raised.frames[-1] if raised.frames else None
        where = f" after {last.file}:{last.lineno}, in {last.function}" if last is not None else ""
        raw = done.raws.get(raised.last_line, done.line.text)
        self._maker.make(
            "error.line",
            {"text": f"the traceback is cut off{where}"},
            Found(done.line, raw, raised.last_line, 0, "", done.context, done.after),
        )


def _starts(text: str) -> bool:
    from memdoctor.sources.logs.tracebacks import starts

    return starts(text)


def _while_leaving(frames: Sequence[Frame]) -> bool:
    """True for what multiprocessing prints, and nothing more, where a finalizer fails in a process that ends: a semaphore or folder that is gone."""
    return bool(frames) and frames[0].function == "_run_finalizers"


def exception_fields(type_: str, message: str, frames: Sequence[Frame]) -> dict[str, Any]:
    """What a fact ``exception`` says of the exception itself and of the frame that raised it."""
    fields: dict[str, Any] = {"type": type_, "message": message[:MESSAGE]}
    if frames:
        fields.update(file=frames[-1].file, function=frames[-1].function, source=frames[-1].source)
    return fields


def _with_following(signal: Signal, found: dict[str, Any], raised: RawException, number: int) -> dict[str, Any]:
    """The fields of a fact on line ``number`` of an exception's message, with what the following lines of the message add."""
    block = Block(signal, {**signal.set, **found})
    if signal.block:
        after = sum(begins <= number for begins in raised.begins) if raised.begins else number - raised.line + 1
        for text in raised.message.split("\n")[after:]:
            if not block.feed(text):
                break
    return block.result()
