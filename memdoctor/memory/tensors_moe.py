"""Tensors of a mixture of experts: what the all-to-all moves, and what the experts make of it.

How many tokens an expert really gets depends on the router. Exact are the tokens that are sent (every token ``topk`` times), and all
of it where a capacity factor pads the experts to one size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.tensor import Tensor


def moe(model: Model, layout: Layout) -> Iterator[Tensor]:
    if not model.experts:
        return
    item, etp = layout.item, layout.etp
    own = max(1, model.experts // layout.ep)
    if model.moe_ffn and model.expert_fc1:
        split = f" ÷ ETP {etp}" if etp > 1 else ""
        if own > 1:  # grouped product: the weights of all experts of a GPU are one tensor
            grouped = f"of the {own} experts of a GPU{split}"
            yield Tensor("expert_weights", f"the first weights {grouped}", (own, model.hidden, model.expert_fc1 // etp), item, "weights")
            yield Tensor("expert_weights", f"the second weights {grouped}", (own, model.moe_ffn // etp, model.hidden), item, "weights")
        yield Tensor("expert_weight", f"the first weight of one expert{split}", (model.hidden, model.expert_fc1 // etp), item, "weights")
    if model.seq is None or layout.micro_batch is None:
        return
    tokens = model.seq // layout.cp * layout.micro_batch // (layout.tp if layout.sequence_parallel else 1)
    sent = tokens * model.topk
    yield Tensor("dispatched", f"the tokens sent to the experts, {model.topk} copies of each", (sent, model.hidden), item, "moe")
    if layout.capacity_factor is None:
        if model.expert_fc1:
            split = f" ÷ ETP {etp}" if etp > 1 else ""
            yield Tensor(
                "expert_mlp",
                f"the inner activation of the experts at equal load{split}",
                (sent * etp, model.expert_fc1 // etp),
                item,
                "moe",
            )
        return
    capacity = math.ceil(sent / model.experts * layout.capacity_factor)
    yield Tensor("dispatched", "the tokens of all experts, padded to their capacity", (model.experts, capacity, model.hidden), item, "moe")
    if layout.framework == "deepspeed":
        yield Tensor("dispatch_mask", "which token goes where: tokens × experts × capacity", (tokens, model.experts, capacity), item, "moe")
