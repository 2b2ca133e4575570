"""Sizes that a tensor has are explained, sizes that none has are not."""

from __future__ import annotations

import math
import random

import pytest

from memdoctor.memory.explain import explain, fits
from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.tensor import Tensor, requested
from memdoctor.memory.tensors import tensors
from memdoctor.units import parse_size

MIB, GIB = 1024**2, 1024**3

LLAMA_7B = Model(
    hidden=4096, layers=32, heads=32, groups=32, head_dim=128, ffn=11008, gated=True, vocab=32000, seq=4096, tied=False, norm=1
)
LLAMA_13B = Model(
    hidden=5120, layers=40, heads=40, groups=40, head_dim=128, ffn=13824, gated=True, vocab=32000, seq=4096, tied=False, norm=1
)
LLAMA_70B = Model(
    hidden=8192, layers=80, heads=64, groups=8, head_dim=128, ffn=28672, gated=True, vocab=32000, seq=4096, tied=False, norm=1
)
LLAMA3_8B = Model(
    hidden=4096, layers=32, heads=32, groups=8, head_dim=128, ffn=14336, gated=True, vocab=128256, seq=8192, tied=False, norm=1
)
GPT_175B = Model(hidden=12288, layers=96, heads=96, groups=96, head_dim=128, ffn=49152, vocab=51200, seq=2048, positions=2048, bias=True)
MIXTRAL = Model(
    hidden=4096,
    layers=32,
    heads=32,
    groups=8,
    head_dim=128,
    ffn=14336,
    gated=True,
    vocab=32000,
    seq=4096,
    tied=False,
    norm=1,
    experts=8,
    moe_ffn=14336,
)
JOBS = {
    "7B": (LLAMA_7B, Layout(dp=8, micro_batch=4)),
    "7B zero-2": (LLAMA_7B, Layout(framework="transformers", dp=8, micro_batch=4, zero=2)),
    "7B zero-3": (LLAMA_7B, Layout(framework="transformers", dp=16, micro_batch=2, zero=3)),
    "13B": (LLAMA_13B, Layout(tp=2, dp=8, micro_batch=8, sequence_parallel=True, distributed_optimizer=True)),
    "70B": (LLAMA_70B, Layout(tp=8, pp=4, dp=2, micro_batch=2, sequence_parallel=True, distributed_optimizer=True)),
    "8B long": (
        LLAMA3_8B,
        Layout(tp=2, cp=4, dp=2, micro_batch=4, sequence_parallel=True, fused_attention=True, distributed_optimizer=True),
    ),
    "175B": (GPT_175B, Layout(tp=8, pp=16, dp=8, micro_batch=8, fused_attention=False)),
    "8x7B": (MIXTRAL, Layout(tp=2, ep=4, dp=16, micro_batch=2, sequence_parallel=True, distributed_optimizer=True)),
}


def printed(size: float) -> int:
    """``size`` bytes as torch would name them after its rounding, read back."""
    size = requested(round(size))
    unit, text = (GIB, "GiB") if size >= GIB else (MIB, "MiB")
    return parse_size(f"{size / unit:.2f} {text}")


@pytest.mark.parametrize(
    ("size", "asked"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10**9, 954 * MIB),
        (100 * MIB + 1, 102 * MIB),
    ],
)
def test_the_allocators_rounding(size: int, asked: int) -> None:
    assert requested(size) == asked


def test_a_printed_size_has_two_decimals() -> None:
    logits = Tensor("logits", "the logits", (8192, 4, 128256), 4, "output_layer")
    assert fits(logits, parse_size("15.66 GiB"))
    assert not fits(logits, parse_size("15.65 GiB"))
    assert not fits(logits, parse_size("15.67 GiB"))


def test_a_bucket_is_rounded_to_the_next_two_mebibytes() -> None:
    bucket = Tensor("reduce_bucket", "", (500_000_000,), 2, "communication")
    assert fits(bucket, parse_size("954.00 MiB"))
    assert fits(bucket, parse_size("953.67 MiB"))  # asynchronous allocator: as asked
    assert not fits(bucket, parse_size("952.00 MiB"))


def test_what_is_asked_in_whole_segments_tells_nothing() -> None:
    assert not fits(Tensor("hidden", "", (1024, 1024), 2, "layer"), parse_size("20.00 MiB"))


def test_three_names_are_none() -> None:
    same = [Tensor(name, "", (512, MIB), 2, "layer") for name in ("a", "b", "c")]
    assert [tensor.name for tensor in explain(GIB, same[:2])] == ["a", "b"]
    assert explain(GIB, same) == ()


def test_the_place_narrows_it_down() -> None:
    same = [Tensor(name, "", (512, MIB), 2, place) for name, place in (("a", "layer"), ("b", "weights"), ("c", "optimizer"))]
    assert [tensor.name for tensor in explain(GIB, same, ["weights"])] == ["b"]


def test_every_tensor_large_enough_explains_its_own_size() -> None:
    for model, layout in JOBS.values():
        found = tensors(model, layout)
        for tensor in found:
            if tensor.bytes >= 128 * MIB:
                rivals = {other.name for other in found if other.where == tensor.where and fits(other, printed(tensor.bytes))}
                explained = explain(printed(tensor.bytes), found, [tensor.where])
                assert len(rivals) > 2 or tensor.name in {other.name for other in explained}


@pytest.mark.parametrize("job", JOBS)
def test_a_size_out_of_the_blue_is_unexplained(job: str) -> None:
    """200 random sizes from 20 MiB to 80 GiB, equally dense on a logarithmic scale: at most 2 % hit a tensor by chance."""
    found = tensors(*JOBS[job])
    chance = random.Random(job)
    sizes = [math.exp(chance.uniform(math.log(20 * MIB), math.log(80 * GIB))) for _ in range(200)]
    explained = [size for size in sizes if explain(printed(size), found)]
    assert len(explained) <= 4, [round(size / MIB) for size in explained]


@pytest.mark.parametrize(
    "places",
    [None, ("layer", "attention", "output_layer", "moe"), ("weights", "gradients", "optimizer", "communication")],
    ids=["anywhere", "forward", "states"],
)
def test_how_often_chance_explains_over_all_jobs(places: tuple[str, ...] | None) -> None:
    chance, hits, tried = random.Random(7), 0, 0
    for model, layout in JOBS.values():
        found = tensors(model, layout)
        for _ in range(2000):
            tried += 1
            hits += bool(explain(printed(math.exp(chance.uniform(math.log(20 * MIB), math.log(80 * GIB)))), found, places))
    assert hits / tried <= (0.01 if places is None else 0.015)
