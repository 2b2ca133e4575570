"""Which layers a pipeline stage holds."""

from __future__ import annotations

from memdoctor.memory.layout import Layout


def chunk_sizes(layers: int, layout: Layout) -> tuple[int, ...]:
    """Layers of each pipeline chunk in the order of the model: ``pp × vpp`` numbers that add up to ``layers``.

    Where the layout does not say, the split is even; what cannot be split evenly goes to the first chunks, one each.
    """
    chunks = layout.pp * layout.vpp
    if len(layout.layers_of) == chunks and sum(layout.layers_of) == layers:
        return layout.layers_of
    each, over = divmod(layers, chunks)
    return tuple(each + (number < over) for number in range(chunks))


def stage_of_chunk(chunk: int, pp: int) -> int:
    """Chunks go round the stages: with two virtual stages on four GPUs, stage 1 holds chunks 1 and 5."""
    return chunk % pp


def layers_on(stage: int, layers: int, layout: Layout) -> list[int]:
    """The numbers (0-based) of the layers that ``stage`` holds."""
    held: list[int] = []
    first = 0
    for chunk, size in enumerate(chunk_sizes(layers, layout)):
        if stage_of_chunk(chunk, layout.pp) == stage:
            held.extend(range(first, first + size))
        first += size
    return held
