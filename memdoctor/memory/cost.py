"""What the parts of a model cost in time, in one unit: the forward and backward pass of a plain layer is 1.

Counted are floating-point operations of matrix products (arXiv 2104.04473, appendix A). The embedding is a look-up and costs none.
"""

from __future__ import annotations

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.records import record

RECOMPUTED = 4 / 3  # forward, forward again, backward (twice a forward) where a whole layer is recomputed


@record
class Costs:
    """``layers`` of each layer in turn, ``first`` what the first stage has besides (embedding), ``last`` the last one (logits, loss)."""

    layers: tuple[float, ...]
    first: float = 0.0
    last: float = 0.0

    def scaled(self, factor: float) -> Costs:
        return Costs(tuple(cost * factor for cost in self.layers), self.first * factor, self.last * factor)


def time_costs(model: Model, layout: Layout) -> Costs | None:
    """Relative costs of the parts of ``model``; None where its sizes are not known."""
    if model.layers is None or model.qkv is None or model.query is None or model.vocab is None or model.seq is None:
        return None
    dense = None if model.ffn is None else model.hidden * (model.ffn + (model.fc1 or 0))
    attention = model.hidden * (model.qkv + model.query) + model.seq * model.query  # scores and their product, causal: half of 2 × s × h
    experts = None
    if model.moe_ffn and model.expert_fc1:
        experts = model.topk * model.hidden * (model.moe_ffn + model.expert_fc1) + model.shared_ffn * model.hidden * (
            3 if model.gated else 2
        )
    flops: list[float] = []
    for layer in range(model.layers):
        mlp = experts if model.is_moe(layer) else dense
        if mlp is None:
            return None
        flops.append(float(attention + mlp))
    again = RECOMPUTED if layout.recompute == "full" else 1.0
    plain = min(flops) * again
    return Costs(tuple(cost * again / plain for cost in flops), 0.0, model.hidden * model.vocab / plain)


def stage_costs(costs: Costs, sizes: tuple[int, ...], pp: int) -> list[float]:
    """Cost of each of ``pp`` stages where its chunks hold ``sizes`` layers (pp × vpp numbers in the order of the model)."""
    stages = [0.0] * pp
    first = 0
    for chunk, size in enumerate(sizes):
        stages[chunk % pp] += sum(costs.layers[first : first + size])
        first += size
    stages[0] += costs.first
    stages[(len(sizes) - 1) % pp] += costs.last
    return stages


def step_cost(stages: list[float], microbatches: int | None, vpp: int = 1) -> float:
    """Cost of one step of the 1F1B pipeline, in the unit of one micro-batch through ``stages``.

    The slowest stage sets the beat; filling and draining costs the other stages once, divided by the virtual stages.
    """
    slowest = max(stages)
    return (microbatches or 4 * len(stages)) * slowest + (sum(stages) - slowest) / vpp


def bubble(pp: int, microbatches: int, vpp: int = 1) -> float:
    """Share of a step that each stage of an even pipeline idles: (p - 1) / (v m + p - 1)."""
    return (pp - 1) / (vpp * microbatches + pp - 1)
