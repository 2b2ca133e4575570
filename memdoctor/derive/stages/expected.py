"""What the arguments let one expect of the stages: their layers, and what each should cost in time."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.derive.shapes import Shapes
from memdoctor.derive.stages.grid import Grid
from memdoctor.memory.cost import Costs, stage_costs, time_costs
from memdoctor.memory.split import chunk_sizes
from memdoctor.model import Fact
from memdoctor.records import record


@record
class Expected:
    """``sizes`` layers of each chunk, ``layers`` of each stage; ``costs`` of the parts of the model, None where its sizes are unknown."""

    sizes: tuple[int, ...]
    layers: tuple[int, ...]
    vpp: int
    costs: Costs | None

    def stages(self) -> list[float] | None:
        """Relative time of each stage."""
        return None if self.costs is None else stage_costs(self.costs, self.sizes, len(self.layers))


def expected_of(facts: Sequence[Fact], shapes: Shapes | None, grid: Grid) -> Expected | None:
    """None where nothing tells how many layers a stage holds."""
    told = {fact.fields["stage"]: fact.fields["layers"] for fact in facts if fact.kind == "rank.parameters" and "layers" in fact.fields}
    if len(told) == grid.pp:
        sizes = tuple(told[stage] for stage in range(grid.pp))
        return Expected(sizes, sizes, 1, None)
    if shapes is None or shapes.model is None or shapes.model.layers is None:
        return None
    sizes = chunk_sizes(shapes.model.layers, shapes.layout)
    layers = tuple(sum(sizes[stage :: grid.pp]) for stage in range(grid.pp))
    return Expected(sizes, layers, shapes.layout.vpp, time_costs(shapes.model, shapes.layout))
