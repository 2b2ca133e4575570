"""Slow ranks by the straggler reports that Megatron-LM and the resiliency extension print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from memdoctor.derive.stages.grid import Grid
from memdoctor.model import Fact
from memdoctor.records import record

REPORTS = 3  # below this many nothing is steady
STEADY = 0.6  # share of the reports that name the same rank
SLOW = 0.9  # throughput of the slowest over that of the fastest
APART = 1.05  # the next slowest group is faster by this: then one is slow, not a stage
_ENTRY = re.compile(r"([\d.]+)(?:TF)?/(\d+)")
_RANK = re.compile(r"rank=(\d+)")


@record
class Reported:
    """``ranks`` are slow by themselves, or (``stage`` set) they are the ranks of a stage that has more to do."""

    ranks: tuple[int, ...]
    over: float | None
    reports: int
    fact: Fact
    stage: int | None = None


def reported(facts: Sequence[Fact], grid: Grid | None) -> Reported | None:
    """What the reports of one attempt agree on; None where they do not, or do not tell a slow rank from an uneven split."""
    named = [fact for fact in facts if fact.kind == "rank.speed" and fact.fields.get("name") == "resiliency"]
    if named:
        counts = Counter(int(rank) for fact in named for rank in set(_RANK.findall(str(fact.fields.get("ranks_text", "")))))
        ranks = tuple(sorted(rank for rank, count in counts.items() if count >= STEADY * len(named)))
        return Reported(ranks, None, len(named), named[-1]) if ranks else None
    lines = [fact for fact in facts if fact.kind == "rank.speed" and fact.fields.get("slow_over_fast") is not None]
    if len(lines) < REPORTS:
        return None
    groups = Counter(_group(int(fact.fields["slow_rank"]), grid) for fact in lines)
    group, count = groups.most_common(1)[0]
    own = [fact for fact in lines if _group(int(fact.fields["slow_rank"]), grid) == group]
    ratios = sorted(float(fact.fields["slow_over_fast"]) for fact in own)
    if count < STEADY * len(lines) or ratios[len(ratios) // 2] > SLOW:
        return None
    over = 1 / ratios[len(ratios) // 2]
    if grid is None or grid.pp == 1:
        return Reported(group, over, count, own[-1])
    return _in_pipeline(group, over, own, grid)


def _group(rank: int, grid: Grid | None) -> tuple[int, ...]:
    return (rank,) if grid is None else grid.group(rank)


def _in_pipeline(group: tuple[int, ...], over: float, lines: Sequence[Fact], grid: Grid) -> Reported | None:
    """In a pipeline a whole stage may be slow by its work: the list of the slowest ranks, or the fastest rank, tells."""
    stage = grid.stage(group[0])
    fact = lines[-1]
    if grid.stage(int(fact.fields["fast_rank"])) == stage:
        return Reported(group, over, len(lines), fact)
    bottom = [(float(value), int(rank)) for value, rank in _ENTRY.findall(str(fact.fields.get("bottom", "")))]
    slowest = [value for value, rank in bottom if rank in group]
    rest = [(value, rank) for value, rank in bottom if rank not in group]
    if not slowest or not rest:
        return None
    near = [rank for value, rank in rest if value < APART * max(slowest)]
    if not near:
        return Reported(group, over, len(lines), fact)
    if all(grid.stage(rank) == stage for rank in near):
        return Reported(group, over, len(lines), fact, stage)
    return None
