"""Memory of the stages of a 1F1B pipeline: states that follow the parameters, activations that follow the micro-batches in flight."""

from __future__ import annotations

from dataclasses import replace

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.parameters import stage_parameters
from memdoctor.memory.split import chunk_sizes
from memdoctor.memory.theory import layer_activations
from memdoctor.records import record


def in_flight(stage: int, layout: Layout) -> int:
    """Forward passes of one chunk that ``stage`` holds at the peak: p - k of the 1F1B schedule, more where it is interleaved."""
    most = (layout.microbatches or 10**6) * layout.vpp
    if layout.vpp == 1:
        return min(most, layout.pp - stage)
    return min(most, 2 * (layout.pp - stage - 1) + (layout.vpp - 1) * layout.pp + 1)


def state_bytes(layout: Layout) -> float:
    """Bytes that a parameter costs on one GPU: weight, gradient, main copy, two moments."""
    gradient = 4 if layout.grad_dtype == "fp32" else 2
    if layout.item == 4:
        return 16.0
    shared = layout.dp * layout.cp if layout.distributed_optimizer or layout.zero else 1
    if layout.zero >= 2:
        gradient = 2
    return 2 + gradient + 12 / shared


@record
class StageMemory:
    """A model of the peak of each stage: ``base`` + states + ``layer`` × layers × in flight + ``ends`` (what stage 0 and the last have besides)."""

    model: Model
    layout: Layout
    layer: float
    base: float = 0.0
    ends: tuple[float, float] = (0.0, 0.0)

    def peaks(self, sizes: tuple[int, ...]) -> list[float]:
        """Bytes of each stage where its chunks hold ``sizes`` layers."""
        layout = replace(self.layout, layers_of=sizes)
        found = []
        for stage in range(layout.pp):
            parameters = stage_parameters(self.model, layout, stage)
            states = (parameters.all if parameters else 0) * state_bytes(layout)
            found.append(self.base + states + self.layer * activation_units(stage, sizes, layout))
        found[0] += self.ends[0]
        found[-1] += self.ends[1]
        return found


def activation_units(stage: int, sizes: tuple[int, ...], layout: Layout) -> float:
    """Activations that a stage holds at its peak, in layers of one micro-batch."""
    held = sum(sizes[stage :: layout.pp])
    return held / layout.vpp * in_flight(stage, layout)


def fit(model: Model, layout: Layout, peaks: list[float]) -> StageMemory | None:
    """The model that comes nearest to measured ``peaks`` (bytes, one a stage); None where sizes are unknown."""
    if model.layers is None or len(peaks) != layout.pp or layout.pp < 2:
        return None
    sizes = chunk_sizes(model.layers, layout)
    states = []
    for stage in range(layout.pp):
        parameters = stage_parameters(model, layout, stage)
        if parameters is None:
            return None
        states.append(parameters.all * state_bytes(layout))
    units = [activation_units(stage, sizes, layout) for stage in range(layout.pp)]
    rest = [peak - own for peak, own in zip(peaks, states, strict=True)]
    inner = list(range(1, layout.pp - 1)) if layout.pp >= 4 else list(range(layout.pp))
    layer = _slope([units[k] for k in inner], [rest[k] for k in inner])
    theory = layer_activations(model, layout)
    if layer is None or layer <= 0 or layout.pp == 2:
        layer = theory
    if layer is None:
        return None
    left = [own - layer * unit for own, unit in zip(rest, units, strict=True)]
    base = sorted(left)[(len(left) - 1) // 2]
    return StageMemory(model, layout, layer, base, (left[0] - base, left[-1] - base))


def _slope(x: list[float], y: list[float]) -> float | None:
    """Slope of the straight line through points (least squares); None where all x are equal."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    if spread == 0:
        return None
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
