"""What a traceback tells: exceptions with their frames, bounded in size, and how the exceptions of a chain hang together."""

from __future__ import annotations

from collections import deque
from typing import Literal

from memdoctor.records import record

HALF_OF_FRAMES = 60  # the outermost and innermost frames that are kept of a deep traceback
MAX_MESSAGE = 8_192  # characters of a message
MAX_TEXT = 1_000  # characters of a file, function or source line

# first: opens the chain. after: raised during or because of the one before. inner: the cause, printed after what it caused (a worker's
# exception). part: one of several causes (ranks of a checkpoint, members of an exception group). apart: another process, same frames.
Link = Literal["first", "after", "inner", "part", "apart"]


@record
class Frame:
    """One frame: ``function`` and ``source`` are "" where the log lacks them, ``lineno`` None."""

    file: str
    lineno: int | None
    function: str
    source: str


@record
class RawException:
    """One exception as printed. Frames run from the outermost to the raising one.

    ``type`` is the class as printed, often with its module; "" where the log ends before the exception line. ``line`` is the
    number of the exception line, ``last_line`` that of the last line of its message. ``complete``: the head, the frames and the
    exception line were read and are of one process. ``chained``: part of a chain. ``root``: the first cause of its chain (there
    may be several in an exception group). ``repeats``: how many processes printed this very traceback, mixed line by line.
    ``rank``: where the traceback's own head names one. ``begins``: the numbers of the lines that the lines of ``message`` begin on, where
    some of them were wrapped over several; else ().
    """

    type: str
    message: str
    frames: tuple[Frame, ...]
    first_line: int
    line: int
    last_line: int
    complete: bool
    chained: bool
    root: bool
    repeats: int = 1
    rank: int | None = None
    begins: tuple[int, ...] = ()


class Draft:
    """An exception while its lines come in."""

    __slots__ = (
        "_begins",
        "_first",
        "_last",
        "_message",
        "_pending",
        "_size",
        "_wrapped",
        "chained",
        "first_line",
        "last_line",
        "line",
        "link",
        "rank",
        "repeats",
        "reverse",
        "root",
        "spoilt",
        "type",
    )

    def __init__(self, number: int, link: Link, rank: int | None = None) -> None:
        self.link = link
        self.type = ""
        self.first_line = self.line = self.last_line = number
        self.rank = rank
        self.repeats = 1
        self.root, self.chained = True, False
        self.spoilt = False  # the frames are those of several processes, or the head was not seen
        self.reverse = False  # frames come innermost first
        self._message: list[str] = []
        self._size = 0
        self._begins: list[int] = []
        self._wrapped = False
        self._first: list[Frame] = []
        self._last: deque[Frame] = deque(maxlen=HALF_OF_FRAMES)
        self._pending: list[str] | None = None  # file, line, function, source of the newest frame

    @property
    def has_frames(self) -> bool:
        return self._pending is not None or bool(self._first)

    @property
    def source(self) -> str:
        """The source line of the newest frame."""
        return self._pending[3] if self._pending is not None else ""

    @property
    def message(self) -> str:
        return "".join(self._message)

    def add_frame(self, file: str, line: str, function: str) -> None:
        self._flush()
        self._pending = [file[:MAX_TEXT], line, function[:MAX_TEXT], ""]

    def add_source(self, text: str) -> None:
        """The first line under a frame; the others are markers or the rest of a long expression."""
        if self._pending is not None and not self._pending[3]:
            self._pending[3] = text.strip()[:MAX_TEXT]

    def add_line_number(self, line: str) -> None:
        if self._pending is not None and not self._pending[1]:
            self._pending[1] = line

    def raised(self, type_: str, message: str, number: int) -> None:
        self.type, self.line, self.last_line = type_, number, number
        self._message, self._size = [], 0
        self._begins, self._wrapped = [number], False
        self._append(message)

    def add_message(self, text: str, number: int, glue: str = "\n") -> None:
        self.last_line = max(self.last_line, number)
        self._wrapped = self._wrapped or glue != "\n"
        if self._message and self._message != [""]:
            self._append(glue)
            if glue == "\n":
                self._begins.append(number)
        self._append(text)

    def share_frames(self, other: Draft) -> None:
        """The frames of ``other``, which another process printed just the same."""
        other._flush()
        self._first, self._last = list(other._first), other._last.copy()

    def drop_frames(self) -> None:
        self._pending, self._first = None, []
        self._last.clear()

    def spoil(self) -> None:
        self.spoilt = True
        self.drop_frames()

    def build(self) -> RawException:
        self._flush()
        frames = (*self._first, *self._last)
        return RawException(
            type=self.type,
            message=self.message.strip(),
            frames=frames[::-1] if self.reverse else frames,
            first_line=self.first_line,
            line=self.line,
            last_line=self.last_line,
            complete=bool(self.type) and not self.spoilt,
            chained=self.chained,
            root=self.root,
            repeats=self.repeats,
            rank=self.rank,
            begins=tuple(self._begins) if self._wrapped else (),
        )

    def _append(self, text: str) -> None:
        text = text[: MAX_MESSAGE - self._size]
        self._size += len(text)
        self._message.append(text)

    def _flush(self) -> None:
        if self._pending is not None:
            file, line, function, source = self._pending
            frame = Frame(file, int(line) if line else None, function, source)
            if len(self._first) < HALF_OF_FRAMES:
                self._first.append(frame)
            else:
                self._last.append(frame)
            self._pending = None


class Chain:
    """The exceptions of one traceback, in the order they were printed."""

    __slots__ = ("drafts",)

    def __init__(self) -> None:
        self.drafts: list[Draft] = []

    def open(self, link: Link, number: int, rank: int | None = None) -> Draft:
        draft = Draft(number, link if self.drafts else "first", rank)
        if self.drafts and link != "apart":
            draft.chained = True
            for other in self.drafts:
                other.chained = True
        match draft.link:
            case "after":
                draft.root = False
            case "inner":
                for other in self.drafts:
                    other.root = False
            case "part":
                for other in self.drafts:
                    if other.link != "part" or other.type.endswith("ExceptionGroup"):
                        other.root = False
        self.drafts.append(draft)
        return draft

    def build(self) -> list[RawException]:
        """All that was read; a traceback that breaks off before its exception line counts only with frames."""
        return [draft.build() for draft in self.drafts if draft.type or draft.has_frames]
