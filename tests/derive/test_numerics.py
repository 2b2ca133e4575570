"""What the step lines of an attempt say about loss, gradient norm and loss scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from memdoctor.derive.numerics import Steps, numerics, steps_of
from memdoctor.model import Fact, FileRead
from memdoctor.sources.logs.steps import Series, read_step


def file(lines: Sequence[str], number: int = 0) -> FileRead:
    series = Series("train.log")
    for index, text in enumerate(lines):
        step = read_step(text.encode())
        assert step is not None, text
        series.add(step[0], step[1], (number << 44) | ((index + 1) << 8), index + 1, text.encode(), lambda minute: None)
    return FileRead("train.log", number, None, None, None, None, 1, len(lines), False, False, None, frozenset(), series)


def judge(lines: Sequence[str]) -> Fact:
    read = file(lines)
    return numerics(1, Steps(read, 0, len(lines)), finished=False)


def step(number: int, loss: object, norm: object = 1.0, skipped: int = 0, scale: object = 1.0) -> str:
    return f"iter {number} loss {loss} lr [0.001] grad_norm {norm} skipped {skipped} scale {scale}"


def test_a_healthy_run() -> None:
    fields = judge([step(i, 5.0 - i / 10) for i in range(20)]).fields
    assert fields["nan_steps"] == 0
    assert fields["rise"] == 1.0
    assert fields["nonfinite_at_end"] is False
    assert fields["has_scale"] is False
    assert "first_nan_step" not in fields


def test_nan_after_finite_losses_stands_at_its_first_line() -> None:
    fact = judge([step(0, 5.0), step(1, 9.0), step(2, "nan", "nan"), step(3, "nan", "nan")])
    assert fact.fields["first_nan_step"] == 2
    assert fact.fields["finite_before_nan"] == 2
    assert fact.fields["nan_grad_steps"] == 2
    assert fact.fields["rise"] == pytest.approx(1.8)
    assert fact.origin.line == 3
    assert "loss nan" in fact.origin.excerpt


def test_a_mean_of_0_dates_back_to_the_line_before() -> None:
    """Hugging Face's Trainer shows NaN as 0 in its means; a mean of exactly 0 holds no other loss."""
    lines = [f"{{'loss': {2.0 - i / 1000}, 'learning_rate': 0.001, 'step': {i}}}" for i in range(50, 301, 50)]
    lines += [f"{{'loss': 0.0, 'learning_rate': 0.001, 'step': {i}}}" for i in range(350, 601, 50)]
    fact = judge(lines)
    assert fact.fields["iteration"] == 301
    assert fact.fields["zero_loss_at_end"] == 6
    assert judge([f"step {i} loss {2.0 if i <= 300 else 0.0}" for i in range(50, 601, 50)]).fields["iteration"] == 350  # no mean


def test_fp16_search_for_a_scale_at_the_start_is_over() -> None:
    lines = [step(i, 5.0, "inf", i + 1, 2.0 ** (16 - i)) for i in range(4)] + [step(i, 5.0 - i / 10, 1.0, 4, 4096.0) for i in range(4, 20)]
    fields = judge(lines).fields
    assert fields["skipped_steps"] == 4
    assert fields["skipped_at_end"] == 0
    assert fields["recovered"] is True
    assert fields["has_scale"] is True
    assert fields["scale_min"] == 4096.0


def test_scale_at_its_floor() -> None:
    fields = judge([step(i, "inf", "inf", i + 1, max(1.0, 2.0 ** (3 - i))) for i in range(10)]).fields
    assert fields["at_floor_steps"] == 7
    assert fields["skipped_at_end"] == 10
    assert fields["recovered"] is False


def test_megatron_with_every_step_of_an_interval_skipped_is_no_nan() -> None:
    line = " iteration {:8d}/      30 | consumed samples: 8 | elapsed time per iteration (ms): 244.4 | learning rate: 0.0E+00 | global batch size: 8 |"
    tail = " loss scale: {:.1f} | number of skipped iterations:   2 | number of nan iterations:   0 |"
    fields = judge([(line + tail).format(i * 2, 2.0 ** (32 - i)) for i in range(1, 8)]).fields
    assert fields["nan_steps"] == 0
    assert fields["skipped_steps"] == 14


def test_megatron_without_loss_and_with_a_nan_norm_is_nan() -> None:
    line = " iteration {:8d}/      30 | consumed samples: 8 | elapsed time per iteration (ms): 244.4 | learning rate: 6.0E+35 | global batch size: 8 |"
    good = " lm loss: 6.2E+00 | loss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    bad = " loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 | number of nan iterations:   0 |"
    fields = judge([(line + good).format(2), (line + bad).format(4)]).fields
    assert fields["nan_steps"] == 1
    assert fields["first_nan_step"] == 4


def test_steps_go_to_the_attempt_that_wrote_them() -> None:
    read = file([step(i, 5.0) for i in range(10)])
    parts = steps_of([read], {0: [(0, 1), (5 << 8, 2)]})
    assert {attempt: [len(part) for part in found] for attempt, found in parts.items()} == {1: [4], 2: [6]}


def test_marks_are_bounded_and_keep_both_ends() -> None:
    read = file([step(i, 5.0) for i in range(5000)])
    marks = Steps(read, 0, 5000).marks(None)
    assert len(marks) < 450
    assert marks[0].iteration == 0
    assert [mark.iteration for mark in marks[-50:]] == list(range(4950, 5000))
    assert marks[0].epoch is None


def test_an_infinite_loss_from_the_first_step() -> None:
    fields = judge([step(i, "inf", "inf") for i in range(4)]).fields
    assert fields["finite_before_nan"] == 0
    assert math.isnan(fields.get("rise", math.nan))
