"""Which logs to read: files, folders, patterns and standard input become an ordered list of ``LogFile``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from memdoctor.errors import InputError
from memdoctor.model import Skip
from memdoctor.records import record
from memdoctor.sources.logs.naming import Told, order, shown, tell
from memdoctor.sources.logs.stored import STDIN
from memdoctor.sources.logs.walking import Found, find

_NAMED = 3  # reasons that an error message tells


@record
class LogFile:
    """One log, and what its name tells about the lines in it.

    ``path`` is what is shown; "-" is standard input; ``opened`` is the path itself where it cannot be shown as it is. ``attempt`` counts from 1.
    ``stream`` is stdout, stderr or error (torchrun's error.json). Files with one ``group`` are the parts of one output: a torchrun run, or
    names that differ in the rank only. Among the files of one ``unit``, those of a node, a local rank is unique; the
    folder shows ``nodes`` of them. ``year`` is that of its stamps, where they lack one and other logs of the job tell it.
    """

    path: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    attempt: int | None = None
    stream: str | None = None
    group: str = ""
    opened: str | None = None
    unit: str = ""
    nodes: int = 1
    year: int | None = None


@record
class Inputs:
    """What the arguments name: ``logs`` and flight-recorder ``dumps`` (paths), in a fixed order and each once; what was left out, and why."""

    logs: list[LogFile]
    dumps: list[str]
    skips: list[Skip]


def expand(args: Sequence[str]) -> tuple[list[LogFile], list[Skip]]:
    """The logs that ``args`` name, and what could not be read. Raises InputError when no log is left to read."""
    inputs = sort_out(args)
    if not inputs.logs:
        raise InputError(_nothing(inputs.skips))
    return inputs.logs, inputs.skips


def sort_out(args: Sequence[str]) -> Inputs:
    """What ``args`` name. Raises InputError when nothing is left to read.

    Order is that of ``args``; within a folder, a pattern, or names that differ in the rank only, rank 2 comes before rank 10.
    """
    found = Found()
    first: list[int] = []  # for each path the number of the argument that brought it
    for number, argument in enumerate(args):
        find(argument, found)
        first += [number] * (len(found.paths) - len(first))
    if not found.paths and not found.dumps:
        raise InputError(_nothing(found.skips))
    places = [STDIN if path == STDIN else os.path.abspath(path) for path in found.paths]
    told = _told(places, found)
    known, anchors = set(places), dict[str, int]()
    keys = []
    for place, one, number in zip(places, told, first, strict=True):
        keys.append((anchors.setdefault(one.group, number) if one.group else number, order(place, known)))
    files = [_file(path, one) for _, path, one in sorted(zip(keys, found.paths, told, strict=True), key=lambda entry: entry[0])]
    return Inputs(files, found.dumps, found.skips)


def _told(places: Sequence[str], found: Found) -> list[Told]:
    """What the names tell; beside a file that was named itself, its whole folder is looked at."""
    real = [place for place in places if not _nameless(place)]
    walked = {os.path.abspath(folder) for folder in found.walked}
    beside: dict[str, list[str]] = {}
    for folder in {os.path.dirname(place) for place in real} - walked:
        try:
            beside[folder] = os.listdir(folder)
        except OSError:
            beside[folder] = []
    told = iter(tell(real, beside))
    return [Told() if _nameless(place) else next(told) for place in places]


def _nameless(place: str) -> bool:
    """True for what has a number, not a name: standard input, the ``/dev/fd/63`` of a shell's ``<(command)``."""
    return place == STDIN or place.startswith(("/dev/", "/proc/"))


def _file(path: str, told: Told) -> LogFile:
    name = shown(path)
    opened = None if name == path else path
    return LogFile(name, told.rank, told.local_rank, told.host, told.attempt, told.stream, told.group, opened, told.unit, told.nodes)


def _nothing(skips: Sequence[Skip]) -> str:
    if not skips:
        return "no log was named: give a file, a folder, a pattern, or - for standard input"
    told = "; ".join(f"{skip.source or repr(skip.source)}: {skip.reason}" for skip in skips[:_NAMED])
    more = f"; and {len(skips) - _NAMED:,} more" if len(skips) > _NAMED else ""
    return f"no log could be read: {told}{more}. Give a file, a folder, a pattern, or - for standard input"
