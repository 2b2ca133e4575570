"""Readings of memory from whatever lines tell it, rank by rank."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import MutableSequence, Sequence

from memdoctor.derive.steps import Steps
from memdoctor.records import record

KINDS = ("allocated", "reserved", "device", "host")  # the first that is told counts: what is reserved also holds what was freed


@record
class Readings:
    """``times`` are iterations, ``values`` bytes, ``lines`` numbers of lines; ``rank`` is None where the line names none."""

    path: str
    name: str
    rank: int | None
    times: MutableSequence[float]
    values: MutableSequence[float]
    lines: MutableSequence[int]


def readings(steps: Steps) -> list[Readings]:
    """All readings of one attempt in one file, each rank and kind apart."""
    return [each for each in ([_own(steps)] if steps.has("memory") else readings_beside(steps)) if len(each.times) >= 2]


def readings_beside(steps: Steps) -> list[Readings]:
    """Those of lines that stand beside step lines."""
    found: list[Readings] = []
    tables = steps.series.beside.tables
    first, last = steps.line(0) - 200, steps.line(len(steps) - 1) + 200
    for name in ("memory", "throughput"):
        table = tables.get(name)
        if table is not None:
            found += _of_table(steps, table, first, last)
    return found


def _own(steps: Steps) -> Readings:
    column, iterations, lines = steps.column("memory"), steps.column("iteration"), steps.lines
    found = _empty(steps, "allocated", steps.file.rank)
    for row, value in enumerate(column):
        if math.isfinite(value):
            found.times.append(iterations[row])
            found.values.append(value)
            found.lines.append(int(lines[row]))
    return found


def _empty(steps: Steps, name: str, rank: int | None) -> Readings:
    return Readings(steps.file.path, name, rank, array("d"), array("d"), array("q"))


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
                each = result.setdefault((kind, rank), _empty(steps, kind, rank))
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
