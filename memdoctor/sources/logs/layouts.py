"""Patterns made from step lines: they read further lines with the same fields in the same places, much faster than key by key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memdoctor.lazy import lazy
from memdoctor.records import record
from memdoctor.sources.logs.step_shapes import megatron, prints
from memdoctor.sources.logs.step_shapes.numbers import number

STAMP = lazy(rb"(\d{4}-\d\d-\d\d[ T_]\d\d:\d\d):(\d\d(?:[.,]\d{1,9}+)?+)")  # up to the minute, and the second with all of its digits
ZONE = lazy(rb" ?([+-])(\d\d):?(\d\d)(?!\d)")  # what may stand behind it
STAMP_WITHIN = 64  # bytes of a line in which its stamp stands; or, behind what a system's log and a container put there, in
STAMP_FAR = 128
CONSTANT = ("scale", "skipped", "nan", "batch")  # columns that hardly ever change from one line to the next


@record
class Layout:
    """``pattern`` matches a whole line; ``lines`` finds in many lines, each with its ``\\n``, one after the other, those that it does not match
    with nothing captured. ``groups`` names what they capture: "minute", "second" and columns, "iteration" the first of them (the last group
    has no name and is empty); ``fixed`` are the columns whose value is part of the pattern, and ``offset`` are the seconds that its zone is
    ahead of UTC."""

    shape: str
    pattern: re.Pattern[bytes]
    lines: re.Pattern[bytes]
    groups: Sequence[str]
    fixed: Mapping[str, float]
    offset: int = 0


def layout(shape: str, raw: bytes, *, fixing: bool) -> Layout | None:
    """The layout of a step line; None for shapes that come in no great numbers. ``fixing``: hold the ``CONSTANT`` columns fixed."""
    if shape not in ("megatron", "deepspeed"):
        return None
    pattern, groups, at = b"", list[str](), 0
    stamp, offset = STAMP.search(raw, 0, STAMP_WITHIN) or STAMP.search(raw, 0, STAMP_FAR), 0
    # Whatever stands before the numbers counts by its length alone, but for a stamp: the first one counts.
    if stamp is None:
        pattern = _undated(STAMP_FAR - len("2025-01-01 10:00:00") + 1)
    else:
        pattern, groups, at = _undated(stamp.start()) + b".{%d}" % stamp.start() + STAMP.pattern, ["minute", "second"], stamp.end()
        zone = ZONE.match(raw, at)
        if zone is not None:
            pattern, at, offset = pattern + re.escape(zone[0]), zone.end(), seconds_of(zone)
    fixed: dict[str, float] = {}
    if shape == "megatron":
        head = megatron.HEAD.search(raw, at)
        if head is None:
            return None
        tail, columns, fixed = _megatron(raw[head.end() :].split(b"|"), fixing)
        rest = rb"iteration[^\S\n]{1,16}(\d{1,15})/[^\S\n]{0,16}\d{1,15} \|" + tail
    else:
        head = prints.DEEPSPEED.search(raw, at)
        if head is None:
            return None
        columns = ["skipped", "lr"]
        rest = rb"step=(\d{1,15}), skipped=(\d{1,15}), lr=\[([^\],\n]*).*"
    whole = pattern + b".{%d}" % (head.start() - at) + rest
    whole += b"()"  # so that there are always several groups, and findall yields tuples
    return Layout(shape, re.compile(whole), re.compile(whole + rb"\n|[^\n]*\n"), [*groups, "iteration", *columns], fixed, offset)


def seconds_of(zone: re.Match[bytes]) -> int:
    """How far a zone is ahead of UTC."""
    seconds = int(zone[2]) * 3600 + int(zone[3]) * 60
    return seconds if zone[1] == b"+" else -seconds


def _undated(size: int) -> bytes:
    """A pattern that matches nothing, and only where no stamp begins in the next ``size`` bytes."""
    return rb"(?![^\n]{0,%d}\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d)" % (size - 1) if size else b""


def _megatron(fields: Sequence[bytes], fixing: bool) -> tuple[bytes, list[str], dict[str, float]]:
    """The pattern of the fields behind the iteration, the columns that it captures, and the values that it holds fixed."""
    columns = megatron.columns(fields[:-1])  # the last one is not ended
    parts: list[bytes] = []
    groups: list[str] = []
    fixed: dict[str, float] = {}
    for place, field in enumerate(fields):
        key, colon, value = field.rpartition(b":")
        column = columns.get(place)
        if column is not None and fixing and column in CONSTANT:
            fixed[column] = number(value)
            parts.append(re.escape(field))
        elif column is not None:
            groups.append(column)
            parts.append(re.escape(key + colon) + rb"([^|\n]*)")
        else:
            parts.append(re.escape(key + colon) + (rb"[^|\n]*" if colon else rb"[^|:\n]*"))  # a field of a damaged line stands for no other
    return rb"\|".join(parts), groups, fixed
