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
from memdoctor.sources.logs.step_shapes import megatron
from memdoctor.sources.logs.step_shapes.numbers import NAN, number
from memdoctor.sources.logs.steps import Series

ROWS = 2_048  # collected before they become numbers ...
CHUNKS = 64  # ... or the chunks in which there were fewer
LAYOUTS = 8  # learnt of one file; lines that fit none of them are read key by key
KNOWN = 16  # layouts of all files
MINUTES = 4_096  # remembered

_Match = re.Match[bytes]
_Texts = tuple[bytes, ...]


class _Run:
    """Lines of one layout in their order: their numbers, their texts, and what was captured of them."""

    __slots__ = ("layout", "lines", "place", "rows", "texts")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.place = layout.groups.index("iteration")  # within a row
        self.lines: list[int] = []
        self.texts: list[bytes] = []
        self.rows: list[_Texts] = []


class Waiting:
    """Lines with the same gates, not looked at yet: ``texts`` and, in ``lines``, their numbers. ``layout`` is that of the lines before them."""

    __slots__ = ("layout", "lines", "texts")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.lines: list[int] = []
        self.texts: list[bytes] = []


class Known:
    """What step lines taught, also for the files that follow: their ``layouts``, the latest first, and ``minutes`` (epoch seconds)."""

    def __init__(self) -> None:
        self.layouts: list[Layout] = []
        self.minutes = Minutes()
        self._latest: dict[tuple[int, ...], Layout] = {}

    def for_gates(self, gates: tuple[int, ...]) -> list[Layout]:
        """All layouts, first that which fitted lines with these gates last."""
        latest = self._latest.get(gates)
        return [*self.layouts] if latest is None else [latest, *(known for known in self.layouts if known is not latest)]

    def learn(self, layout: Layout) -> None:
        self.layouts.insert(0, layout)
        del self.layouts[KNOWN:]

    def fitted(self, gates: tuple[int, ...], layout: Layout) -> None:
        self._latest[gates] = layout


