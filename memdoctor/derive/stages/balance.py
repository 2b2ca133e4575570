"""Imbalance of a job: uneven stages, slow ranks, and what would be better. The door of this package."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.derive.shapes import shapes_of
from memdoctor.derive.stages.expected import expected_of
from memdoctor.derive.stages.grid import grid_of
from memdoctor.derive.stages.job import Job
from memdoctor.derive.stages.memory_facts import memory_facts
from memdoctor.derive.stages.memory_gap import gap_facts
from memdoctor.derive.stages.time_facts import reported_facts, time_facts
from memdoctor.model import Fact


def balance(attempt: int, facts: Sequence[Fact], earlier: Sequence[Fact] = ()) -> list[Fact]:
    """The facts stage.memory, stage.time, stage.uneven and rank.slow of one attempt. ``earlier``: facts of attempts before it, which may hold
    the arguments."""
    shapes = shapes_of([*reversed(facts), *reversed(earlier)])
    grid = grid_of(facts, shapes)
    job = Job(attempt, facts, shapes, grid, expected_of(facts, shapes, grid) if grid is not None else None)
    return [*memory_facts(job), *gap_facts(job), *time_facts(job), *reported_facts(job)]
