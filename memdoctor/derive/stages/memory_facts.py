"""The facts stage.memory and stage.uneven (memory, parameters) of one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from memdoctor import units
from memdoctor.derive.stages import memory
from memdoctor.derive.stages.grid import Grid
from memdoctor.derive.stages.job import BECAUSE, Job, proposal_fields
from memdoctor.derive.stages.proposal import gain_in_memory, show_sizes, smaller
from memdoctor.memory.stage_memory import StageMemory, fit, state_bytes
from memdoctor.model import Fact

PARAMETERS = 1.3  # the largest stage over the mean, in parameters


def memory_facts(job: Job) -> list[Fact]:
    grid = job.grid
    if grid is None:
        return []
    stages = memory.by_stage(memory.peaks(job.facts), grid)
    found = []
    for stage, ranks in sorted(stages.items()):
        top = memory.fullest(ranks)
        layers = job.expected.layers[stage] if job.expected is not None else None
        found.append(
            job.fact("stage.memory", {"stage": stage, "peak": top.fields["peak"], "ranks": tuple(sorted(ranks)), "layers": layers}, top)
        )
    uneven = memory.judge(stages, grid)
    if uneven is None:
        return found + ([] if stages and len(stages) == grid.pp > 1 else _parameters(job, grid))
    if uneven.rank is not None:
        fields: dict[str, Any] = {
            "stage": uneven.stage,
            "rank": uneven.rank,
            "reason": "rank",
            "because": BECAUSE["rank"],
            "per_rank": True,
        }
    else:
        fields = {
            "stage": uneven.stage,
            "rank": uneven.fact.rank,
            "other_stage": uneven.other,
            "per_rank": False,
            **why_memory(job, grid, stages, uneven.stage),
        }
    over = f"rank {uneven.rank} holds" if uneven.rank is not None else f"stage {uneven.stage} of {grid.pp} holds"
    under = f"the other ranks of stage {uneven.stage}" if uneven.rank is not None else f"stage {uneven.other}"
    most, least = units.format_size(uneven.most), units.format_size(uneven.least)
    fields["text"] = f"{over} {most} at its peak, {under} {least}"
    fields |= {"most": most, "least": least, "over": uneven.most / uneven.least}
    return [*found, job.fact("stage.uneven", {"what": "memory", "stages": grid.pp, **fields}, uneven.fact)]


def fitted_of(job: Job, grid: Grid, stages: Mapping[int, Mapping[int, Fact]]) -> StageMemory | None:
    """The model of the stages that comes nearest to their peaks; None where the model's sizes are not known."""
    if job.expected is None or job.shapes is None or job.shapes.model is None or job.shapes.layout.pp != grid.pp:
        return None
    return fit(job.shapes.model, job.shapes.layout, [float(size) for size in _sizes(grid, stages)])


def _sizes(grid: Grid, stages: Mapping[int, Mapping[int, Fact]]) -> list[int]:
    return [int(memory.fullest(stages[number]).fields["peak"]) for number in range(grid.pp)]


def why_memory(job: Job, grid: Grid, stages: Mapping[int, Mapping[int, Fact]], stage: int) -> dict[str, Any]:
    """Fields of stage.uneven: why ``stage`` is the fullest, how the layers are dealt, and what would be better."""
    fitted, expected = fitted_of(job, grid, stages), job.expected
    why = memory.reason(_sizes(grid, stages), stage, expected.layers if expected else None, fitted, expected.sizes if expected else ())
    fields: dict[str, Any] = {"reason": why, "because": BECAUSE.get(why)}
    if expected is not None:
        fields["split"] = show_sizes(expected.sizes, grid.pp)
        if fitted is not None:
            dies = any(fact.kind == "cuda.oom" for fact in job.facts)
            fields |= proposal_fields(smaller(fitted, expected, at_any_price=dies), grid, gain_in_memory)
    return fields


def _parameters(job: Job, grid: Grid) -> list[Fact]:
    """Where no memory of the stages is known: their parameters, which decide weights, gradients and optimizer."""
    own: dict[int, Fact] = {}
    for fact in job.facts:
        if fact.kind == "rank.parameters" and fact.fields.get("parameters") and fact.fields.get("name") == "deepspeed":
            own[int(fact.fields["stage"])] = fact
    if grid.pp < 2 or set(own) != set(range(grid.pp)):
        return []
    counts = [int(own[stage].fields["parameters"]) for stage in range(grid.pp)]
    stage, other = counts.index(max(counts)), counts.index(min(counts))
    per = state_bytes(job.shapes.layout) if job.shapes is not None else 16
    if max(counts) < PARAMETERS * mean(counts) or (max(counts) - min(counts)) * per < memory.LEAST:
        return []
    fields = {
        "what": "parameters",
        "rank": own[stage].rank,
        "stage": stage,
        "other_stage": other,
        "stages": grid.pp,
        "text": f"stage {stage} of {grid.pp} holds {counts[stage]:,} parameters, stage {other} {counts[other]:,}",
        "most": f"{counts[stage]:,} parameters",
        "least": f"{counts[other]:,}",
        "over": counts[stage] / counts[other] if counts[other] else None,
        "reason": "layers",
        "split": show_sizes(job.expected.sizes, grid.pp) if job.expected else None,
    }
    return [job.fact("stage.uneven", fields, own[stage])]