class StepReader:
    """Collects step lines for ``series``. ``flush`` before anybody looks at them, and before a line of their shape is added otherwise.

    ``base`` is the place of the file in the reading order; ``known`` is what other files taught. A line is either taken at once, with ``take``; or, where lines with the same
    gates were taken before, put into what ``waiting`` holds for them, for ``settle`` to take them all in one go.
    """

    def __init__(self, series: Series, base: int, known: Known | None = None) -> None:
        self._series, self._base = series, base
        self._known = known or Known()
        self._layouts = self._known.layouts
        self._learnt = 0
        self._fits: Callable[[bytes, int, int], _Match | None] = _never  # of the layout of the line before
        self._run: _Run | None = None  # the run that such lines go to
        self._runs: list[_Run] = []
        self._latest: dict[str, _Run] = {}  # by shape
        self._asked: _Texts | None = None
        self._chunks = 0
        self.waiting: dict[tuple[int, ...], Waiting] = {}  # by gates
        self._groups: dict[str, Waiting] = {}  # the same by shape

    def take(self, data: bytes, start: int, end: int, line: int, gates: tuple[int, ...] | None = None) -> bool:
        """Collect the segment from ``start`` to ``end``, of line ``line``; False where it fits no known layout.

        ``gates``: those of the segment, where lines that have just these may wait from now on.
        """
        match = self._fits(data, start, end) or self._change(data, start, end)
        run = self._run
        if match is None or run is None:
            return False
        run.lines.append(line)
        run.texts.append(match[0])
        run.rows.append(match.groups())
        if data.startswith(b"[rank", start):
            self._series.note_rank(data[start : start + 16], line, float(match[1 + run.place]))
        if gates is not None:
            self.waiting[gates] = self._groups.setdefault(run.layout.shape, Waiting(run.layout))
        return True

    def settle(self, other: Callable[[bytes, int], object]) -> None:
        """Collect the lines that wait; ``other`` is told of each that fits no layout, with its number."""
        some = [waiting for waiting in self._groups.values() if waiting.lines]
        if len(some) > 1:
            some.sort(key=lambda waiting: waiting.lines[-1])  # what was read last is collected last
        for waiting in some:
            lines, texts = waiting.lines, waiting.texts
            waiting.lines, waiting.texts = [], []
            done = self._settle(waiting.layout, lines, texts)
            for line, text in zip(lines[done:], texts[done:], strict=True):
                if not self.take(text, 0, len(text), line):
                    other(text, line)
                elif self._run is not None and self._run.layout.shape == waiting.layout.shape:
                    waiting.layout = self._run.layout

    def _settle(self, layout: Layout, lines: list[int], texts: list[bytes]) -> int:
        """Collect the first of the lines, as many as fit the layout: returns how many."""
        text = b"\n".join(texts) + b"\n"
        rows: list[_Texts] = layout.lines.findall(text)
        run = self._begin(layout)
        place = run.place
        if b"" in [row[place] for row in rows]:
            done = next(number for number, row in enumerate(rows) if not row[place])
            lines, texts, rows = lines[:done], texts[:done], rows[:done]
        run.lines += lines
        run.texts += texts
        run.rows += rows
        if b"[rank" in text:
            for line, own, row in zip(lines, texts, rows, strict=True):
                self._series.note_rank(own[:16], line, float(row[place]))
        return len(rows)

    def reached(self) -> int | None:
        """The iteration of the last line that was collected since this was last asked."""
        run = self._run
        if run is None or not run.rows or run.rows[-1] is self._asked:
            return None
        self._asked = run.rows[-1]
        return int(self._asked[run.place])

    def learn(self, shape: str, raw: bytes) -> None:
        """Note how a line of ``shape`` looks that fitted no layout. The first layouts are strict and fast, the others bear more."""
        if self._learnt < LAYOUTS:
            new = layout(shape, raw, fixing=self._learnt < LAYOUTS // 2)
            if new is not None and new.pattern.fullmatch(raw) is not None:
                self._learnt += 1
                self._known.learn(new)

    def _change(self, data: bytes, start: int, end: int) -> _Match | None:
        """The match of another layout than the last."""
        for known in self._layouts:
            match = known.pattern.fullmatch(data, start, end)
            if match is not None:
                self._begin(known)
                return match
        return None

    def _begin(self, known: Layout) -> _Run:
        """The run that lines of this layout go to now."""
        self._fits = known.pattern.fullmatch
        latest = self._latest.get(known.shape)
        if latest is None or latest.layout is not known:  # the lines of one shape stay in order
            self._series.open(known.shape, self._base)
            latest = self._latest[known.shape] = _Run(known)
            self._runs.append(latest)
        self._run = latest
        return latest

    def holds(self, shape: str) -> bool:
        """True where lines of ``shape`` were collected and not flushed."""
        return shape in self._latest

    def leave(self) -> None:
        """A chunk has been read."""
        self._chunks += 1
        if self._chunks >= CHUNKS or sum(len(run.rows) for run in self._runs) >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Turn what was collected into numbers."""
        for run in self._runs:
            if run.rows:
                self._tell(run)
        self._runs.clear()
        self._latest.clear()
        self._run, self._fits, self._asked, self._chunks = None, _never, None, 0

    def _tell(self, run: _Run) -> None:
        known, kept = run.layout, run.texts
        epochs, columns = numbers_of(known, run.rows, self._known.minutes)
        self._series.extend(known.shape, self._base, run.lines, epochs, columns, known.fixed, kept.__getitem__)


def numbers_of(known: Layout, rows: Sequence[_Texts], minutes_of: Minutes) -> tuple[list[float], dict[str, Sequence[float]]]:
    """What ``known`` captured of some lines (not none), as epoch seconds (NaN where it captures no time) and columns."""
    texts = dict(zip(known.groups, zip(*rows, strict=True), strict=False))  # the last group of some rows names nothing
    minutes, seconds = texts.pop("minute", ()), texts.pop("second", ())
    epochs = _epochs(minutes_of, minutes, seconds) if minutes else [NAN] * len(rows)
    if known.offset:
        epochs = [epoch - known.offset for epoch in epochs]
    columns = {name: _numbers(name, column) for name, column in texts.items()}
    if megatron.SECONDS in columns:
        columns["ms"] = [1000 * value for value in columns.pop(megatron.SECONDS)]
    return epochs, columns


def _epochs(minutes_of: Minutes, minutes: Iterable[bytes], seconds: Sequence[bytes]) -> list[float]:
    if b"," in seconds[0]:
        seconds = [text.replace(b",", b".") for text in seconds]
    return list(map(add, map(minutes_of.__getitem__, minutes), _floats(seconds)))


class Minutes(dict[bytes, float]):
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
