"""The measures, and the table of what came out."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.bench.children import Usage


@dataclass(frozen=True)
class Limit:
    required: float
    aim: float

    def __str__(self) -> str:
        return f"{_number(self.required)} | {_number(self.aim)}"


@dataclass(frozen=True)
class Row:
    """One line: what was measured, the figure, how it came about. ``value`` is None where it could not be had; ``unit`` is "" or " MB"."""

    measure: str
    limit: Limit
    value: float | None
    how: str
    unit: str = ""

    @property
    def missed(self) -> bool:
        return self.value is not None and self.value > self.limit.required

    def __str__(self) -> str:
        value = "—" if self.value is None else f"{_number(self.value)}{self.unit}"
        return f"| {self.measure} | {self.limit} | {value} | {self.how} |"


@dataclass(frozen=True)
class Measure:
    """What one row is of; ``take`` measures it."""

    name: str
    limit: Limit
    take: Callable[[], Row]


HEAD = "| measure | required ≤ | aim | measured | of it |\n| --- | --- | --- | --- | --- |"


def ratio(measure: str, limit: Limit, names: tuple[str, str], runs: tuple[Callable[[], Usage], Callable[[], Usage]], rounds: int) -> Row:
    """The processor time of the first against that of the second, run in turns: the median of the ratios of ``rounds`` rounds.

    What runs beside them on a shared machine slows both down alike, so neighbours in time are compared, not best with best.
    """
    times = [(runs[0]().seconds, runs[1]().seconds) for _ in range(rounds)]
    value = statistics.median(first / second for first, second in times)
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    return Row(measure, limit, value, f"{names[0]} {_seconds(medians[0])}, {names[1]} {_seconds(medians[1])}")


def peak(measure: str, limit: Limit, run: Callable[[], Usage]) -> Row:
    """The peak memory of one run, in MB of a million bytes."""
    usage = run()
    return Row(measure, limit, usage.peak / 1e6, f"{_seconds(usage.seconds)}", " MB")


def show(rows: Iterator[Row]) -> Sequence[Row]:
    """Print the table line by line, as its rows come."""
    print(HEAD, flush=True)
    shown = []
    for row in rows:
        print(row, flush=True)
        shown.append(row)
    return shown


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}".rstrip("0").rstrip(".")
