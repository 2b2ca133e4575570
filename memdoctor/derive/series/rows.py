"""The step lines of a run as rows, for files and pictures: whole, or a few hundred points that keep the peaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from memdoctor.derive.numerics import stamp_of
from memdoctor.derive.series.segments import Segment
from memdoctor.records import record

MOST = 500  # points of a sample

# Name, column of the step lines, and what its values are multiplied by. Seconds and bytes; rates as printed.
COLUMNS: tuple[tuple[str, str, float], ...] = (
    ("loss", "loss", 1), ("grad_norm", "grad_norm", 1), ("learning_rate", "lr", 1), ("loss_scale", "scale", 1), ("skipped", "skipped", 1),
    ("step_time", "ms", 0.001), ("data_time", "data", 0.001), ("samples", "samples", 1), ("batch", "batch", 1), ("tflops", "tflops", 1),
    ("samples_per_second", "rate", 1), ("tokens_per_second", "tokens", 1), ("balance_loss", "aux", 1),
)  # fmt: skip


@record
class Part:
    """A segment; ``memory`` is the most bytes that a rank held after an iteration, where its own lines do not tell."""

    attempt: int
    segment: Segment
    memory: Mapping[float, float]


class Rows:
    """All step lines that tell the losses of a run, attempt after attempt. ``names`` are the columns that hold anything."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(part for part in parts if len(part.segment))
        told = [name for name, column, _ in COLUMNS if any(part.segment.has(column) for part in self.parts)]
        memory = ["memory"] if any(part.memory or part.segment.has("memory") for part in self.parts) else []
        timed = ["time"] if any(not math.isnan(part.segment.steps.epoch(part.segment.rows[0])) for part in self.parts) else []
        self.names: tuple[str, ...] = ("attempt", "iteration", *timed, *told, *memory, "line") if self.parts else ()
        self._columns = {name: (column, factor) for name, column, factor in COLUMNS if name in told}

    def __len__(self) -> int:
        return sum(len(part.segment) for part in self.parts)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """One tuple a line, in the order of ``names``; None where a line does not tell."""
        for part in self.parts:
            getters = [self._getter(part, name) for name in self.names]
            for place in range(len(part.segment)):
                yield tuple([get(place) for get in getters])

    def column(self, name: str) -> Iterator[Any]:
        """One of ``names`` alone, line by line."""
        for part in self.parts:
            yield from map(self._getter(part, name), range(len(part.segment)))

    def sample(self, most: int = MOST) -> dict[str, list[Any]]:
        """Columns of at most ``most`` points: of each stretch its first line, and those with its highest loss and longest step."""
        chosen = (
            list(self._chosen(most)) if len(self) > most else [(part, place) for part in self.parts for place in range(len(part.segment))]
        )
        rows = [self._row(part, place) for part, place in chosen]
        return {name: [row[number] for row in rows] for number, name in enumerate(self.names)}

    def _chosen(self, most: int) -> Iterator[tuple[Part, int]]:
        peaks = [column for column in ("loss", "ms") if any(part.segment.has(column) for part in self.parts)]
        size = -(-len(self) * (1 + len(peaks)) // max(1, most - (1 + len(peaks)) * len(self.parts)))
        for part in self.parts:
            segment = part.segment
            for first in range(0, len(segment), size):
                last = min(first + size, len(segment))
                own = {first}
                for column in peaks:
                    values = segment.values(column)[first:last] if segment.has(column) else ()
                    top = max(values, default=math.nan)
                    if math.isnan(sum(values)):
                        top = max(values, key=_rank, default=math.nan)
                    if not math.isnan(top):
                        own.add(first + next(place for place, value in enumerate(values) if value == top))
                for place in sorted(own):
                    yield part, place

    def _row(self, part: Part, place: int) -> tuple[Any, ...]:
        return tuple(self._getter(part, name)(place) for name in self.names)

    def _getter(self, part: Part, name: str) -> Callable[[int], Any]:
        """What gives the value of a column at a place of the part's segment."""
        segment = part.segment
        rows, steps = segment.rows, segment.steps
        if name in self._columns:
            column, factor = self._columns[name]
            if not segment.has(column):
                return lambda place: None
            values = segment.values(column)

            def number(place: int) -> float | None:
                value = values[place]
                return None if math.isnan(value) and not self._printed(segment, rows[place], column) else _short(value * factor)

            return number
        match name:
            case "attempt":
                return lambda place: part.attempt
            case "iteration":
                return segment.printed
            case "time":
                return lambda place: None if math.isnan(epoch := steps.epoch(rows[place])) else stamp_of(epoch).iso
            case "memory":
                if segment.has("memory"):
                    held = segment.values("memory")
                    return lambda place: _whole(held[place])
                return lambda place: _whole(part.memory.get(segment.times[place], math.nan))
            case _:
                return lambda place: steps.line(rows[place])

    @staticmethod
    def _printed(segment: Segment, row: int, column: str) -> bool:
        """True where the line tells the column, if only as NaN."""
        steps = segment.steps
        return column in steps.table.spoken and not steps.table.is_absent(steps.first + row, column)


def _whole(value: float) -> int | None:
    return round(value) if math.isfinite(value) else None


def _rank(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _short(value: float) -> float:
    """Seven digits: what columns of four bytes hold."""
    return float(f"{value:.7g}") if math.isfinite(value) else value
