"""Shapes of single tensors: what divides them, and which exist at all."""

from __future__ import annotations

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.tensor import Tensor
from memdoctor.memory.tensors import tensors

MODEL = Model(hidden=1024, layers=8, heads=16, groups=4, head_dim=64, ffn=4096, gated=True, vocab=32768, seq=2048)
MOE = Model(hidden=1024, layers=8, heads=16, head_dim=64, ffn=4096, vocab=32768, seq=2048, experts=8, moe_ffn=2048, topk=2)


def named(name: str, model: Model | None, layout: Layout) -> list[Tensor]:
    return [tensor for tensor in tensors(model, layout) if tensor.name == name]


def shape(name: str, model: Model | None, layout: Layout) -> tuple[int, ...]:
    (tensor,) = named(name, model, layout)
    return tensor.shape


def test_tensor_parallelism_divides_width_and_vocabulary() -> None:
    layout = Layout(tp=4, micro_batch=2)
    assert shape("logits_fp32", MODEL, layout) == (2048, 2, 8192)
    assert shape("mlp_both", MODEL, layout) == (2048, 2, 2048)
    assert shape("qkv", MODEL, layout) == (2048, 2, 384)
    assert shape("hidden", MODEL, layout) == (2048, 2, 1024)
    assert shape("embedding_weight", MODEL, layout) == (8192, 1024)


def test_sequence_parallelism_divides_hidden_states_that_are_gathered_again() -> None:
    layout = Layout(tp=4, micro_batch=2, sequence_parallel=True)
    assert shape("hidden", MODEL, layout) == (512, 2, 1024)
    assert shape("hidden_gathered", MODEL, layout) == (2048, 2, 1024)


def test_context_parallelism_divides_the_sequence() -> None:
    layout = Layout(cp=4, micro_batch=2, fused_attention=True)
    assert shape("logits", MODEL, layout) == (512, 2, 32768)
    assert not named("attention_scores", MODEL, layout)


def test_the_scores_are_a_square_of_the_sequence() -> None:
    layout = Layout(tp=2, micro_batch=3, fused_attention=False)
    assert shape("attention_scores", MODEL, layout) == (3, 8, 2048, 2048)
    assert not named("attention_scores", MODEL, Layout(micro_batch=3, fused_attention=True))


def test_without_micro_batch_or_sequence_only_states_are_known() -> None:
    assert {tensor.where for tensor in tensors(MODEL, Layout())} <= {"weights", "optimizer", "gradients"}


def test_fp32_weights_have_no_second_copy() -> None:
    found = {tensor.name for tensor in tensors(MODEL, Layout(micro_batch=1, dtype="fp32"))}
    assert "embedding_weight" in found
    assert "embedding_weight_fp32" not in found
    assert "logits" not in found


def test_the_gradient_buffer_holds_a_stage() -> None:
    sizes = {tensor.shape[0] for tensor in named("grad_buffer", MODEL, Layout(pp=4, micro_batch=1))}
    assert len(sizes) == 3  # with the embedding, with neither, with the output weight
    assert named("grad_buffer", MODEL, Layout(parameters=(12345,)))[0].shape == (12345,)


def test_each_virtual_stage_has_its_own_buffer() -> None:
    sizes = sorted(tensor.shape[0] for tensor in named("grad_buffer", MODEL, Layout(pp=2, vpp=4, micro_batch=1)))
    layer = sizes[0]  # a chunk of one layer
    assert all(size < 6 * layer for size in sizes)


def test_experts() -> None:
    layout = Layout(tp=2, etp=1, ep=2, dp=4, micro_batch=2, sequence_parallel=True)
    assert shape("dispatched", MOE, layout) == (2048 * 2 // 2 * 2, 1024)
    assert {tensor.shape for tensor in named("expert_weights", MOE, layout)} == {(4, 1024, 2048)}  # the second weights are as large
    assert not named("mlp", MOE, layout)
    padded = named("dispatched", MOE, Layout(ep=2, dp=4, micro_batch=1, capacity_factor=1.5))
    assert (8, 768, 1024) in {tensor.shape for tensor in padded}


def test_zero_shares_and_buckets() -> None:
    layout = Layout(framework="transformers", dp=8, zero=2, parameters=(8_000_000_000,))
    assert shape("reduce_bucket", None, layout) == (500_000_000,)
    assert shape("optimizer_shard", None, layout) == (1_000_000_000,)
    assert shape("flat_weights", None, layout) == (8_000_000_000,)
    third = Layout(framework="transformers", dp=4, zero=3, parameters=(9_200_000_000,))
    assert sorted(tensor.shape[0] for tensor in named("optimizer_shard", None, third)) == [300_000_000, 1_000_000_000]
    assert not named("optimizer_shard", None, Layout(dp=8, zero=2, parameters=(10**9,), offload_optimizer=True))


def test_no_model_and_no_zero_is_nothing() -> None:
    assert tensors(None, Layout()) == []
