"""Do the stages of a pipeline, or the ranks of one stage, hold very different amounts of GPU memory, and why?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean, median

from memdoctor.derive.stages.grid import Grid
from memdoctor.memory.stage_memory import StageMemory, activation_units
from memdoctor.model import Fact
from memdoctor.records import record

RATIO = 1.4  # the fullest over the emptiest ...
OVER_MEAN = 1.15  # ... and over the mean: less is what embedding and in-flight micro-batches cost any pipeline
LEAST = 1024**3  # bytes: a difference below it frees nothing
PEERS = 1.3  # a rank over the median of its stage


@record
class Uneven:
    """``stage`` holds ``most`` bytes, ``other`` the least; or, where ``rank`` is set, that rank over the others of its stage."""

    stage: int
    most: int
    other: int
    least: int
    fact: Fact
    rank: int | None = None


def peaks(facts: Sequence[Fact]) -> dict[int, Fact]:
    """Rank → the line with its highest peak."""
    best: dict[int, Fact] = {}
    for fact in facts:
        if fact.kind == "rank.memory" and fact.rank is not None and fact.fields.get("peak"):
            known = best.get(fact.rank)
            if known is None or fact.fields["peak"] > known.fields["peak"]:
                best[fact.rank] = fact
    return best


def by_stage(ranks: Mapping[int, Fact], grid: Grid) -> dict[int, dict[int, Fact]]:
    stages: dict[int, dict[int, Fact]] = {}
    for rank, fact in ranks.items():
        stages.setdefault(grid.stage(rank), {})[rank] = fact
    return stages


def fullest(ranks: Mapping[int, Fact]) -> Fact:
    return max(ranks.values(), key=lambda fact: int(fact.fields["peak"]))


def judge(stages: Mapping[int, Mapping[int, Fact]], grid: Grid) -> Uneven | None:
    """What is uneven: stages first, then ranks of one stage; None where nothing is."""
    tops = {stage: fullest(ranks) for stage, ranks in stages.items()}
    if grid.pp > 1 and set(stages) == set(range(grid.pp)):
        sizes = {stage: int(fact.fields["peak"]) for stage, fact in tops.items()}
        stage, other = max(sizes, key=lambda key: sizes[key]), min(sizes, key=lambda key: sizes[key])
        most, least = sizes[stage], sizes[other]
        if most >= RATIO * least and most >= OVER_MEAN * mean(sizes.values()) and most - least >= LEAST:
            return Uneven(stage, most, other, least, tops[stage])
    for stage, ranks in sorted(stages.items()):
        top = tops[stage]
        others = [int(fact.fields["peak"]) for rank, fact in ranks.items() if rank != top.rank]
        if others and top.fields["peak"] >= PEERS * median(others) and top.fields["peak"] - median(others) >= LEAST:
            return Uneven(stage, int(top.fields["peak"]), stage, int(median(others)), top, top.rank)
    return None


def reason(sizes: Sequence[int], stage: int, layers: Sequence[int] | None, fitted: StageMemory | None, chunks: tuple[int, ...]) -> str:
    """embedding, logits, warm_up, layers or unknown: what makes ``stage`` the fullest of ``sizes`` (bytes of all stages)."""
    last = len(sizes) - 1
    if layers is not None and layers[stage] > median(layers):
        return "layers"
    end = "embedding" if stage == 0 else "logits" if stage == last else "unknown"
    if stage == last:
        return end
    if fitted is not None:
        held = [fitted.layer * activation_units(each, chunks, fitted.layout) for each in range(last + 1)]
        in_flight = held[stage] - mean(held[:stage] + held[stage + 1 :])
        excess = sizes[stage] - mean([*sizes[:stage], *sizes[stage + 1 :]])
        return "warm_up" if in_flight >= excess / 2 else end
    if stage != 0 or last < 2:
        return end
    falls = [a - b for a, b in pairwise(sizes)]
    return "warm_up" if max(falls) < 2 * (sizes[0] - sizes[last]) / last else "embedding"
