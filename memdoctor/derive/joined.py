"""Files that were joined, as by ``cat rank_*.log``: between the parts the order of lines tells nothing.

Such a file is told by the ranks that its lines name: each has all its lines in one place. Lines that all ranks wrote into one file hold
the same rank again and again, or the steps go on around an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.derive.lives import ENDS_PROCESS
from memdoctor.model import Fact

_OF_OTHERS = ("process.exit", "scheduler", "rank.place", "host.oom", "gpu.error")  # lines about a rank that another process prints
_BEGINNINGS = ("run.start", "run.world", "run.version", "run.arg", "run.place")
FEW = 2  # ranks that died before the first step line from which on that is proof enough


def begin_of_steps(facts: Sequence[Fact], first: int, last: int) -> int:
    """The seq at which the part begins that holds the steps from ``first`` to ``last``; 0 where the file is in one piece.

    ``facts`` are those of the file (and attempt), in reading order.
    """
    said = [fact for fact in facts if fact.rank is not None and fact.kind not in _OF_OTHERS]
    if not said or not (said[0].seq < first and last < said[-1].seq):
        return 0
    parts = _parts(said)
    before = [part for part in parts if part[1] < first]
    around = [part for part in parts if part[0] < last and part[1] > first]
    within = {fact.rank for fact in said if first < fact.seq < last} - {fact.rank for fact in said if fact.seq > last}
    if not before or len(around) > 1 or within:
        return 0
    begin = before[-1][1] + 1
    dead = {fact.rank for fact in said if fact.seq < begin and fact.kind in ENDS_PROCESS and not fact.fields.get("logged")}
    if not dead or not any(fact.kind in ENDS_PROCESS for fact in said if fact.seq > last):
        return 0
    if len(dead) < FEW and any(fact.kind in _BEGINNINGS and fact.seq < before[0][0] for fact in facts):
        return 0  # an error at start-up, before all steps
    return begin


def _parts(said: Sequence[Fact]) -> list[tuple[int, int]]:
    """The first and last seq of each stretch that shares no rank with another."""
    until = {fact.rank: fact.seq for fact in said}
    parts: list[tuple[int, int]] = []
    begin, end = said[0].seq, until[said[0].rank]
    for fact in said:
        if fact.seq > end:
            parts.append((begin, end))
            begin = fact.seq
        end = max(end, until[fact.rank])
    return [*parts, (begin, end)]
