"""A stage that is nearly full while another has much to spare, by less than makes stages uneven: the room of a note.

A ratio alone misses it where the base that all stages hold is large. Part of such a gap is what 1F1B keeps in flight; how much is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memdoctor import units
from memdoctor.derive.series.growth import CARDS
from memdoctor.derive.stages import memory
from memdoctor.derive.stages.grid import Grid
from memdoctor.derive.stages.job import Job
from memdoctor.derive.stages.memory_facts import fitted_of, why_memory
from memdoctor.memory.stage_memory import activation_units, in_flight
from memdoctor.model import Fact

GAP = 16 * 1024**3  # bytes between the fullest and the emptiest stage
RATIO = 1.25  # of the two: what embedding, logits and micro-batches in flight often make is less
FULL = 0.85  # of the card that the fullest stage holds


def gap_facts(job: Job) -> list[Fact]:
    """stage.uneven (what: headroom), where no stage and no rank is uneven by more."""
    grid = job.grid
    if grid is None or grid.pp < 2:
        return []
    stages = memory.by_stage(memory.peaks(job.facts), grid)
    if set(stages) != set(range(grid.pp)) or memory.judge(stages, grid) is not None:
        return []
    tops = [memory.fullest(stages[stage]) for stage in range(grid.pp)]
    sizes = [int(top.fields["peak"]) for top in tops]
    stage, other = sizes.index(max(sizes)), sizes.index(min(sizes))
    most, least = sizes[stage], sizes[other]
    if most - least < GAP or most < RATIO * least or not _nearly_full(job, most):
        return []
    fields: dict[str, Any] = {
        "what": "headroom",
        "stage": stage,
        "other_stage": other,
        "stages": grid.pp,
        "rank": tops[stage].rank,
        "most": units.format_size(most),
        "least": units.format_size(least),
        "over": most / least,
        "per_rank": False,
        "text": f"stage {stage} of {grid.pp} holds {units.format_size(most)} at its peak, stage {other} {units.format_size(most - least)} less",
        **why_memory(job, grid, stages, stage),
    }
    fields["because"] = _in_flight(job, grid, stages, stage, other) or fields["because"]
    return [job.fact("stage.uneven", fields, tops[stage])]


def _nearly_full(job: Job, peak: int) -> bool:
    """By the card's capacity where an OOM names it, else by the smallest usual card that holds ``peak`` bytes."""
    told = [int(fact.fields["capacity"]) for fact in job.facts if fact.kind == "cuda.oom" and fact.fields.get("capacity")]
    card = max(told) if told else next((card for card in CARDS if card >= peak), peak)
    return peak >= FULL * card


def _in_flight(job: Job, grid: Grid, stages: Mapping[int, Mapping[int, Fact]], stage: int, other: int) -> str | None:
    """What part of the gap the 1F1B schedule makes; None where the fullest stage is not the earlier one."""
    if stage > other:
        return None
    fitted, expected = fitted_of(job, grid, stages), job.expected
    if fitted is None or expected is None:
        return "1F1B keeps more micro-batches in flight on the earlier stages, which is part of it"
    units_of = [activation_units(each, expected.sizes, fitted.layout) for each in (stage, other)]
    part = fitted.layer * (units_of[0] - units_of[1])
    gap = int(memory.fullest(stages[stage]).fields["peak"]) - int(memory.fullest(stages[other]).fields["peak"])
    if part <= 0:
        return None
    flying = [in_flight(each, fitted.layout) for each in (stage, other)]
    how = "all" if part >= 0.95 * gap else f"about {units.format_size(int(part))}"
    return f"1F1B keeps {flying[0]} micro-batches in flight there and {flying[1]} on stage {other}: {how} of it by the model of the stages"
