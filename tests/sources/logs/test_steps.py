"""Step lines of every shape, and what looks like one."""

from __future__ import annotations

import math

import pytest

from memdoctor.sources.logs.steps import Series, read_step

MEGATRON = (
    b" [2026-11-29 13:33:56.627582] iteration       14/      30 | consumed samples:          112 | elapsed time per iteration (ms): 117.6 | "
    b"learning rate: 9.450000E-04 | global batch size:     8 | lm loss: 6.240241E+00 | loss scale: 524288.0 | grad norm: 1.459 | "
    b"number of skipped iterations:   2 | number of nan iterations:   0 |"
)


@pytest.mark.parametrize(
    ("raw", "shape", "values"),
    [
        (
            MEGATRON,
            "megatron",
            {"iteration": 14, "loss": 6.240241, "scale": 524288.0, "grad_norm": 1.459, "skipped": 2, "nan": 0, "ms": 117.6, "lr": 9.45e-4},
        ),
        (
            b" iteration     1201/  500000 | consumed samples: 1229824 | consumed tokens: 2518679552 | elapsed time per iteration (ms): 5210.1 | "
            b"learning rate: 1.500E-04 | global batch size: 1024 | lm loss: 2.5E+00 | grad norm: nan | actual seqlen: 2048 | "
            b"number of skipped iterations: 0 | number of nan iterations: 0 | samples per second: 196.5 | TFLOPs: 130.1 |",
            "megatron",
            {"iteration": 1201, "loss": 2.5, "grad_norm": math.nan, "lr": 1.5e-4, "ms": 5210.1},
        ),
        (
            b"[2026-11-29 13:22:05,590] [INFO] [logging.py:123:log_dist] [Rank 0] step=2, skipped=1, lr=[0.0003], mom=[(0.9, 0.999)]",
            "deepspeed",
            {"iteration": 2, "skipped": 1, "lr": 0.0003},
        ),
        (b"steps: 10 loss: 0.1234 iter time (s): 0.123 samples/sec: 12.345", "pipeline", {"iteration": 10, "loss": 0.1234}),
        (
            b"{'loss': 2.31, 'grad_norm': 0.51, 'learning_rate': 1e-05, 'epoch': 0.02}",
            "dict",
            {"loss": 2.31, "grad_norm": 0.51, "lr": 1e-5},
        ),
        (
            b"{'loss': '0.0', 'grad_norm': 'nan', 'learning_rate': '2e-05', 'epoch': '0.1'}",
            "dict",
            {"loss": 0.0, "grad_norm": math.nan, "lr": 2e-5},
        ),
        (
            b"iter 3 loss nan lr [0.00047] grad_norm inf skipped 1 scale 8.0",
            "print",
            {"iteration": 3, "loss": math.nan, "grad_norm": math.inf, "skipped": 1, "scale": 8.0, "lr": 0.00047},
        ),
        (b"step: 120/1000, train_loss=1.25, lr=3e-4", "print", {"iteration": 120, "loss": 1.25, "lr": 3e-4}),
        (b"Iteration 7 | loss: -inf", "print", {"iteration": 7, "loss": -math.inf}),
    ],
)
def test_reads(raw: bytes, shape: str, values: dict[str, float]) -> None:
    step = read_step(raw)
    assert step is not None
    assert step[0] == shape
    for name, value in values.items():
        assert step[1][name] == pytest.approx(value, nan_ok=True), name


@pytest.mark.parametrize(
    "raw",
    [
        b"using loss scale 65536",
        b"> loss scaling: dynamic",
        b"{'eval_loss': 2.1, 'eval_runtime': 10.0, 'epoch': 1.0}",
        b"ValueError: loss is NaN at iteration 7 on rank 1",
        b"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 16, reducing to 8",
        b"validation loss at iteration 10 | lm loss value: 5.857346E+00 | lm loss PPL: 3.497944E+02 |",
        b"Enabled gloss=1 at step 3",
        b"",
    ],
)
def test_leaves(raw: bytes) -> None:
    assert read_step(raw) is None


def test_a_missing_loss_is_absent_and_a_printed_nan_is_not() -> None:
    series = Series("x")
    for number, raw in enumerate([MEGATRON, MEGATRON.replace(b" lm loss: 6.240241E+00 |", b""), MEGATRON.replace(b"6.240241E+00", b"nan")]):
        step = read_step(raw)
        assert step is not None
        series.add(step[0], step[1], number, number + 1, raw, lambda minute: 0.0)
    table = series.tables["megatron"]
    assert [table.is_absent(i, "loss") for i in range(3)] == [False, True, False]
    assert table.epoch[0] == pytest.approx(56.627582)
    assert series.text(2).startswith(" [2026-11-29")


def test_skipped_steps_count_from_line_to_line() -> None:
    series = Series("x")
    for number, total in enumerate([0, 1, 3, 3]):
        raw = f"iter {number} loss 1.0 skipped {total}".encode()
        step = read_step(raw)
        assert step is not None
        series.add(step[0], step[1], number, number + 1, raw, lambda minute: None)
    assert list(series.column("skipped").slice(0, 4)) == [0, 1, 2, 0]
    assert math.isnan(series.tables["print"].epoch[0])


@pytest.mark.parametrize(
    ("last", "through"),
    [
        (b"step:40/40 train_time:3652ms step_avg:91.28ms", True),
        (b"step   40/40 | loss 3.142000 | lr 6.00e-05", True),
        (b"[40/40] loss=4.03", True),
        (b"step   39/40 | loss 3.142000 | lr 6.00e-05", False),
        (b"step 40 loss 3.142", False),
        (b"Epoch 1 [40/40] loss=4.03", False),  # the next epoch may follow
        (b" iteration       40/      40 | elapsed time per iteration (ms): 374.9 | lm loss: 5.8E+00 |", False),  # says what comes after
    ],
)
def test_counts_to_its_end(last: bytes, through: bool) -> None:
    series = Series("train.log")
    found = read_step(last)
    assert found is not None
    series.add(*found, 1 << 8, 1, last, lambda text: None)
    assert series.through is through
    assert not Series("empty.log").through
