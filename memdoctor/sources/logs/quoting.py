"""Lines by their number, read once more: what a series shows, its line has to prove, and which line that is shows only at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from memdoctor.model import Fact, FileRead
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.reading import Reader
from memdoctor.sources.logs.stored import STDIN

MOST = 8 * 1024**3  # bytes of a file that are read for it
LONGEST = 2_000  # bytes kept of a line


def quote(wanted: Mapping[str, Set[int]], opened: Mapping[str, str]) -> dict[tuple[str, int], str]:
    """(path, line number) → the line. Lines that cannot be had again (standard input, a file that is gone) are left out.

    ``wanted``: line numbers by path as shown; ``opened``: the paths that are another than is shown.
    """
    result: dict[tuple[str, int], str] = {}
    for path, lines in wanted.items():
        if path != STDIN:
            for number, raw in _lines(LogFile(path, opened=opened.get(path)), sorted(lines)):
                result[path, number] = raw[:LONGEST].decode("utf-8", "replace")
    return result


def _lines(file: LogFile, wanted: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """The wanted lines, which are in ascending order; of progress bars that share a line the last."""
    left = deque(wanted)
    reader = Reader(file)
    for chunk in reader:
        if chunk.places is not None:
            for number, raw in zip(chunk.places, chunk.data.split(b"\n"), strict=False):
                while left and left[0] < number:
                    left.popleft()
                if left and left[0] == number:
                    yield left.popleft(), raw.rpartition(b"\r")[2]
            continue
        chunk.lines = chunk.data.count(b"\n")
        start, at = 0, chunk.line
        while left and left[0] < chunk.line + chunk.lines:
            number = left.popleft()
            if number >= chunk.line and not chunk.part:
                for _ in range(number - at):
                    start = chunk.data.index(b"\n", start) + 1
                at = number
                yield number, chunk.data[start : chunk.data.index(b"\n", start)].rstrip(b"\r").rpartition(b"\r")[2]
        if not left or reader.bytes_read > MOST:
            return


def with_lines(facts: Sequence[Fact], files: Sequence[FileRead]) -> tuple[Fact, ...]:
    """``facts`` with the text of their lines where derivation knew only the number; ``files`` are those that they are from."""
    bare = [
        fact
        for fact in facts
        if fact.kind.startswith(("series.", "nccl.")) and fact.origin.path and fact.origin.line and not fact.origin.excerpt
    ]
    if not bare:
        return tuple(facts)
    wanted: dict[str, set[int]] = {}
    for fact in bare:
        wanted.setdefault(fact.origin.path or "", set()).add(fact.origin.line or 0)
    found = quote(wanted, {file.path: file.opened for file in files if file.opened is not None})
    texts = {id(fact): found.get((fact.origin.path or "", fact.origin.line or 0), "") for fact in bare}
    return tuple(replace(fact, origin=replace(fact.origin, excerpt=texts[id(fact)])) if texts.get(id(fact)) else fact for fact in facts)
