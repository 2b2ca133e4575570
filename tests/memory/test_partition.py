"""The search for a split: never worse than what it starts from, and as good as trying all."""

from __future__ import annotations

import itertools
import random

import pytest

from memdoctor.memory.cost import Costs, bubble, stage_costs, step_cost, time_costs
from memdoctor.memory.layout import Layout
from memdoctor.memory.megatron import layout_layers
from memdoctor.memory.model import Model
from memdoctor.memory.partition import best_split, layout_text, split_flags


def all_splits(layers: int, pp: int) -> list[tuple[int, ...]]:
    """Every way to deal layers in which all stages but the last keep one."""
    cuts = itertools.combinations_with_replacement(range(layers + 1), pp - 1)
    found = [tuple(b - a for a, b in itertools.pairwise((0, *cut, layers))) for cut in cuts]
    return [sizes for sizes in found if all(size > 0 for size in sizes[:-1])]


@pytest.mark.parametrize("seed", range(30))
def test_as_good_as_trying_all(seed: int) -> None:
    chance = random.Random(seed)
    pp, layers = chance.choice([2, 3, 4]), chance.randrange(8, 17)
    costs = Costs(tuple(chance.choice([1.0, 1.0, 2.5]) for _ in range(layers)), chance.uniform(0, 2), chance.uniform(0, 6))

    def evaluate(sizes: tuple[int, ...]) -> list[float]:
        return stage_costs(costs, sizes, pp)

    start = tuple(layers // pp + (stage < layers % pp) for stage in range(pp))
    found = best_split(layers, pp, 1, evaluate, start)
    assert sum(found) == layers
    assert max(evaluate(found)) <= 1.005 * min(max(evaluate(sizes)) for sizes in all_splits(layers, pp)) + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_virtual_stages_never_get_worse(seed: int) -> None:
    chance = random.Random(seed)
    pp, vpp, each = chance.choice([2, 4, 8]), chance.choice([2, 4]), chance.choice([1, 2, 3])
    costs = Costs((1.0,) * (pp * vpp * each), chance.uniform(0, 1), chance.uniform(0, 5))
    start = (each,) * (pp * vpp)
    found = best_split(len(costs.layers), pp, vpp, lambda sizes: stage_costs(costs, sizes, pp), start)
    assert sum(found) == sum(start)
    assert max(stage_costs(costs, found, pp)) <= max(stage_costs(costs, start, pp))


def test_a_split_too_large_to_search_exactly_is_still_improved() -> None:
    costs = Costs((1.0,) * 128, 0.0, 4.0)
    found = best_split(128, 16, 1, lambda sizes: stage_costs(costs, sizes, 16), (8,) * 16)
    assert max(stage_costs(costs, found, 16)) <= 9


def test_two_plain_arguments_are_preferred() -> None:
    costs = Costs((1.0,) * 32, 0.0, 3.0)
    found = best_split(32, 4, 1, lambda sizes: stage_costs(costs, sizes, 4), (8,) * 4)
    assert split_flags(found, 4).startswith("--decoder-first-pipeline-num-layers ")
    assert max(stage_costs(costs, found, 4)) == 9


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((5, 7, 7, 5), "Et*5|t*7|t*7|t*5L"),
        ((5, 6, 6, 6, 6, 1), "Et*5|(t*6|)*4tL"),
        ((2, 1, 3, 0), "Et*2|t|t*3|L"),
        ((1,), "Et|tL"),
    ],
)
def test_a_layout_text_reads_back(sizes: tuple[int, ...], text: str) -> None:
    if len(sizes) > 1:
        assert layout_text(sizes) == text
        assert layout_layers(text) == sizes


def test_flags() -> None:
    assert split_flags((5, 7, 7, 5), 4) == "--decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 5"
    assert split_flags((5, 7, 6, 5), 4) == '--pipeline-model-parallel-layout "Et*5|t*7|t*6|t*5L"'
    assert split_flags((9, 7), 2) == "--decoder-first-pipeline-num-layers 9 --decoder-last-pipeline-num-layers 7"
    assert split_flags((3, 3, 3, 0), 4).startswith("--pipeline-model-parallel-layout")


def test_the_bubble_and_the_step() -> None:
    assert bubble(4, 12) == pytest.approx(3 / 15)
    assert bubble(4, 12, 2) == pytest.approx(3 / 27)
    assert step_cost([1.0] * 4, 12) == 15
    assert step_cost([1.0, 1.0, 1.0, 2.0], 12) == 27
    assert 1 - 12 / step_cost([1.0] * 4, 12) == pytest.approx(bubble(4, 12))


def test_logits_of_a_large_vocabulary_cost_layers() -> None:
    model = Model(hidden=4096, layers=32, heads=32, groups=8, head_dim=128, ffn=14336, gated=True, vocab=128256, seq=8192)
    costs = time_costs(model, Layout())
    assert costs is not None
    assert costs.layers == (1.0,) * 32
    assert 1.5 < costs.last < 3.5
    again = time_costs(model, Layout(recompute="full"))
    assert again is not None
    assert again.last == pytest.approx(costs.last * 3 / 4)


def test_experts_cost_what_a_token_uses() -> None:
    model = Model(
        hidden=1024,
        layers=4,
        heads=16,
        groups=16,
        head_dim=64,
        ffn=4096,
        vocab=32000,
        seq=2048,
        experts=8,
        moe_ffn=4096,
        moe_layers=(False, True, False, True),
    )
    costs = time_costs(model, Layout())
    assert costs is not None
    assert costs.layers[0] == 1.0
    assert 1.3 < costs.layers[1] < 2.0
    assert time_costs(Model(hidden=1024, layers=4), Layout()) is None
