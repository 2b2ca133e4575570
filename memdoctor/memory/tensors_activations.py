"""Tensors of one micro-batch's forward pass; their gradients in the backward pass have the same sizes."""

from __future__ import annotations

from collections.abc import Iterator

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.tensor import Tensor


def activations(model: Model, layout: Layout) -> Iterator[Tensor]:
    if model.seq is None or layout.micro_batch is None:
        return
    seq, batch, tp, item = model.seq // layout.cp, layout.micro_batch, layout.tp, layout.item
    yield from _logits(model, layout, seq, batch)
    yield from _attention(model, layout, seq, batch)
    if layout.sequence_parallel and tp > 1:
        yield Tensor("hidden", "the hidden states (sequence ÷ TP)", (seq // tp, batch, model.hidden), item, "layer")
        yield Tensor(
            "hidden_gathered", "the hidden states, gathered from the tensor-parallel ranks", (seq, batch, model.hidden), item, "layer"
        )
    else:
        yield Tensor("hidden", "the hidden states", (seq, batch, model.hidden), item, "layer")
    if (layout.fp32_residual or layout.framework == "transformers") and item < 4:
        rows = seq // tp if layout.sequence_parallel else seq
        yield Tensor("hidden_fp32", "the hidden states in fp32", (rows, batch, model.hidden), 4, "layer")
    split = f" (÷ TP {tp})" if tp > 1 else ""
    if model.ffn and model.has_dense:
        if model.gated and layout.framework != "transformers":
            yield Tensor(
                "mlp_both", f"the output of the MLP's first product, both halves{split}", (seq, batch, 2 * model.ffn // tp), item, "layer"
            )
        yield Tensor("mlp", f"the inner activation of the MLP{split}", (seq, batch, model.ffn // tp), item, "layer")


def _logits(model: Model, layout: Layout, seq: int, batch: int) -> Iterator[Tensor]:
    if model.vocab is None:
        return
    tp = layout.tp
    split = f" (vocabulary ÷ TP {tp})" if tp > 1 else ""
    if layout.item < 4:
        yield Tensor("logits", f"the logits{split}", (seq, batch, model.vocab // tp), layout.item, "output_layer")
    yield Tensor("logits_fp32", f"the logits in fp32{split}", (seq, batch, model.vocab // tp), 4, "output_layer")
    if layout.framework == "transformers":  # Hugging Face's loss shifts them by one token
        yield Tensor("logits_fp32", "the logits in fp32, shifted by one token", (batch, seq - 1, model.vocab // tp), 4, "output_layer")


def _attention(model: Model, layout: Layout, seq: int, batch: int) -> Iterator[Tensor]:
    if not model.heads or not model.qkv or not model.query:
        return
    tp, item = layout.tp, layout.item
    split = f" (÷ TP {tp})" if tp > 1 else ""
    if layout.framework != "transformers":
        yield Tensor("qkv", f"the queries, keys and values{split}", (seq, batch, model.qkv // tp), item, "attention")
    if model.query != model.hidden:
        yield Tensor("query", f"the queries or output of the attention{split}", (seq, batch, model.query // tp), item, "attention")
    if layout.fused_attention is not True:
        scores = (batch, model.heads // tp, seq, seq)
        if item < 4:
            yield Tensor("attention_scores", f"the attention scores, sequence by sequence{split}", scores, item, "attention")
        yield Tensor("attention_scores_fp32", f"the attention scores in fp32, sequence by sequence{split}", scores, 4, "attention")
    groups = (model.groups or model.heads) // tp or 1
    yield Tensor("kv_cache", "the keys or values of one layer's cache", (seq, batch, groups, model.head_dim or 0), item, "generation")
