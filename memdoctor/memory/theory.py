"""What the frameworks themselves say a job needs: the numbers they print, with what those leave out.

Sources: Megatron-LM ``theoretical_memory_usage.py`` (core 0.18 - 0.20); DeepSpeed's ``estimate_zero2/zero3_model_states_mem_needs``;
Korthikanti et al. 2022 (arXiv 2205.05198) table 2; Rajbhandari et al. 2020 (ZeRO) section 3. All results are bytes.
"""

from __future__ import annotations

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model

BYTES = 18  # of a parameter: 2 weight, 4 gradient, 4 main copy, 4 + 4 moments
SHARED = 12  # of those, what a distributed optimizer spreads over the data-parallel ranks


def megatron_states(model: Model, layout: Layout) -> float | None:
    """Weights, gradients and optimizer of the fullest stage, as Megatron-LM estimates them: no biases, no learned positions."""
    if model.layers is None or model.vocab is None or model.heads is None or model.head_dim is None:
        return None
    hidden, groups = model.hidden, model.groups or model.heads
    gate = 3 if model.gated else 2
    moe_layers = sum(model.is_moe(layer) for layer in range(model.layers))
    mtp_moe = model.mtp if model.is_moe(model.layers - 1) else 0
    attention = model.attention_parameters or 2 * hidden * (model.heads + groups) * model.head_dim
    dense_mlp = gate * hidden * (model.ffn or 0)
    router = hidden * model.experts + (model.experts if model.bias else 0) if model.experts else 0
    norms = 2 * hidden * model.norm

    def split(dense: int, moe: int) -> float:
        return (attention + dense_mlp) * dense + (attention + gate * hidden * model.shared_ffn) * moe

    def replicated(dense: int, moe: int) -> float:
        return norms * dense + (norms + router) * moe

    experts = gate * hidden * (model.moe_ffn or 0) * model.experts
    table = hidden * model.vocab
    dense = model.layers - moe_layers
    shared = (split(dense, moe_layers) / layout.pp + split(model.mtp - mtp_moe, mtp_moe) + table) / layout.tp
    shared += (replicated(dense, moe_layers) + model.norm * hidden) / layout.pp + replicated(model.mtp - mtp_moe, mtp_moe)
    if not model.tied and layout.pp == 1:
        shared += table / layout.tp
    expert = (experts * moe_layers / layout.pp + experts * mtp_moe) / (layout.etp * layout.ep)
    return shared * _per_parameter(layout, layout.dp) + expert * _per_parameter(layout, layout.expert_dp)


def _per_parameter(layout: Layout, dp: int) -> float:
    return BYTES - SHARED + SHARED / dp if layout.distributed_optimizer else BYTES


def megatron_activations(model: Model, layout: Layout) -> float | None:
    """Activations of the first stage, as Megatron-LM estimates them (by its two formulas, chosen as it chooses)."""
    if model.layers is None or model.vocab is None or model.seq is None or layout.micro_batch is None or model.ffn is None:
        return None
    tokens = model.seq * layout.micro_batch
    precise = layout.sequence_parallel and layout.recompute == "selective"
    layer = tokens * model.hidden * (18 + 4 * model.ffn / model.hidden if precise else 10 + 24 / layout.tp)
    total = layer * model.layers + tokens * layout.pp * (8 + model.hidden)
    if layout.vpp > 1:
        total *= 1 + (layout.pp - 1) / (layout.pp * layout.vpp)
    elif layout.pp > 1 and layout.microbatches is not None:
        total *= min(1, layout.microbatches / layout.pp)
    if precise:
        if layout.pp == 1:
            total += 4 * tokens * model.hidden * (1 + model.vocab / model.hidden)
        return total / layout.tp
    if layout.pp == 1:
        total += 2 * tokens * (model.vocab / layout.tp + model.hidden)
    return total * 1.05


def layer_activations(model: Model, layout: Layout) -> float | None:
    """What one layer keeps of one micro-batch on one GPU until its backward pass (Korthikanti et al., table 2)."""
    if model.seq is None or layout.micro_batch is None or model.ffn is None:
        return None
    tokens, tp = model.seq // layout.cp * layout.micro_batch, layout.tp
    if layout.recompute == "full":
        return 2 * tokens * model.hidden / (tp if layout.sequence_parallel else 1)
    outside, inside = 10.0, 8 + 4 * (model.fc1 or 0) / model.hidden
    scores = 0.0
    if model.heads and layout.fused_attention is False and layout.recompute != "selective":
        scores = 5 * model.heads * model.seq / model.hidden
    return tokens * model.hidden * (outside / (tp if layout.sequence_parallel else 1) + (inside + scores) / tp)


def zero2(parameters: int, gpus: int, *, offload: bool) -> float:
    """Device bytes of ZeRO-2 as DeepSpeed estimates them; ``gpus`` in all."""
    return 2 * parameters if offload else 2 * parameters + 18 * parameters / gpus


def zero3(parameters: int, largest_layer: int, gpus: int, *, offload_optimizer: bool, offload_parameters: bool) -> float:
    """Device bytes of ZeRO-3 as DeepSpeed estimates them; ``largest_layer`` are the parameters of the largest module."""
    shared = 0 if offload_optimizer and offload_parameters else 2 if offload_optimizer else 18
    return 4 * largest_layer + shared * parameters / gpus


def zero_paper(parameters: float, gpus: int, stage: int, optimizer_bytes: int = 12) -> float:
    """Bytes of model states a GPU holds at a ZeRO stage (0 to 3), by the ZeRO paper."""
    weights, gradients = 2 / (gpus if stage >= 3 else 1), 2 / (gpus if stage >= 2 else 1)
    return parameters * (weights + gradients + optimizer_bytes / (gpus if stage >= 1 else 1))
