"""A better split of the layers, and what it should gain by the same model of the stages that describes the present one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from memdoctor import units
from memdoctor.derive.stages.expected import Expected
from memdoctor.memory.cost import Costs, stage_costs, step_cost
from memdoctor.memory.partition import best_split, split_flags
from memdoctor.memory.stage_memory import StageMemory
from memdoctor.records import record

SLOWER = 1.15  # times the slowest stage of today: what a split that saves memory may cost; the price is named
LEAST_GAIN = 0.03  # of a step or of the fullest stage: less is not worth a new layout


@record
class Proposal:
    """``sizes`` layers of each chunk; ``before`` and ``after`` in the unit of the model (relative step time, bytes of the fullest stage).

    ``price``: the slowest stage then, times that of today, where a split that saves memory costs time.
    """

    sizes: tuple[int, ...]
    before: float
    after: float
    flags: str
    price: float = 1.0

    @property
    def gain(self) -> float:
        return 1 - self.after / self.before


def calibrate(stages: Sequence[float], expected: Expected) -> Costs:
    """Costs of the parts of the model in the unit of measured ``stages``: what the first and the last take beyond their layers are their ends."""
    weights = expected.costs.layers if expected.costs is not None else (1.0,) * sum(expected.sizes)
    own = stage_costs(Costs(weights), expected.sizes, len(stages))
    inner = [time / weight for time, weight in zip(stages[1:-1], own[1:-1], strict=True) if weight]
    every = [time / weight for time, weight in zip(stages, own, strict=True) if weight]
    unit = median(inner) if inner else min(every, default=0.0)
    first, last = (max(0.0, stages[stage] - own[stage] * unit) for stage in (0, -1))
    return Costs(tuple(weight * unit for weight in weights), first, last)


def faster(stages: Sequence[float], expected: Expected, microbatches: int | None) -> Proposal | None:
    """The split with the shortest step; None where the present one is as good as any."""
    costs, pp, vpp = calibrate(stages, expected), len(stages), expected.vpp
    sizes = best_split(len(costs.layers), pp, vpp, lambda chunks: stage_costs(costs, chunks, pp), expected.sizes)
    before, after = (step_cost(stage_costs(costs, chunks, pp), microbatches, vpp) for chunks in (expected.sizes, sizes))
    return _worth(Proposal(sizes, before, after, split_flags(sizes, pp)))


def smaller(memory: StageMemory, expected: Expected, *, at_any_price: bool = False) -> Proposal | None:
    """The split whose fullest stage holds least; None where the present one is as good as any.

    It may not make the slowest stage slower than ``SLOWER``, as far as the model's sizes tell; ``at_any_price``: it may, where a job dies of
    memory.
    """
    pp, costs = memory.layout.pp, expected.costs
    limit = math.inf if costs is None or at_any_price else SLOWER * max(stage_costs(costs, expected.sizes, pp))

    def evaluate(sizes: tuple[int, ...]) -> list[float]:
        peaks = memory.peaks(sizes)
        if costs is None or limit == math.inf:
            return peaks
        times = stage_costs(costs, sizes, pp)
        return [peak if time <= limit else math.inf for peak, time in zip(peaks, times, strict=True)]

    sizes = best_split(sum(expected.sizes), pp, expected.vpp, evaluate, expected.sizes)
    price = 1.0 if costs is None else max(stage_costs(costs, sizes, pp)) / max(stage_costs(costs, expected.sizes, pp))
    return _worth(Proposal(sizes, max(memory.peaks(expected.sizes)), max(memory.peaks(sizes)), split_flags(sizes, pp), price))


def _worth(proposal: Proposal) -> Proposal | None:
    return proposal if proposal.before > 0 and proposal.gain >= LEAST_GAIN else None


def show_sizes(sizes: Sequence[int], pp: int) -> str:
    """``5, 7, 7, 5``; with virtual stages the layers of each stage."""
    stages = [sum(sizes[stage::pp]) for stage in range(pp)]
    return ", ".join(str(size) for size in stages)


def gain_in_time(proposal: Proposal) -> str:
    return f"{100 * proposal.gain:.0f} % off the step by the model of the stages"


def gain_in_memory(proposal: Proposal) -> str:
    price = f"; the slowest stage then takes {100 * (proposal.price - 1):.0f} % longer" if proposal.price > 1.01 else ""
    return f"the fullest stage then holds {units.format_size(proposal.after)} in place of {units.format_size(proposal.before)} by the model of the stages{price}"
