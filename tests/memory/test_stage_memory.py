"""The model of the stages' memory: what is in flight, and a fit to measured peaks."""

from __future__ import annotations

import pytest

from memdoctor.memory.layout import Layout
from memdoctor.memory.model import Model
from memdoctor.memory.stage_memory import StageMemory, fit, in_flight, state_bytes

MODEL = Model(hidden=4096, layers=32, heads=32, groups=32, head_dim=128, ffn=11008, gated=True, vocab=32000, seq=4096, tied=False, norm=1)
GIB = 1024**3


def test_micro_batches_in_flight() -> None:
    assert [in_flight(stage, Layout(pp=4)) for stage in range(4)] == [4, 3, 2, 1]
    assert [in_flight(stage, Layout(pp=4, microbatches=2)) for stage in range(4)] == [2, 2, 2, 1]
    assert in_flight(0, Layout(pp=4, vpp=2)) == 2 * 3 + 4 + 1
    assert in_flight(3, Layout(pp=4, vpp=2)) == 4 + 1


@pytest.mark.parametrize(
    ("layout", "size"),
    [
        (Layout(), 18),
        (Layout(dp=4, distributed_optimizer=True), 6 + 3),
        (Layout(dp=8, zero=1, grad_dtype="fp16"), 4 + 1.5),
        (Layout(dp=8, zero=2), 4 + 1.5),
        (Layout(dtype="fp32"), 16),
    ],
)
def test_bytes_of_a_parameter(layout: Layout, size: float) -> None:
    assert state_bytes(layout) == size


def test_a_fit_gives_back_what_made_the_peaks() -> None:
    layout = Layout(pp=4, tp=2, micro_batch=1, microbatches=16)
    truth = StageMemory(MODEL, layout, 0.4 * GIB, 3 * GIB, (2 * GIB, 5 * GIB))
    found = fit(MODEL, layout, truth.peaks((8, 8, 8, 8)))
    assert found is not None
    assert found.peaks((8, 8, 8, 8)) == pytest.approx(truth.peaks((8, 8, 8, 8)))
    assert found.peaks((6, 9, 9, 8)) == pytest.approx(truth.peaks((6, 9, 9, 8)), rel=0.01)


def test_two_stages_are_fitted_with_the_layers_theory() -> None:
    layout = Layout(pp=2, micro_batch=1, microbatches=8)
    found = fit(MODEL, layout, [60 * GIB, 50 * GIB])
    assert found is not None
    assert found.peaks((16, 16)) == pytest.approx([60 * GIB, 50 * GIB])


def test_nothing_is_fitted_to_unknown_sizes() -> None:
    assert fit(Model(hidden=4096), Layout(pp=2), [1.0, 1.0]) is None
    assert fit(MODEL, Layout(pp=4), [1.0, 1.0]) is None
