"""From DeepSpeed's configuration, as its engine prints it, to a layout."""

from __future__ import annotations

from dataclasses import replace

from memdoctor.lazy import lazy
from memdoctor.memory.layout import Layout
from memdoctor.memory.values import Values, flag, whole, word

_ZERO_PAIR = lazy(r"(\w+)=([^\s,)]+)")


def deepspeed_values(dump: Values, printed_json: Values) -> dict[str, str]:
    """One flat table out of the engine's dump (whose ``zero_config`` is one text) and the configuration as the user wrote it."""
    values = {key: str(value) for key, value in printed_json.items()}
    for key, value in dump.items():
        values[key] = str(value)
        if key == "zero_config":
            values.update(dict(_ZERO_PAIR.findall(str(value))))
    return values


def deepspeed_layout(values: Values, base: Layout | None = None) -> Layout:
    """The layout that DeepSpeed adds to ``base`` (what Megatron's arguments told, or nothing)."""
    base = base or Layout(framework="transformers")
    zero = whole(values, "zero_optimization_stage", "stage")
    micro = whole(values, "train_micro_batch_size_per_gpu")
    bf16 = flag(values, "bfloat16_enabled") or "enabled=True" in word(values, "bfloat16_config")
    fp16 = flag(values, "fp16_enabled") or "enabled=True" in word(values, "float16_config")
    offload = word(values, "offload_optimizer")
    return replace(
        base,
        framework="deepspeed" if base.framework == "megatron-lm" else base.framework,
        dp=whole(values, "world_size") or base.dp,
        micro_batch=micro or base.micro_batch,
        microbatches=whole(values, "gradient_accumulation_steps") or base.microbatches,
        dtype="bf16" if bf16 else "fp16" if fp16 else base.dtype,
        zero=min(zero, 3) if zero is not None else base.zero,
        offload_optimizer="cpu" in offload or "nvme" in offload,
        reduce_bucket=whole(values, "reduce_bucket_size") or base.reduce_bucket,
        allgather_bucket=whole(values, "allgather_bucket_size") or base.allgather_bucket,
        sub_group=whole(values, "sub_group_size") or base.sub_group,
    )
