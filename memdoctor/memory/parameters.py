"""How many parameters a GPU holds, counted exactly (biases, norms and learned positions too)."""

from __future__ import annotations

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.split import layers_on
from memdoctor.records import record


@record
class Parameters:
    """Parameters on one GPU: ``dense`` are shared by all data-parallel ranks, ``expert`` by fewer where experts are spread out."""

    dense: int
    expert: int = 0

    @property
    def all(self) -> int:
        return self.dense + self.expert

    def __add__(self, other: Parameters) -> Parameters:
        return Parameters(self.dense + other.dense, self.expert + other.expert)


def layer_parameters(model: Model, layout: Layout, *, moe: bool) -> Parameters | None:
    """Of one layer on one GPU; None where the model's sizes are not all known."""
    attention = _attention(model, layout)
    norms = 2 * model.norm * model.hidden
    if attention is None:
        return None
    if not moe:
        mlp = _mlp(model, model.ffn, layout.tp)
        return None if mlp is None else Parameters(attention + norms + mlp)
    expert = _mlp(model, model.moe_ffn, layout.etp)
    shared = _mlp(model, model.shared_ffn, layout.tp) if model.shared_ffn else 0
    if expert is None or shared is None:
        return None
    router = model.hidden * model.experts
    return Parameters(attention + norms + shared + router, expert * (model.experts // layout.ep))


def _attention(model: Model, layout: Layout) -> int | None:
    if model.attention_parameters is not None:
        return model.attention_parameters // layout.tp
    if model.qkv is None or model.query is None:
        return None
    bias = model.qkv // layout.tp + model.hidden if model.bias else 0
    return model.hidden * (model.qkv + model.query) // layout.tp + bias


def _mlp(model: Model, width: int | None, tp: int) -> int | None:
    if width is None:
        return None
    fc1 = width * (2 if model.gated else 1)
    bias = fc1 // tp + model.hidden if model.bias else 0
    return model.hidden * (fc1 + width) // tp + bias


def stage_parameters(model: Model, layout: Layout, stage: int) -> Parameters | None:
    """Of all that pipeline stage ``stage`` holds, on one GPU: layers, embedding, final norm, output weight (a copy where tied)."""
    if model.layers is None or model.vocab is None:
        return None
    total = Parameters(0)
    for layer in layers_on(stage, model.layers, layout):
        own = layer_parameters(model, layout, moe=model.is_moe(layer))
        if own is None:
            return None
        total += own
    table = model.vocab * model.hidden // layout.tp
    last = stage == layout.pp - 1
    if stage == 0:
        total += Parameters(table + model.positions * model.hidden)
    if last:
        total += Parameters(model.norm * model.hidden)
        if not model.tied or layout.pp > 1:
            total += Parameters(table)
    return total
