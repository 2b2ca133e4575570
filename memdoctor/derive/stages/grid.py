"""Which pipeline stage and which replica a global rank belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from memdoctor.derive.shapes import Shapes
from memdoctor.memory.values import PARTS, flag
from memdoctor.model import Fact
from memdoctor.records import record


@record
class Grid:
    """Sizes of the job, and what lines say of single ranks (``told``: rank → stage).

    Ranks count up within a tensor-parallel group first, then over context- and data-parallel replicas, then over stages (the order
    tp-cp-ep-dp-pp of Megatron-LM, and pipe-data-model of DeepSpeed); ``stages_first``: over stages before replicas (--use-tp-pp-dp-mapping).
    """

    tp: int
    pp: int
    replicas: int  # data-parallel × context-parallel: how many ranks do the work of one
    stages_first: bool = False
    told: Mapping[int, int] = field(default_factory=dict)

    @property
    def world(self) -> int:
        return self.tp * self.pp * self.replicas

    def stage(self, rank: int) -> int:
        if rank in self.told:
            return self.told[rank]
        if self.stages_first:
            return rank // self.tp % self.pp
        return min(rank // (self.tp * self.replicas), self.pp - 1)

    def replica(self, rank: int) -> int:
        if self.stages_first:
            return rank // (self.tp * self.pp)
        return rank // self.tp % self.replicas

    def group(self, rank: int) -> tuple[int, ...]:
        """The tensor-parallel group of ``rank``: ranks that wait for each other in every layer, and so share their times."""
        first = rank - rank % self.tp
        return tuple(range(first, first + self.tp))


def grid_of(facts: Sequence[Fact], shapes: Shapes | None) -> Grid | None:
    """From the facts of one attempt; None where nothing tells the number of stages."""
    told = {
        fact.rank: int(fact.fields["stage"])
        for fact in facts
        if fact.kind == "rank.parameters" and fact.rank is not None and "stage" in fact.fields
    }
    if any(stage >= PARTS for stage in told.values()):
        return None
    if shapes is None or (shapes.layout.framework != "megatron-lm" and shapes.layout.pp == 1):
        if not told:
            return None
        replicas = shapes.layout.dp if shapes is not None else 1
        return Grid(1, max(told.values()) + 1, replicas, told=told)
    layout = shapes.layout
    return Grid(layout.tp, layout.pp, layout.dp * layout.cp, flag(shapes.values, "use_tp_pp_dp_mapping") is True, told)
