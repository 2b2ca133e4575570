"""One segment that may matter → facts: glued lines apart, prefixes off, streams fed, signals and error lines tried."""

from __future__ import annotations

from typing import Any

from memdoctor.sources.logs.blocks import read_line
from memdoctor.sources.logs.glue import split_glued
from memdoctor.sources.logs.index import Opened
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.making import STARTS, FactMaker, Found
from memdoctor.sources.logs.place import Place
from memdoctor.sources.logs.sites import locate
from memdoctor.sources.logs.streams import OpenTraceback, Streams, exception_fields
from memdoctor.sources.logs.tracebacks import lone_exception

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
        for number, piece in enumerate(split_glued(text)):
            self._place.part = number
            line = self._place.prefixes.strip(piece)
            if line.rank is not None:
                self.ranks.add(line.rank)
            traceback = self._streams.feed_traceback(line, piece, opened.traceback)
            self._streams.feed_block(line)
            known = self._signals(line, piece, opened, traceback, window)
            if traceback is None and opened.error and not step:
                self._error(line, piece, known)
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
            if traceback is not None:
                traceback.pending.append((signal, found, self._place.line, line, raw))
            elif signal.block:
                self._streams.open_block(signal, {**signal.set, **found}, self._found(line, raw))
            else:
                self._emit(signal.fact, {**signal.set, **found}, line, raw)
        return known

    def _error(self, line: Line, raw: str, known: bool) -> None:
        """A line that looks like an error: an exception whose traceback is missing, or words that no signal knows."""
        lone = lone_exception(line.text)
        quiet = (line.level or "").upper() in QUIET_LEVELS
        if lone is not None:
            frames = self._place.frames_before(line)
            site, owner = locate(frames, *lone)
            fields = {"complete": False, "chained": False, "root": True, "site": site, "owner": owner}
            if quiet:
                fields["logged"] = True  # told at a level at which nothing ends
            self._emit("exception", {**fields, **exception_fields(*lone, frames)}, line, raw)
        elif not known and not quiet:
            self._emit("error.line", {"text": line.text.strip()[:500]}, line, raw)

    def _emit(self, kind: str, fields: dict[str, Any], line: Line, raw: str) -> None:
        if kind in STARTS:  # what is still open belongs to the attempt before
            self._streams.close_tracebacks()
        self._maker.make(kind, fields, self._found(line, raw))

    def _found(self, line: Line, raw: str) -> Found:
        return Found(line, raw, self._place.line, self._place.part, "", {}, self._place.stamp_before(line))
