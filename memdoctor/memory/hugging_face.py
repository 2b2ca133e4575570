"""From a Hugging Face ``config.json``, as transformers prints it, to a model."""

from __future__ import annotations

from memdoctor.memory.model import Model
from memdoctor.memory.values import PARTS, Values, flag, whole, word


def hugging_face_model(values: Values, seq: int | None = None) -> Model | None:
    """The model of a ``config.json``; None where no hidden size stands in it. ``seq``: from elsewhere, a config does not tell it."""
    hidden = whole(values, "hidden_size", "n_embd", "d_model")
    if hidden is None:
        return None
    heads = whole(values, "num_attention_heads", "n_head", "num_heads")
    kind = word(values, "model_type")
    gated = word(values, "hidden_act") in ("silu", "swish", "swiglu") or kind.startswith("gemma")
    ffn = whole(values, "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
    if ffn is None and kind in ("gpt2", "bloom", "gpt_neo", "falcon"):
        ffn = 4 * hidden
    experts = whole(values, "num_local_experts", "num_experts", "n_routed_experts") or 0
    return Model(
        hidden=hidden,
        layers=whole(values, "num_hidden_layers", "n_layer", "num_layers", most=PARTS),
        heads=heads,
        groups=whole(values, "num_key_value_heads", "num_kv_heads") or heads,
        head_dim=whole(values, "head_dim") or (hidden // heads if heads else None),
        ffn=ffn,
        gated=gated,
        vocab=whole(values, "vocab_size"),
        seq=seq,
        positions=(whole(values, "n_positions") or 0) if kind == "gpt2" else 0,
        tied=flag(values, "tie_word_embeddings") is True or kind in ("gpt2", "bloom"),
        norm=1 if "rms_norm_eps" in values else 2,
        bias=kind in ("gpt2", "bloom", "gpt_neox", "opt"),
        experts=experts,
        moe_ffn=(whole(values, "moe_intermediate_size") or ffn) if experts else None,
        topk=whole(values, "num_experts_per_tok") or 2,
    )
