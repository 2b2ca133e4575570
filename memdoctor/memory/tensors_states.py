"""Weights, their fp32 copies (main copy, gradient, either moment: all alike) and Megatron-LM's buffers of a whole stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memdoctor.memory.layout import ITEM, Layout
from memdoctor.memory.model import Model
from memdoctor.memory.parameters import stage_parameters
from memdoctor.memory.tensor import Tensor

COPY = "the fp32 copy, gradient or moment of "


def states(model: Model, layout: Layout) -> Iterator[Tensor]:
    for name, what, shape in _weights(model, layout):
        yield Tensor(name, what, shape, layout.item, "weights")
        if layout.item < 4 and layout.zero == 0:
            yield Tensor(f"{name}_fp32", COPY + what, shape, 4, "optimizer")
    if layout.framework == "megatron-lm" and layout.zero == 0:
        yield from _buffers(model, layout)


def _weights(model: Model, layout: Layout) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    tp, hidden = layout.tp, model.hidden
    split = f" (÷ TP {tp})" if tp > 1 else ""
    if model.vocab:
        yield "embedding_weight", f"the embedding or output weight{split}", (model.vocab // tp, hidden)
    if model.qkv and model.query and layout.framework != "transformers":
        yield "qkv_weight", f"the weight of queries, keys and values{split}", (model.qkv // tp, hidden)
    if model.query:
        yield "projection_weight", f"the weight of the attention's output{split}", (hidden, model.query // tp)
    if model.ffn and model.has_dense:
        if model.gated and layout.framework != "transformers":
            yield "fc1_weight", f"the first weight of the MLP, both halves{split}", (2 * model.ffn // tp, hidden)
        yield "fc2_weight", f"a weight of the MLP{split}", (hidden, model.ffn // tp)


def _buffers(model: Model, layout: Layout) -> Iterator[Tensor]:
    """Contiguous buffers of all gradients, and of all parameters with the distributed optimizer; one of each for experts."""
    for count, dp in _counts(model, layout):
        yield Tensor(
            "grad_buffer",
            f"the gradients of all parameters on this GPU, in {layout.grad_dtype}",
            (count,),
            ITEM[layout.grad_dtype],
            "gradients",
        )
        if layout.distributed_optimizer:
            yield Tensor("param_buffer", "all parameters on this GPU", (count,), layout.item, "gradients")
            if dp > 1:
                yield Tensor(
                    "optimizer_shard", f"the fp32 copy or a moment of this rank's share (÷ DP {dp})", (count // dp,), 4, "optimizer"
                )


def _counts(model: Model, layout: Layout) -> Iterator[tuple[int, int]]:
    """(parameters in one buffer, ranks that share its optimizer) of each different pipeline chunk; a virtual stage has its own buffers."""
    dp = layout.dp * layout.cp
    if layout.parameters and not model.experts and layout.vpp == 1:
        yield from ((count, dp) for count in sorted(set(layout.parameters)))
        return
    chunks = replace(layout, pp=layout.pp * layout.vpp, vpp=1)
    for stage in sorted({0, min(1, chunks.pp - 1), chunks.pp - 1}):
        parameters = stage_parameters(model, chunks, stage)
        if parameters is None:
            return
        if layout.ep == 1:  # experts that all ranks hold share the buffer of the others
            yield parameters.all, dp
        else:
            yield parameters.dense, dp
            yield parameters.expert, layout.expert_dp
