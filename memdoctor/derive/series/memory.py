"""Readings of memory from whatever lines tell it, rank by rank."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from collections.abc import MutableSequence, Sequence
from dataclasses import field, replace

from memdoctor.derive.series.robust import median
from memdoctor.derive.steps import Steps
from memdoctor.records import record

_SHARE = re.compile(r"\bmemory: +(?P<held>[\d.]+) ?GiB ?\((?P<percent>[\d.]+)%\)")  # torchtitan's line
KINDS = ("allocated", "reserved", "device", "host")  # the first that is told counts: what is reserved also holds what was freed


PEAKS = {"allocated": "max_allocated", "reserved": "max_reserved"}  # what tells how high a kind rose within the steps so far
IN_USE = ("allocated", "max_allocated", "reserved", "max_reserved", "device")  # what a card has at least


LEAST_SHARE = 5.0  # percent: of a smaller one the digits that are printed do not tell the whole


@record
class Readings:
    """``times`` are iterations, ``values`` bytes, ``lines`` numbers of lines; ``rank`` is None where the line names none; ``whole`` are the
    bytes that there are in all, None where nothing tells. ``peaks``: the most up to each reading, NaN where untold; the readings themselves
    are those between two steps. ``held``: the most bytes of the card that were in use at once, by any count."""

    path: str
    name: str
    rank: int | None
    times: MutableSequence[float]
    values: MutableSequence[float]
    lines: MutableSequence[int]
    whole: float | None = None
    peaks: MutableSequence[float] = field(default_factory=lambda: array("d"))
    held: float = 0.0


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


def _whole(text: str) -> float | None:
    """Bytes of the whole, where a line tells which share of it is held; as exact as a share with few digits allows."""
    match = _SHARE.search(text)
    if match is None or float(match["percent"]) < LEAST_SHARE:
        return None
    return 100 * float(match["held"]) * 1024**3 / float(match["percent"])


def _own(steps: Steps) -> Readings:
    column, iterations, lines = steps.column("memory"), steps.column("iteration"), steps.lines
    found = _empty(steps, "allocated", steps.file.rank)
    for row, value in enumerate(column):
        if math.isfinite(value):
            found.times.append(iterations[row])
            found.values.append(value)
            found.lines.append(int(lines[row]))
    return replace(found, whole=_whole(steps.series.text(found.lines[-1])), held=max(found.values)) if found.lines else found


def _empty(steps: Steps, name: str, rank: int | None) -> Readings:
    return Readings(steps.file.path, name, rank, array("d"), array("d"), array("q"))


def _of_table(steps: Steps, table: object, first: int, last: int) -> list[Readings]:
    spoken = table.spoken  # type: ignore[attr-defined]
    column = table.column  # type: ignore[attr-defined]
    numbers = table.line  # type: ignore[attr-defined]
    ranks = column("rank") if "rank" in spoken else None
    iterations = column("iteration") if "iteration" in spoken else None
    kinds = [kind for kind in ("allocated", "reserved", "device") if kind in spoken][:1] + [kind for kind in ("host",) if kind in spoken]
    peaks = {kind: column(name) for kind, name in PEAKS.items() if name in spoken}
    in_use = [column(name) for name in IN_USE if name in spoken]
    lines, own, held = steps.lines, steps.column("iteration"), dict[int | None, float]()
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
        held[rank] = max([held.get(rank, 0.0), *(used[row] for used in in_use if math.isfinite(used[row]))])
        for kind in kinds:
            value = column(kind)[row]
            if math.isfinite(value):
                each = result.setdefault((kind, rank), _empty(steps, kind, rank))
                each.times.append(time)
                each.values.append(value)
                each.lines.append(line)
                each.peaks.append(peaks[kind][row] if kind in peaks else math.nan)
    whole = [value for value in column("whole") if math.isfinite(value)] if "whole" in spoken else []
    return [
        replace(each, whole=median(whole) if whole else None) if each.name == "host" else replace(each, held=held[each.rank])
        for each in result.values()
    ]


def by_step(readings: Sequence[Readings]) -> dict[float, float]:
    """The most that any rank held after each iteration; the machine's memory left out."""
    most: dict[float, float] = {}
    for each in readings:
        if each.name != "host":
            for time, value in zip(each.times, each.values, strict=True):
                most[time] = max(value, most.get(time, 0.0))
    return most
