"""From step lines to columns, in bulk.

Lines that fit a known layout are only collected at first, and turned into numbers column by column after some chunks: that is
several times faster than line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import add

from memdoctor.sources.logs.layouts import Layout, layout
from memdoctor.sources.logs.stamps import parse_stamp
from memdoctor.sources.logs.step_shapes.numbers import NAN, number
from memdoctor.sources.logs.steps import Series

CHUNKS = 8  # whose lines are collected before they become numbers: they hold the chunks in memory
LAYOUTS = 8  # of one file; lines that fit none of them are read key by key
MINUTES = 4_096  # remembered

_Match = re.Match[bytes]
_Run = list[tuple[int, _Match]]  # numbers of lines of one layout, and what was read of them


class StepReader:
    """Collects step lines for ``series``. ``flush`` before anybody looks at them, and before a line of their shape is added otherwise.

    ``base`` is the place of the file in the reading order.
    """

    def __init__(self, series: Series, base: int) -> None:
        self._series, self._base = series, base
        self._layouts: list[Layout] = []
        self._fits: Callable[[bytes, int, int], _Match | None] = _never  # of the layout of the line before
        self._run: _Run = []  # the run that such lines go to
        self._runs: list[tuple[Layout, _Run]] = []
        self._latest: dict[str, tuple[Layout, _Run]] = {}  # by shape
        self._asked: tuple[int, _Match] | None = None
        self._chunks = 0
        self._minutes = _Minutes()

    def take(self, data: bytes, start: int, end: int, line: int) -> bool:
        """Collect the segment from ``start`` to ``end``, of line ``line``; False where it fits no known layout."""
        match = self._fits(data, start, end) or self._change(data, start, end)
        if match is None:
            return False
        self._run.append((line, match))
        if data.startswith(b"[rank", start):
            self._series.note_rank(data[start : start + 16], line, float(match["iteration"]))
        return True

    def reached(self) -> int | None:
        """The iteration of the last line that was collected since this was last asked."""
        if not self._run or self._run[-1] is self._asked:
            return None
        self._asked = self._run[-1]
        return int(self._asked[1]["iteration"])

    def learn(self, shape: str, raw: bytes) -> None:
        """Note how a line of ``shape`` looks that fitted no layout. The first layouts are strict and fast, the others bear more."""
        if len(self._layouts) < LAYOUTS:
            new = layout(shape, raw, fixing=len(self._layouts) < LAYOUTS // 2)
            if new is not None and new.pattern.fullmatch(raw) is not None:
                self._layouts.append(new)

    def _change(self, data: bytes, start: int, end: int) -> _Match | None:
        """The match of another layout than the last."""
        for known in self._layouts:
            match = known.pattern.fullmatch(data, start, end)
            if match is not None:
                self._fits = known.pattern.fullmatch
                latest = self._latest.get(known.shape)
                if latest is None or latest[0] is not known:  # the lines of one shape stay in order
                    latest = self._latest[known.shape] = (known, [])
                    self._runs.append(latest)
                self._run = latest[1]
                return match
        return None

    def holds(self, shape: str) -> bool:
        """True where lines of ``shape`` were collected and not flushed."""
        return shape in self._latest

    def leave(self) -> None:
        """A chunk has been read."""
        self._chunks += 1
        if self._chunks >= CHUNKS:
            self.flush()

    def flush(self) -> None:
        """Turn what was collected into numbers."""
        for known, run in self._runs:
            if run:
                self._tell(known, run)
        self._runs.clear()
        self._latest.clear()
        self._run, self._fits, self._asked, self._chunks = [], _never, None, 0

    def _tell(self, known: Layout, run: _Run) -> None:
        texts = dict(zip(known.groups, zip(*[match.groups() for _, match in run], strict=True), strict=True))
        minutes, seconds = texts.pop("minute", ()), texts.pop("second", ())
        epochs = self._epochs(minutes, seconds) if minutes else [NAN] * len(run)
        columns = {name: _numbers(name, column) for name, column in texts.items()}
        lines = [line for line, _ in run]
        self._series.extend(known.shape, self._base, lines, epochs, columns, known.fixed, lambda at: run[at][1][0])

    def _epochs(self, minutes: Iterable[bytes], seconds: Sequence[bytes]) -> list[float]:
        if b"," in seconds[0]:
            seconds = [text.replace(b",", b".") for text in seconds]
        return list(map(add, map(self._minutes.__getitem__, minutes), _floats(seconds)))


class _Minutes(dict[bytes, float]):
    """The text of a minute ("2025-01-01 10:00") → epoch seconds; NaN where there is no such minute."""

    def __init__(self) -> None:
        self._days: dict[bytes, float] = {}

    def __missing__(self, text: bytes) -> float:
        if len(self) >= MINUTES:
            self.clear()
            self._days.clear()
        day, hour, minute = text[:10], int(text[11:13]), int(text[14:])
        midnight = self._days.get(day)
        if midnight is None:
            stamp = parse_stamp(f"{day.decode()} 00:00:00", year=None)
            midnight = self._days[day] = NAN if stamp is None else stamp.epoch
        self[text] = midnight + 3600 * hour + 60 * minute if hour < 24 and minute < 60 else NAN
        return self[text]


def _never(_data: bytes, _start: int, _end: int) -> _Match | None:
    return None


def _numbers(name: str, texts: Sequence[bytes]) -> Sequence[float]:
    return list(map(int, texts)) if name == "iteration" else _floats(texts)  # digits only: three times as fast


def _floats(texts: Sequence[bytes]) -> list[float]:
    if texts.count(texts[0]) == len(texts):
        return [number(texts[0])] * len(texts)
    try:
        return list(map(float, texts))
    except ValueError:
        return [number(text) for text in texts]
