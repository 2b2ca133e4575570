"""What DeepSpeed's ZeRO makes of the parameters: flat buffers, one rank's shares, buckets.

Sources: deepspeed/runtime/zero/stage_1_and_2.py and stage3.py (0.9 - 0.19).
"""

from __future__ import annotations

from collections.abc import Iterator

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.parameters import stage_parameters
from memdoctor.memory.tensor import Tensor


def zero(model: Model | None, layout: Layout) -> Iterator[Tensor]:
    if layout.zero == 0:
        return
    item = layout.item
    yield Tensor(
        "reduce_bucket", "ZeRO's bucket for reducing gradients (reduce_bucket_size)", (layout.reduce_bucket,), item, "communication"
    )
    if layout.zero < 3 and layout.allgather_bucket != layout.reduce_bucket:
        yield Tensor(
            "allgather_bucket",
            "ZeRO's bucket for gathering weights (allgather_bucket_size)",
            (layout.allgather_bucket,),
            item,
            "communication",
        )
    for count in _counts(model, layout):
        share = -(-count // layout.dp)
        divided = f" (÷ {layout.dp} ranks)"
        if layout.zero < 3:
            yield Tensor("flat_weights", "ZeRO's flat buffer of all 16-bit weights", (count,), item, "gradients")
            if not layout.offload_optimizer:
                yield Tensor("optimizer_shard", f"ZeRO's fp32 share of weights, gradients or a moment{divided}", (share,), 4, "optimizer")
            if layout.zero == 2:
                yield Tensor("grad_shard", f"ZeRO's 16-bit share of the gradients{divided}", (share,), item, "gradients")
            continue
        yield Tensor("weight_shard", f"ZeRO's 16-bit share of weights or gradients{divided}", (share,), item, "gradients")
        if not layout.offload_optimizer:
            group = min(share, layout.sub_group)
            yield Tensor("optimizer_shard", "the fp32 weights, gradients or a moment of a ZeRO-3 sub-group", (group,), 4, "optimizer")
            if share > layout.sub_group and share % layout.sub_group:
                yield Tensor("optimizer_shard", "the fp32 values of the last ZeRO-3 sub-group", (share % layout.sub_group,), 4, "optimizer")


def _counts(model: Model | None, layout: Layout) -> list[int]:
    """Parameters of the whole model (of one stage with pipeline parallelism) that ZeRO shares out."""
    if layout.parameters:
        return sorted(set(layout.parameters))
    if model is None:
        return []
    found = {each.all for stage in {0, layout.pp - 1} if (each := stage_parameters(model, layout, stage)) is not None}
    return sorted(found)
