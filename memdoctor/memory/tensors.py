"""The tensors that exist in a model at a layout: activations, weights and their copies, buffers of optimizer and communication."""

from __future__ import annotations

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.tensor import Tensor
from memdoctor.memory.tensors_activations import activations
from memdoctor.memory.tensors_moe import moe
from memdoctor.memory.tensors_states import states
from memdoctor.memory.tensors_zero import zero


def tensors(model: Model | None, layout: Layout) -> list[Tensor]:
    """All tensors on one GPU that are worth a name, of every stage. Sizes that the arguments do not tell are left out.

    Shapes are those of one allocation on one GPU: what TP, CP, EP, SP and the data-parallel ranks share is divided already.
    """
    found = [] if model is None else [*activations(model, layout), *moe(model, layout), *states(model, layout)]
    found += zero(model, layout)
    unique: dict[tuple[str, int], Tensor] = {}
    for tensor in found:
        if tensor.bytes > 0:
            unique.setdefault((tensor.name, tensor.bytes), tensor)
    return list(unique.values())
