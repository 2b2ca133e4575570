"""Parameters of well-known models, by stage and GPU."""

from __future__ import annotations

import pytest

from memdoctor.memory.layout import Layout
from memdoctor.memory.megatron import layout_layers
from memdoctor.memory.model import Model
from memdoctor.memory.parameters import stage_parameters
from memdoctor.memory.split import chunk_sizes, layers_on

LLAMA = Model(hidden=4096, layers=32, heads=32, groups=32, head_dim=128, ffn=11008, gated=True, vocab=32000, seq=4096, tied=False, norm=1)
LLAMA_70B = Model(hidden=8192, layers=80, heads=64, groups=8, head_dim=128, ffn=28672, gated=True, vocab=32000, tied=False, norm=1)
MIXTRAL = Model(
    hidden=4096,
    layers=32,
    heads=32,
    groups=8,
    head_dim=128,
    ffn=14336,
    gated=True,
    vocab=32000,
    tied=False,
    norm=1,
    experts=8,
    moe_ffn=14336,
)
GPT2_XL = Model(hidden=1600, layers=48, heads=25, head_dim=64, ffn=6400, vocab=50257, positions=1024, bias=True)


@pytest.mark.parametrize(
    ("model", "count"), [(LLAMA, 6_738_415_616), (LLAMA_70B, 68_976_648_192), (MIXTRAL, 46_702_792_704), (GPT2_XL, 1_557_611_200)]
)
def test_published_counts(model: Model, count: int) -> None:
    found = stage_parameters(model, Layout(), 0)
    assert found is not None
    assert found.all == count


def test_a_small_gpt_as_megatron_prints_it() -> None:
    """4 layers on 2 stages of a genuine run: > number of parameters on ... rank (0, 0, 0): 136832, (0, 0, 1): 132864."""
    model = Model(hidden=64, layers=4, heads=4, head_dim=16, ffn=256, vocab=512, positions=64, bias=True)
    counts = [stage_parameters(model, Layout(pp=2), stage) for stage in range(2)]
    assert [count.all for count in counts if count] == [136832, 132864]


def test_tensor_parallelism_divides_all_but_norms() -> None:
    whole, half = stage_parameters(LLAMA, Layout(), 0), stage_parameters(LLAMA, Layout(tp=2), 0)
    assert whole is not None
    assert half is not None
    norms = 65 * 4096
    assert half.all - norms == (whole.all - norms) // 2


def test_experts_are_counted_apart() -> None:
    spread = stage_parameters(MIXTRAL, Layout(ep=8, dp=8), 0)
    assert spread is not None
    assert spread.expert == 32 * 3 * 4096 * 14336
    assert spread.dense == 46_702_792_704 - 8 * spread.expert


def test_unknown_sizes() -> None:
    assert stage_parameters(Model(hidden=4096, layers=32), Layout(), 0) is None


def test_the_split_of_layers() -> None:
    assert chunk_sizes(32, Layout(pp=4)) == (8, 8, 8, 8)
    assert layers_on(1, 16, Layout(pp=4, vpp=2)) == [2, 3, 10, 11]
    assert layers_on(3, 10, Layout(pp=4, layers_of=(3, 3, 3, 1))) == [9]
    assert chunk_sizes(10, Layout(pp=4)) == (3, 3, 2, 2)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("Et*5|t*7|t*7|t*5L", (5, 7, 7, 5)),
        ("Et*3|(tt|)*3,m|L", (3, 2, 2, 2, 0, 0)),
        ("E|t|t|L", (0, 1, 1, 0)),
    ],
)
def test_a_layout_text(text: str, sizes: tuple[int, ...]) -> None:
    assert layout_layers(text) == sizes
