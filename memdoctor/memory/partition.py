"""The best way to deal layers to pipeline stages: the greatest cost of a stage as low as can be, then the others alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import groupby

Evaluate = Callable[[tuple[int, ...]], list[float]]  # sizes of the chunks → cost of each stage

EXACT = 100_000  # steps that the exact search may take (96 layers on 10 stages): a few tenths of a second
LAYERS, CHUNKS = 200, 128  # beyond them nothing is searched
MOVES = 40
NEAR = 1.005  # a split that two plain arguments can say is preferred where it is as good but for this


def best_split(layers: int, pp: int, vpp: int, evaluate: Evaluate, start: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes of ``pp × vpp`` chunks. Exact without virtual stages, else the best that moving single layers from ``start`` finds.

    Every chunk keeps a layer, but for the last: it may hold the output layer alone.
    """
    if layers > LAYERS or len(start) > CHUNKS:
        return start
    found = _exact(layers, pp, evaluate) if vpp == 1 and layers * layers * pp <= EXACT else None
    if found is None:
        found = _move(start, pp, evaluate)
    plain = _plain(layers, pp, evaluate) if vpp == 1 else None
    return plain if plain is not None and max(evaluate(plain)) <= NEAR * max(evaluate(found)) else found


def _plain(layers: int, pp: int, evaluate: Evaluate) -> tuple[int, ...] | None:
    """The best split whose middle stages are alike: what --decoder-first/last-pipeline-num-layers can ask for."""
    middle = pp - 2
    candidates = [
        (first, *([(layers - first - last) // middle] * middle), last)
        for first in range(1, layers)
        for last in range(1, layers - first)
        if middle and (layers - first - last) % middle == 0 and layers - first - last >= middle
    ]
    return min(candidates, key=lambda sizes: _value(evaluate(sizes)), default=None)


def _value(stages: list[float]) -> tuple[float, float]:
    return max(stages), sum(cost * cost for cost in stages)


def _exact(layers: int, pp: int, evaluate: Evaluate) -> tuple[int, ...] | None:
    @cache
    def cost(stage: int, first: int, end: int) -> float:
        before = [0] * stage
        if stage:
            before[0] = first  # whatever lies before: only this stage's cost is looked at
        after = [0] * (pp - stage - 1)
        if after:
            after[-1] = layers - end
        return evaluate((*before, end - first, *after))[stage]

    def search(limit: float) -> tuple[float, tuple[int, ...]] | None:
        """Least sum of squares (or, without a limit, least maximum) of the stages, with the split that has it."""
        best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
        for stage in range(pp):
            fresh: dict[int, tuple[float, tuple[int, ...]]] = {}
            last = stage == pp - 1
            for first, (value, sizes) in best.items():
                for end in (layers,) if last else range(first + 1, layers - (pp - stage - 2) + 1):
                    own = cost(stage, first, end)
                    if own > limit:
                        continue
                    total = value + own * own if limit < math.inf else max(value, own)
                    if end not in fresh or total < fresh[end][0]:
                        fresh[end] = (total, (*sizes, end - first))
            best = fresh
        return best.get(layers)

    lowest = search(math.inf)
    if lowest is None:
        return None
    even = search(lowest[0] * (1 + 1e-9))
    return even[1] if even is not None else lowest[1]


def _move(start: tuple[int, ...], pp: int, evaluate: Evaluate) -> tuple[int, ...]:
    """Move one layer at a time off the costliest stage as long as that helps."""
    sizes, stages = start, evaluate(start)
    for _ in range(MOVES):
        known = best = _value(stages)
        chosen: tuple[int, ...] | None = None
        for source in range(stages.index(max(stages)), len(sizes), pp):
            if sizes[source] == 0 or (sizes[source] == 1 and source < len(sizes) - 1):
                continue
            for target in range(len(sizes)):
                if target % pp != source % pp:
                    moved = list(sizes)
                    moved[source] -= 1
                    moved[target] += 1
                    found = _value(evaluate(tuple(moved)))
                    if found < best:
                        best, chosen = found, tuple(moved)
        if chosen is None or best >= known:
            return sizes
        sizes, stages = chosen, evaluate(chosen)
    return sizes


def split_flags(sizes: tuple[int, ...], pp: int) -> str:
    """Megatron-LM's arguments for a split: two plain ones where they can say it, else a layout text."""
    if len(sizes) == pp and pp >= 2 and 0 not in sizes:
        middle = set(sizes[1:-1])
        if len(middle) <= 1:
            return f"--decoder-first-pipeline-num-layers {sizes[0]} --decoder-last-pipeline-num-layers {sizes[-1]}"
    return f'--pipeline-model-parallel-layout "{layout_text(sizes)}"'


def layout_text(sizes: tuple[int, ...]) -> str:
    """``(5, 7, 7, 5)`` → ``Et*5|t*7|t*7|t*5L``; three or more equal chunks in a row are written once: ``Et*5|(t*7|)*6t*5L``."""
    text = "E" + _layers(sizes[0]) + "|"
    for size, run in groupby(sizes[1:-1]):
        count = len(list(run))
        text += f"({_layers(size)}|)*{count}" if count > 2 and size else f"{_layers(size)}|" * count
    return f"{text}{_layers(sizes[-1])}L"


def _layers(size: int) -> str:
    return f"t*{size}" if size > 1 else "t" * size
