"""From Megatron-LM's argument dump (also Megatron-DeepSpeed's) to a model and a layout. What it does not tell stays unknown."""

from __future__ import annotations

import math
import re

from memdoctor.lazy import lazy
from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.values import PARTS, Values, flag, whole, word


def megatron_model(values: Values) -> Model | None:
    """The model of an argument dump; None where not even the hidden size stands in it."""
    hidden, layers = whole(values, "hidden_size"), whole(values, "num_layers", "encoder_num_layers", most=PARTS)
    if hidden is None:
        return None
    heads = whole(values, "num_attention_heads")
    groups = whole(values, "num_query_groups", "num_key_value_heads")
    if flag(values, "group_query_attention") is False:
        groups = heads  # the default of num_query_groups is 1, used or not
    experts = whole(values, "num_experts") or 0
    mla = flag(values, "multi_latent_attention") is True
    positions = whole(values, "max_position_embeddings") if word(values, "position_embedding_type") == "learned_absolute" else 0
    return Model(
        hidden=hidden,
        layers=layers,
        heads=heads,
        groups=groups or heads,
        head_dim=whole(values, "kv_channels") or (hidden // heads if heads else None),
        ffn=whole(values, "ffn_hidden_size"),
        gated=flag(values, "swiglu") is True or flag(values, "gated_linear_unit") is True,
        vocab=_padded_vocab(values),
        seq=whole(values, "seq_length", "encoder_seq_length"),
        positions=positions or 0,
        tied=flag(values, "untie_embeddings_and_output_weights") is not True,
        norm=1 if "rms" in word(values, "normalization").lower() else 2,
        bias=flag(values, "add_bias_linear") is True,
        experts=experts,
        moe_ffn=(whole(values, "moe_ffn_hidden_size") or whole(values, "ffn_hidden_size")) if experts else None,
        topk=whole(values, "moe_router_topk", "topk") or 2,
        shared_ffn=whole(values, "moe_shared_expert_intermediate_size") or 0,
        moe_layers=_moe_layers(word(values, "moe_layer_freq"), layers) if experts else (),
        attention_parameters=_latent_attention(values, hidden, heads) if mla and heads else None,
        mtp=whole(values, "mtp_num_layers", most=PARTS) or 0,
    )


def _padded_vocab(values: Values) -> int | None:
    padded = whole(values, "padded_vocab_size")
    size = whole(values, "vocab_size")
    if padded is not None or size is None:
        return padded
    step = (whole(values, "make_vocab_size_divisible_by") or 128) * (whole(values, "tensor_model_parallel_size") or 1)
    return math.ceil(size / step) * step


def _moe_layers(text: str, layers: int | None) -> tuple[bool, ...]:
    """``1`` (every layer), ``2`` (every second), or a list such as ``[0, 1, 1]``."""
    if text.startswith("["):
        return tuple(number == "1" for number in re.findall(r"\d+", text))
    every = int(text) if text.isdecimal() and text != "0" else 1
    return tuple(layer % every == 0 for layer in range(layers or 0))


def _latent_attention(values: Values, hidden: int, heads: int) -> int | None:
    """Weights of one multi-head latent attention, as Megatron-LM counts them."""
    rank, head = whole(values, "kv_lora_rank"), whole(values, "qk_head_dim")
    rope, value = whole(values, "qk_pos_emb_head_dim"), whole(values, "v_head_dim")
    if rank is None or head is None or rope is None or value is None:
        return None
    norm = 1 if "rms" in word(values, "normalization").lower() else 2
    query_rank = whole(values, "q_lora_rank")
    query = heads * (head + rope)
    first = hidden * query if query_rank is None else query_rank * (hidden + query + norm)
    return first + rank * (hidden + heads * (head + value) + norm) + hidden * rope + heads * value * hidden


def megatron_layout(values: Values) -> Layout:
    """The layout of an argument dump."""
    tp = whole(values, "tensor_model_parallel_size", "model_parallel_size", most=PARTS) or 1
    pp = whole(values, "pipeline_model_parallel_size", most=PARTS) or 1
    cp = whole(values, "context_parallel_size") or 1
    world = whole(values, "world_size")
    dp = whole(values, "data_parallel_size") or (max(1, world // (tp * pp * cp)) if world else 1)
    micro, whole_batch = whole(values, "micro_batch_size"), whole(values, "global_batch_size")
    fp32 = flag(values, "accumulate_allreduce_grads_in_fp32")
    dtype = megatron_dtype(values)
    backend = word(values, "attention_backend").rpartition(".")[2]
    layers = whole(values, "num_layers", most=PARTS)
    return Layout(
        tp=tp,
        pp=pp,
        vpp=_virtual(values, layers, pp),
        dp=dp,
        cp=cp,
        ep=whole(values, "expert_model_parallel_size") or 1,
        etp=whole(values, "expert_tensor_parallel_size") or tp,
        sequence_parallel=flag(values, "sequence_parallel") is True and tp > 1,
        micro_batch=micro,
        microbatches=whole_batch // (micro * dp) if micro and whole_batch and whole_batch % (micro * dp) == 0 else None,
        dtype=dtype,
        grad_dtype="fp32" if dtype != "fp16" or fp32 else "fp16",
        distributed_optimizer=flag(values, "use_distributed_optimizer") is True,
        recompute=word(values, "recompute_granularity"),
        fused_attention=_fused(values, backend, cp),
        fused_loss=flag(values, "cross_entropy_loss_fusion") is True,
        fp32_residual=flag(values, "fp32_residual_connection") is True,
        capacity_factor=_number(word(values, "moe_expert_capacity_factor")),
        layers_of=_layers_of(values, layers, pp),
    )


def megatron_dtype(values: Values) -> str:
    text = word(values, "params_dtype").rpartition(".")[2]
    known = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
    if text in known:
        return known[text]
    return "bf16" if flag(values, "bf16") else "fp16" if flag(values, "fp16") else "bf16"


def _fused(values: Values, backend: str, cp: int) -> bool | None:
    if cp > 1 or backend in ("flash", "fused"):
        return True
    if backend in ("unfused", "local") or word(values, "transformer_impl") == "local":
        return flag(values, "use_flash_attn") is True if not backend else False
    return None


def _virtual(values: Values, layers: int | None, pp: int) -> int:
    size = whole(values, "virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank", most=PARTS)
    if size is not None:
        return size
    each = whole(values, "num_layers_per_virtual_pipeline_stage")
    return layers // pp // each if each and layers and pp > 1 and layers % (pp * each) == 0 else 1


def _layers_of(values: Values, layers: int | None, pp: int) -> tuple[int, ...]:
    """Layers per chunk where the arguments ask for an uneven split."""
    layout = word(values, "pipeline_model_parallel_layout")
    if layout:
        return layout_layers(layout)
    first, last = whole(values, "decoder_first_pipeline_num_layers"), whole(values, "decoder_last_pipeline_num_layers")
    if layers is None or pp < 2:
        return ()
    embedding = flag(values, "account_for_embedding_in_pipeline_split") is True
    loss = flag(values, "account_for_loss_in_pipeline_split") is True
    if (embedding or loss) and (layers + embedding + loss) % pp == 0:
        each = (layers + embedding + loss) // pp
        sizes = [each] * pp
        sizes[0] -= embedding
        sizes[-1] -= loss
        return tuple(sizes)
    if first is None and last is None:
        return ()
    middle = pp - (first is not None) - (last is not None)
    rest = layers - (first or 0) - (last or 0)
    if middle <= 0 or rest < 0 or rest % middle:
        return ()
    each = rest // middle
    return (*((first,) if first is not None else ()), *([each] * middle), *((last,) if last is not None else ()))


_GROUP = lazy(r"\(([^()]*)\)(?:\*(\d+))?")
_TIMES = lazy(r"([A-Za-z|])\*(\d+)")


def layout_layers(text: str) -> tuple[int, ...]:
    """Decoder layers of each chunk of a ``--pipeline-model-parallel-layout`` text: ``Et*3|(tt|)*29,m|L`` → 3, 2, …, 2, 0, 0."""
    text = re.sub(r"[\s,]", "", text.strip().strip("\"'"))[:4000]

    def repeat(match: re.Match[str]) -> str:
        return match[1] * min(int(match[2] or 1), 1000)

    text = _GROUP.sub(repeat, text)[:100_000]
    text = _TIMES.sub(repeat, text)[:100_000]
    return tuple(part.lower().count("t") for part in text.split("|"))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
