"""One segment that may matter → facts: glued lines apart, prefixes off, streams fed, signals and error lines tried."""

from __future__ import annotations

from typing import Any

from memdoctor.sources.logs.blocks import read_line
from memdoctor.sources.logs.glue import split_glued
from memdoctor.sources.logs.index import Opened
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.looks import kernels, looks_like_an_error, only_speaks_of
from memdoctor.sources.logs.making import SIGNS, STARTS, FactMaker, Found
from memdoctor.sources.logs.margins import hides
from memdoctor.sources.logs.place import Place
from memdoctor.sources.logs.streams import OpenTraceback, Streams

LOUD_LEVELS = ("ERROR", "CRITICAL", "FATAL")
QUIET_LEVELS = ("DEBUG", "INFO", "WARNING", "WARN", "TRACE", "I", "W", "D", "V")


class SegmentReader:
    """``ranks`` are those seen."""

    def __init__(self, place: Place, streams: Streams, maker: FactMaker, ranks: set[int]) -> None:
        self._place, self._streams, self._maker, self.ranks = place, streams, maker, ranks
        self._known: set[tuple[int, str]] = set()  # line and signal that an earlier window of the same line told

    def read(self, raw: bytes, opened: Opened, *, step: bool, window: bool) -> None:
        """``step``: it was read as a step line. ``window``: it is a part of a line, and the next may begin with the end of this one."""
        if not window and self._known:
            self._known.clear()
        text = raw.decode("utf-8", "replace")
        prefixes = self._place.prefixes
        if prefixes.curious and hides(text):
            prefixes.meet(text, self._place.following)
        for number, piece in enumerate(split_glued(text, prefixes.end)):
            self._place.part = number
            line = prefixes.strip(piece)
            if line.rank is not None:
                self.ranks.add(line.rank)
            traceback = self._streams.feed_traceback(line, piece, opened.traceback)
            if traceback is None and opened.error and not step:
                traceback = self._lone(line, piece)
            self._streams.feed_block(line)
            known = self._signals(line, piece, opened, traceback, window)
            if traceback is None and opened.error and not step and not known:
                self._unknown(line, piece)
        if self._streams.open:
            self._streams.close_idle()

    def _signals(self, line: Line, raw: str, opened: Opened, traceback: OpenTraceback | None, window: bool) -> bool:
        """Whether some signal knows the line."""
        known = False
        for signal in opened.signals:
            here = (self._place.line, signal.id)
            if window and here in self._known:
                known = True
                continue
            if not all(text in raw for text in signal.has):
                continue
            found = read_line(signal, line.text)
            if found is None:
                continue
            known = True
            if window:
                self._known.add(here)
            if only_speaks_of(line.text) or (traceback is None and self._place.is_source(line)):
                break
            if traceback is not None:
                traceback.pending.append((signal, found, self._place.line, line, raw))
            elif signal.block:
                self._streams.open_block(signal, {**signal.set, **found}, self._found(line, raw))
            else:
                self._emit(signal.fact, {**signal.set, **found}, line, raw)
        return known

    def _lone(self, line: Line, raw: str) -> OpenTraceback | None:
        """The traceback that begins with ``line``, where that is an exception line whose traceback is missing or lost its head."""
        from memdoctor.sources.logs.tracebacks import lone_exception  # a healthy log holds no error

        lone = lone_exception(line.text)
        if lone is None or kernels(raw):
            return None
        return self._streams.open_headless(line, raw, self._place.frames_before(line), _is_quiet(line))

    def _unknown(self, line: Line, raw: str) -> None:
        """A line that looks like an error and that no signal knows."""
        if line.text.startswith("Exception ignored in"):
            self._streams.ignore_next(line)
        elif not _is_quiet(line) and looks_like_an_error(line.text, raw, loud=_is_loud(line)):
            self._emit("error.line", {"text": line.text.strip()[:500]}, line, raw)

    def _emit(self, kind: str, fields: dict[str, Any], line: Line, raw: str) -> None:
        if kind in STARTS or (kind in SIGNS and self._maker.ended):  # what is still open belongs to the attempt before
            self._streams.close_tracebacks()
        self._maker.make(kind, fields, self._found(line, raw))

    def _found(self, line: Line, raw: str) -> Found:
        return Found(line, raw, self._place.line, self._place.part, "", {}, self._place.stamp_before(line))


def _is_quiet(line: Line) -> bool:
    """Told at a level at which nothing ends."""
    return (line.level or "").upper() in QUIET_LEVELS


def _is_loud(line: Line) -> bool:
    return (line.level or "").upper() in LOUD_LEVELS
