"""Readings of memory from whatever lines tell it, rank by rank."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from memdoctor.derive.steps import Steps

KINDS = ("allocated", "reserved", "device", "host")  # the first that is told counts: what is reserved also holds what was freed


@dataclass(frozen=True, slots=True)
class Readings:
    """``times`` are iterations, ``values`` bytes, ``lines`` numbers of lines; ``rank`` is None where the line names none."""

    path: str
    name: str
    rank: int | None
    times: list[float]
    values: list[float]
    lines: list[int]


def readings(steps: Steps) -> list[Readings]:
    """All readings of one attempt in one file, each rank and kind apart."""
    found = [_own(steps)] if steps.has("memory") else []
    tables = steps.series.beside.tables
    first, last = steps.line(0) - 200, steps.line(len(steps) - 1) + 200
    for name in ("memory", "throughput"):
        table = tables.get(name)
        if table is not None:
            found += _of_table(steps, table, first, last)
    return [each for each in found if len(each.times) >= 2]


def _own(steps: Steps) -> Readings:
    column, iterations = steps.column("memory"), steps.column("iteration")
    rows = [row for row in range(len(column)) if math.isfinite(column[row])]
    lines = steps.lines
    return Readings(
        steps.file.path,
        "allocated",
        steps.file.rank,
        [iterations[row] for row in rows],
        [column[row] for row in rows],
        [int(lines[row]) for row in rows],
    )


def _of_table(steps: Steps, table: object, first: int, last: int) -> list[Readings]:
    spoken = table.spoken  # type: ignore[attr-defined]
    column = table.column  # type: ignore[attr-defined]
    numbers = table.line  # type: ignore[attr-defined]
    ranks = column("rank") if "rank" in spoken else None
    iterations = column("iteration") if "iteration" in spoken else None
    kinds = [kind for kind in ("allocated", "reserved", "device") if kind in spoken][:1] + [kind for kind in ("host",) if kind in spoken]
    lines, own = steps.lines, steps.column("iteration")
    result: dict[tuple[str, int | None], Readings] = {}
    for row in range(len(table)):  # type: ignore[arg-type]
        line = int(numbers[row])
        if not first <= line <= last:
            continue
        time = iterations[row] if iterations is not None else math.nan
        if math.isnan(time):
            place = bisect_right(lines, line) - 1
            if place < 0:
                continue
            time = own[place]
        rank = int(ranks[row]) if ranks is not None and not math.isnan(ranks[row]) else steps.file.rank
        for kind in kinds:
            value = column(kind)[row]
            if math.isfinite(value):
                each = result.setdefault((kind, rank), Readings(steps.file.path, kind, rank, [], [], []))
                each.times.append(time)
                each.values.append(value)
                each.lines.append(line)
    return list(result.values())


def by_step(readings: Sequence[Readings]) -> dict[float, float]:
    """The most that any rank held after each iteration; the machine's memory left out."""
    most: dict[float, float] = {}
    for each in readings:
        if each.name != "host":
            for time, value in zip(each.times, each.values, strict=True):
                most[time] = max(value, most.get(time, 0.0))
    return most
