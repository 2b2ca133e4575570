"""The tensors that exist in a model at a layout: activations, weights and their copies, buffers of optimizer and communication."""

from __future__ import annotations

from collections.abc import Collection

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.tensor import Tensor
from memdoctor.memory.tensors_activations import activations
from memdoctor.memory.tensors_moe import moe
from memdoctor.memory.tensors_states import states
from memdoctor.memory.tensors_zero import zero

STATES = frozenset({"weights", "gradients", "optimizer", "communication"})  # places whose tensors the parameters alone decide


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


def sizes_known(model: Model, layout: Layout, places: Collection[str]) -> bool:
    """True where no tensor of ``places`` is left out for a size that nothing tells: then what is not among ``tensors`` is none of the model's.

    Of multi-head latent attention the weights are counted, but not what it makes of them.
    """
    width = model.moe_ffn if model.experts and not model.has_dense else model.ffn
    states = all((model.layers, model.vocab, model.query, model.qkv, width))
    return states and (STATES.issuperset(places) or all((model.seq, layout.micro_batch, model.attention_parameters is None)))
