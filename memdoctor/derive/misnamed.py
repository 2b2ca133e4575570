"""Files whose names hold a number that looks like a rank and is none: that of a node or of a run, whose many ranks print into it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from memdoctor.model import Fact, FileRead


def misnamed(facts: Sequence[Fact], files: Sequence[FileRead]) -> set[int]:
    """The numbers of files whose lines are of several ranks, or of another than the name says."""
    named = {file.number: file for file in files if file.rank is not None}
    labels: dict[int, set[int]] = defaultdict(set)
    others: dict[int, set[int]] = defaultdict(set)
    several: set[int] = set()
    for fact in facts:
        file = named.get(fact.seq >> 44)
        if file is None:
            continue
        stream = (fact.fields.get("stream") or "").rpartition("/")[2]
        if stream[:1] == "l" and stream[1:].isdecimal():
            labels[file.number].add(int(stream[1:]))
        if fact.rank is not None and fact.rank != file.rank:
            others[file.number].add(fact.rank)
        if fact.kind == "process.exit" and fact.fields.get("by") == "torchrun":
            of_rank, local = fact.fields.get("of_rank"), fact.fields.get("local")
            if of_rank not in (None, file.rank) or (local or 0) > 0:
                several.add(file.number)
    result: set[int] = set()
    for number, file in named.items():
        found = others[number] | (file.ranks - {file.rank} if file.ranks else set())
        if len(labels[number]) > 1 or number in several or found:
            result.add(number)
    return result


def says(text: str, rank: int) -> bool:
    """True where the line itself names the rank."""
    return re.search(rf"(?i)(?<![a-z_])(?:global_)?rank[ :=#_-]{{0,3}}{rank}(?!\d)", text) is not None
