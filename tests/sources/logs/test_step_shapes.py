"""Step lines of frameworks and loops, and the lines beside them: what each tells, in which unit."""

from __future__ import annotations

import math
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.step_shapes.bars import before
from memdoctor.sources.logs.step_shapes.beside import Beside
from memdoctor.sources.logs.steps import GATES, SAMPLED_GATES, Series, read_step

GIB = 1024.0**3


def minute(text: str) -> float | None:
    return 0.0


@pytest.mark.parametrize(
    ("raw", "shape", "values"),
    [
        (
            b" iteration     1201/  500000 | consumed samples: 1229824 | consumed tokens: 2518679552 | elapsed time per iteration (ms): 5210.1 | "
            b"learning rate: 1.500E-04 | global batch size: 1024 | lm loss: 2.5E+00 | loss scale: 1.0 | grad norm: 0.5 | actual seqlen: 2048 | "
            b"number of skipped iterations: 0 | number of nan iterations: 0 | samples per second: 196.5 | tokens per gpu per second (tgs): 3100.5 | TFLOPs: 130.1 |",
            "megatron",
            {"samples": 1229824, "batch": 1024, "seqlen": 2048, "rate": 196.5, "tokens": 3100.5, "tflops": 130.1, "ms": 5210.1},
        ),
        (
            b" [2026-11-29 13:34:26.724433] iteration       10/      10 | consumed samples:           80 | elapsed time per iteration (ms): 374.9 | "
            b"throughput per GPU (TFLOP/s/GPU): 401.2 | learning rate: 5.6E-04 | global batch size:     8 | lm loss: 5.840197E+00 | mtp_1 loss: 6.1E+00 | "
            b"load_balancing_loss: 1.002817E+00 | z_loss: 1.945677E+00 | loss scale: 1.0 | grad norm: 0.778 | number of skipped iterations:   0 |",
            "megatron",
            {"loss": 5.840197, "aux": 1.002817, "tflops": 401.2},
        ),
        (
            b"[default7]: iteration    42784/ 115311 | consumed samples:     71463856 | elapsed time per iteration (s): 111.14 | lm loss: 2.127643E+00 | TFLOPs: 141.09 |",
            "megatron",
            {"iteration": 42784, "ms": 111140.0, "loss": 2.127643, "tflops": 141.09},
        ),
        (
            b"  samples/sec: 12.345 | iteration       10/  320000 | elapsed time per iteration (ms): 1000.5 | learning rate: 6.000E-05 | "
            b"approx flops per GPU: 50.1TFLOPS | lm_loss: 9.100000E+00 | loss scale: 65536.0 | number of skipped iterations:   0 |",
            "megatron",
            {"loss": 9.1, "scale": 65536.0, "ms": 1000.5},
        ),
        (b"steps: 10 loss: 0.1234 iter time (s): 0.123 samples/sec: 12.345", "pipeline", {"iteration": 10, "ms": 123.0, "rate": 12.345}),
        (
            b"Epoch 1:  10%|#         | 100/1000 [00:10<01:30,  9.91it/s, v_num=3, train_loss=2.310]",
            "bar",
            {"iteration": 1100, "loss": 2.31, "ms": 1000 / 9.91},
        ),
        (
            b" 45%|####5     | 450/1000 [05:12<06:21,  1.44s/it, loss=nan]",
            "bar",
            {"iteration": 450, "loss": math.nan, "ms": 1440.0},
        ),
        (
            b"Epoch 0: :   1%|1   | 7/500 [00:40<40:00, v_num=x, reduced_train_loss=10.90, global_step=6.000, consumed_samples=56.00, "
            b"train_step_timing in s=4.520, grad_norm=1.25]",
            "bar",
            {"iteration": 6, "loss": 10.9, "ms": 4520.0, "grad_norm": 1.25, "samples": 56},
        ),
        (
            b"Training epoch 0, iteration 3/99 | lr: 1.499e-07 | global_batch_size: 512 | global_step: 3 | reduced_train_loss: 11.03 | "
            b"train_step_timing in s: 22.61 | consumed_samples: 2048",
            "print",
            {"iteration": 3, "loss": 11.03, "ms": 22610.0, "lr": 1.499e-07, "batch": 512, "samples": 2048},
        ),
        (
            b"[titan] 2026-03-01 09:00:00,123 - root - INFO - step: 10  loss:  7.3311  grad_norm:  1.2000  memory: 40.00GiB(50.10%)  tps: 1,234  tflops: 300.10  mfu: 30.00%",
            "print",
            {"iteration": 10, "loss": 7.3311, "grad_norm": 1.2, "memory": 40 * GIB, "tokens": 1234, "tflops": 300.1},
        ),
        (b"iter 100: loss 3.2001, time 350.12ms, mfu 30.00%", "print", {"iteration": 100, "loss": 3.2001, "ms": 350.12}),
        (b"Step 20/100 | Loss: 2.5 | step time: 1.5s | data_time: 0.75s", "print", {"loss": 2.5, "ms": 1500.0, "data": 750.0}),
        (b"step 5 train_loss=2.5 dt: 120.5ms tok/s: 45,000", "print", {"ms": 120.5, "tokens": 45000}),
        (b"[145/400] loss=4.0320", "counted", {"iteration": 145, "loss": 4.032}),
        (
            b"2026-01-01 09:00:00,123 - INFO - [ 45/400]  train loss:      nan  lr: 1.0e-04",
            "counted",
            {"iteration": 45, "loss": math.nan, "lr": 1e-4},
        ),
        (b"Epoch 3 [145/400] loss=2.5 grad_norm=0.5", "counted", {"iteration": 145, "grad_norm": 0.5}),
        (b"{'train/loss': 2.5, 'train/grad_norm': 0.5, 'global_step': 7}", "dict", {"iteration": 7, "loss": 2.5, "grad_norm": 0.5}),
        (
            b'2025-04-03 12:00:10 | INFO | train_inner | {"epoch": 1, "loss": "5.678", "wps": "112430.1", "num_updates": "70", "lr": "6e-05", "gnorm": "0.41", "loss_scale": "8"}',
            "dict",
            {"iteration": 70, "loss": 5.678, "grad_norm": 0.41, "scale": 8.0, "tokens": 112430.1},
        ),
        (
            b"[rank=0] [2025-04-03 19:05:02,553] INFO:{'global_step': 70, 'lr': 3e-05, 'running_loss': 2.5, 'epoch': 0, 'tokens_per_s': 11000.2}",
            "dict",
            {"iteration": 70, "loss": 2.5, "tokens": 11000.2},
        ),
        (
            b"{'loss': 2.5, 'learning_rate': 1e-05, 'memory(GiB)': 40.5, 'epoch': 0.01, 'global_step/max_steps': '7/1000', 'percentage': '0.70%'}",
            "dict",
            {"iteration": 7, "memory": 40.5 * GIB},
        ),
        (
            b"step   70/19560 | loss 3.142000 (+nanz)| norm 1.2000 (+nanz)| lr 6.00e-05 | 250.30 ms | 55.1% bf16 MFU | 2094000 tok/s",
            "print",
            {"iteration": 70, "loss": 3.142, "grad_norm": 1.2, "lr": 6e-5, "ms": 250.3, "tokens": 2094000},
        ),
        (b"step 7: train loss 4.500000 (took 1452.121000 ms)", "print", {"loss": 4.5, "ms": 1452.121}),
        (
            b"step    7 | loss: 6.1 | lr 6.0000e-04 | norm: 1.2345 | dt: 250.12ms | tok/sec: 20000.10",
            "print",
            {"grad_norm": 1.2345, "ms": 250.12},
        ),
        (
            b"Epoch 1 | iter 70 step 17 | loss train: 4.250, val: n/a | iter time: 123.45 ms (step) remaining time: 0:12:34",
            "print",
            {"iteration": 70, "loss": 4.25, "ms": 123.45},
        ),
        (b"step 70 | val loss 3.2 | train loss 3.1", "print", {"loss": 3.1}),
        (b"loss = 2.195965051651001, step = 20", "print", {"iteration": 20, "loss": 2.195965051651001}),
        (b"INFO:tensorflow:loss = nan, step = 300 (1.234 sec)", "print", {"iteration": 300, "loss": math.nan}),
        (
            b"2025-04-03 12:00:10 | INFO | train_inner | epoch 001:     70 / 1000 loss=5.678, nll_loss=5.1, ppl=51.2, num_updates=70, lr=6e-05, gnorm=0.41",
            "print",
            {"iteration": 70, "loss": 5.678, "grad_norm": 0.41},
        ),
        (b"step:126/1480 train_time:11502ms step_avg:91.28ms", "print", {"iteration": 126}),
        (b"s:126 trl:3.9112 lr:0.000600 norm:1.20", "print", {"iteration": 126, "loss": 3.9112, "grad_norm": 1.2}),
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
        b"{'train_runtime': 100.5, 'train_samples_per_second': 1.0, 'train_loss': 1.5, 'epoch': 3.0}",
        b"Map: 100%|##########| 1000/1000 [00:01<00:00, 900.1 examples/s]",
        b"Loading checkpoint shards:  50%|#####     | 2/4 [00:05<00:05,  2.55s/it]",
        b"iter 5 took 3 s of total time 100 s",
        b"Epoch: [3/10] loss: 2.3",
        b"Epoch [3/10] loss=2.3",
        b"[3/12] val loss: 2.0",
        b"Evaluating [3/12] eval_loss=2.0",
        b"[3/12] downloading loss.json",
        b"step 250: val loss 2.5",
        b"best loss: 2.31, step: 400",
        b"Epoch: 0 | Step: 5 | Actor Loss: 0.03 | Critic Loss: 0.01 | Unsupervised Loss: 0.0",
        b"[step=10/9500,epoch=0] saved",
        b"[step=10/9500,epoch=0]",  # nothing stands below it
    ],
)
def test_leaves(raw: bytes) -> None:
    assert read_step(raw) is None


@pytest.mark.parametrize(
    ("head", "below", "values"),
    [
        (
            b"2025-04-03 10:00:01.123\tnode-01:0\tolmo.train:964\tINFO\t[step=70/9500,epoch=0]",
            b"    optim/total_grad_norm=0.5\n    train/CrossEntropyLoss=2.345\n    throughput/total_tokens=41,943,040\n"
            b"    throughput/device/tokens_per_second=8,400\n    throughput/device/batches_per_second=0.5\n    System/Peak GPU Memory (MB)=40,000",
            {"iteration": 70, "loss": 2.345, "grad_norm": 0.5, "tokens": 8400, "ms": 2000.0, "memory": 40_000 * 1024.0**2},
        ),
        (
            b"2025-04-03T10:00:01.123Z INFO [step=70/9500,epoch=1,eta=12d 3h]",
            b"    optim/LR (group 0)=0.0004\n    optim/total grad norm=0.5\n    train/CE loss=nan\n    throughput/device/BPS=0.25",
            {"iteration": 70, "loss": math.nan, "grad_norm": 0.5, "lr": 0.0004, "ms": 4000.0},
        ),
        (
            b"[batch=70/4800]:",
            b"\t Train time/batch: 69\n\t Train loss/train/total: 2.5\n\t Train throughput/device/tokens_per_sec: 12000.1\n\t Train lr-DecoupledAdamW/group0: 0.0001\n"
            b"[batch=71/4800]:\n\t Train l2_norm/grad/global: 0.5",
            {"iteration": 70, "loss": 2.5, "tokens": 12000.1, "lr": 0.0001},
        ),
        (
            b"epoch: 0|step: 70|ppo_ep: 1|act_loss: -0.15|cri_loss: -0.07|unsuper_loss: 0.0",
            b"average reward score: 4.18\n-----\n|E2E latency=3.86s |Gather latency=0.00s (0.00%)",
            {"iteration": 70, "ms": 3860.0},
        ),
        (
            b"Epoch: 0 | Step: 70 | PPO Epoch: 1 | Actor Loss: 0.03 | Critic Loss: 0.01 | Unsupervised Loss: 0.0",
            b"End-to-End => Latency: 3.77s, TFLOPs: 20.1, Samples/sec: 16.97\nGeneration => Latency: 2.51s",
            {"iteration": 70, "ms": 3770.0},
        ),
    ],
)
def test_reads_what_stands_below_a_head(head: bytes, below: bytes, values: dict[str, float]) -> None:
    step = read_step(head, partial(bytes, below + b"\n"))
    assert step is not None
    assert step[0] == "block"
    assert step[1] == {name: pytest.approx(value, nan_ok=True) for name, value in values.items()}
    assert any(re.search(gate.text, head) if gate.pattern else gate.text in head for gate in GATES)


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (
            b"11/29 14:02:11 - mmengine - INFO - Epoch(train)  [2][ 50/625]  lr: 1.0000e-02  eta: 0:12:00  time: 0.2311  data_time: 0.0112  memory: 4321  loss: 2.3013  loss_cls: 1.2",
            {"iteration": 50, "in_epoch": 2, "of": 625, "lr": 0.01, "ms": 231.1, "data": 11.2, "memory": 4321 * 1024**2, "loss": 2.3013},
        ),
        (
            b"11/29 14:02:11 - mmengine - INFO - Iter(train) [   50/80000]  base_lr: 2.0e-04 lr: 1.9e-04  eta: 1 day, 5:33:43  time: 1.33  data_time: 0.006  memory: 14321  grad_norm: inf  loss: nan",
            {"iteration": 50, "lr": 1.9e-4, "ms": 1330, "data": 6, "memory": 14321 * 1024**2, "grad_norm": math.inf, "loss": math.nan},
        ),
        (
            b"[XTuner][RANK 0][2026-11-29 14:02:00][INFO] Epoch 1 Step 10/400 data_time: 0.0101 lr: 6.000000e-06 time: 1.2300 text_tokens: 4096 total_loss: 2.301, reduced_llm_loss: 2.3 grad_norm: 1.21 max_memory: 2.00 GB reserved_memory: 40.1 GB tgs: 3322.1 eta: 0:08:10",
            {
                "iteration": 10,
                "lr": 6e-6,
                "ms": 1230,
                "data": 10.1,
                "loss": 2.301,
                "grad_norm": 1.21,
                "memory": 2 * 1024**3,
                "tokens": 3322.1,
            },
        ),
    ],
)
def test_pairs(raw: bytes, values: dict[str, float]) -> None:
    step = read_step(raw)
    assert step is not None
    assert step[0] == "pairs"
    assert step[1] == {name: pytest.approx(value, nan_ok=True) for name, value in values.items()}
    assert any(re.search(gate.text, raw) if gate.pattern else gate.text in raw for gate in GATES)


def test_pairs_of_an_evaluation_are_no_step() -> None:
    assert (
        read_step(
            b"11/29 14:02:11 - mmengine - INFO - Epoch(val) [2][ 50/62]    eta: 0:00:09  time: 0.1  data_time: 0.01  memory: 900  loss: 2.1"
        )
        is None
    )


def test_a_number_that_is_cut_off_is_none() -> None:
    step = read_step(b" iteration       70/    5000 | elapsed time per iteration (ms): 1010.5 | lm loss: 2.345E+")
    assert step is not None
    assert step[1] == {"iteration": 70, "ms": 1010.5}


PADDED = {  # one line of each shape, with its loss and its norm as formats with a width print them
    "print": b"[titan] 2026-03-01 09:00:00,123 - root - INFO - step: %s  loss: %s  grad_norm: %s  memory: 40.00GiB(50.10%%)",
    "bar": b"Epoch 0:  45%%|####5     | 450/1000 [05:12<06:21,  1.44s/it, step=%s, loss=%s, grad_norm=%s]",
    "dashes": b"step:7 - train/loss:%s - train/grad_norm:%s - train/lr:1e-06",
    "dict": b"{'step': %s, 'loss': %s, 'grad_norm': %s, 'lr': 0.0001}",
    "counted": b"[%s/400] loss=%s grad_norm=%s",
    "pipeline": b"steps: %s loss: %s iter time (s): %s samples/sec: 12.345",
}


@pytest.mark.parametrize("width", [1, 4, 7, 12])
@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "NaN", "2.5"])
@pytest.mark.parametrize("shape", PADDED)
def test_padded_numbers_are_read(shape: str, text: str, width: int) -> None:
    padded = [each.rjust(width).encode() for each in ("7", text, text)]
    raw = PADDED[shape] % tuple(padded[-PADDED[shape].count(b"%s") :])
    step = read_step(raw)
    assert step is not None, raw
    assert (step[0], step[1]["iteration"]) == (shape, 7)
    assert step[1]["loss"] == pytest.approx(float(text), nan_ok=True)
    assert any(re.search(gate.text, raw) if gate.pattern else gate.text in raw for gate in (*GATES, *SAMPLED_GATES)), raw
    if shape != "pipeline":
        assert step[1]["grad_norm"] == pytest.approx(float(text), nan_ok=True)


def test_a_number_far_from_its_word_is_another_one() -> None:
    assert read_step(b"step 7  loss" + 40 * b" " + b"2.5") is None


def test_a_total_time_is_no_step_time() -> None:
    step = read_step(b"step 10 loss 2.5 time: 1234.5s elapsed")
    assert step is not None
    assert "ms" not in step[1]


def test_the_bar_before_a_line() -> None:
    data = (
        b"\r 10%|#  | 99/1000 [00:09<01:30, 10.00it/s]\r 10%|#  | 100/1000 [00:10<01:30,  2.00s/it]\r     \r{'loss': 2.5, 'epoch': 0.1}\n"
    )
    assert before(data, data.index(b"{")) == {"iteration": 100, "ms": 2000.0}
    assert before(b"nothing\n", 8) is None


def read_beside(lines: list[bytes]) -> Beside:
    beside, series = Beside(), Series("x")
    for number, raw in enumerate(lines, 1):
        after = b"\n".join(lines[number:])
        beside.read(raw, number, lambda text: series.time(text, minute), partial(bytes, after))
    return beside


def test_memory_of_megatron_by_rank() -> None:
    beside = read_beside(
        [
            b"[Rank 0] (after 10 iterations) memory (MB) | allocated: 1024.5 | max allocated: 2048.25 | reserved: 4096.0 | max reserved: 4096.0",
            b"[Rank 8] (before save_checkpoint for iteration 12) memory (MB) | allocated: 1.0 | max allocated: 2.0 | reserved: 3.0 | max reserved: 4.0 | total device memory used: 5.0",
        ]
    )
    table = beside.tables["memory"]
    assert list(table.column("rank").slice(0, 2)) == [0, 8]
    assert list(table.column("iteration").slice(0, 2)) == [10, 12]
    assert table.column("allocated")[0] == 1024.5 * 1024**2
    assert table.is_absent(0, "device")
    assert table.column("device")[1] == 5 * 1024**2


def test_memory_and_throughput_of_deepspeed() -> None:
    beside = read_beside(
        [
            b"MA 0.39 GB         Max_MA 0.41 GB         CA 0.50 GB         Max_CA 0 GB ",
            b"CPU Virtual Memory:  used = 3.22 GB, percent = 13.7%",
            b"[2026-03-01 09:00:00,123] [INFO] [timer.py:264:stop] epoch=0/micro_step=5/global_step=5, RunningAvgSamplesPerSec=2.7, "
            b"CurrSamplesPerSec=2.73, MemAllocated=0.39GB, MaxMemAllocated=0.5GB",
        ]
    )
    memory, rate = beside.tables["memory"], beside.tables["throughput"]
    assert memory.column("allocated")[0] == pytest.approx(0.39 * GIB)
    assert memory.column("reserved")[0] == pytest.approx(0.5 * GIB)
    assert memory.column("host")[1] == pytest.approx(3.22 * GIB)
    assert rate.column("iteration")[0] == 5
    assert rate.column("rate")[0] == pytest.approx(2.73)
    assert rate.column("max_allocated")[0] == 0.5 * GIB


def test_timers() -> None:
    beside = read_beside(
        [
            b"(min, max) time across ranks (ms):",
            b"    forward-backward ...............................: (4000.12, 4010.50)",
            b"    batch-generator ................................: (12.00, 900.00)",
            b"    optimizer ......................................: 55.5",
            b"[Rank 0] time (ms) | fwd: 3.52 | bwd: 750.68 | bwd_inner: 19.96 | bwd_allreduce: 380.78 | step: 22.26",
            b"time (ms) | forward-compute: 1.0 | batch-generator: 7.0",
        ]
    )
    assert beside.timers["forward-backward"].column("low")[0] == pytest.approx(4000.12)
    assert [round(float(value)) for value in beside.timers["batch-generator"].column("high").slice(0, 2)] == [900, 7]
    assert beside.timers["optimizer"].column("high")[0] == pytest.approx(55.5)
    assert beside.timers["step"].column("low")[0] == pytest.approx(22.26)
    assert "forward-compute" not in beside.timers


def test_validation() -> None:
    beside = read_beside(
        [
            b" validation loss at iteration 10 | lm loss value: 5.857346E+00 | lm loss PPL: 3.497944E+02 | ",
            b"{'eval_loss': 2.125, 'eval_runtime': 10.0, 'epoch': 1.0}",
        ]
    )
    table = beside.tables["validation"]
    assert table.column("loss")[0] == pytest.approx(5.857346)
    assert table.column("iteration")[0] == 10
    assert table.column("loss")[1] == 2.125


def test_profilers() -> None:
    beside = read_beside(
        [
            b"Comm. Op            Message Size        Count               Total Latency(ms)   Avg Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)    ",
            b"all_reduce",
            b"                    1.0 KB              6                   511.79              79.29               0.00                0.25                ",
            b"Profile Summary at step 3:",
            b"fwd latency:                                                20.18 ms",
            b"bwd latency:                                                1.5 s",
            b"samples/second:                                             39.53   ",
        ]
    )
    assert beside.profiles["communication"] == [
        {"op": "all_reduce", "size": 1024.0, "count": 6.0, "total_ms": 511.79, "mean_ms": 79.29, "gbps": 0.25}
    ]
    assert beside.profiles["flops"] == [{"forward_ms": 20.18, "backward_ms": 1500.0, "samples_per_second": 39.53}]


def test_tables_beside_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdoctor.sources.logs.step_shapes.beside.MOST_ROWS", 1_000)
    lines = [b"time (ms) | step: %d.0" % number for number in range(10_000)]
    table = read_beside(lines).timers["step"]
    assert len(table) <= 1_000
    values = list(table.column("low").slice(0, len(table)))
    assert values[0] == 0
    assert values == sorted(values)
    assert values[-1] > 9_000


@given(st.binary(max_size=200))
def test_no_bytes_break_it(noise: bytes) -> None:
    series = Series("x")
    for number, raw in enumerate(
        (b"step 1 loss " + noise, b"{'loss': " + noise + b"}", noise, b"time (ms) | step: " + noise, b"iteration 9" * 50 + b"/9 | " + noise)
    ):
        step = read_step(raw)
        if step is not None:
            series.add(*step, number << 8, number, raw, minute)
        series.beside.read(raw, number, lambda text: math.nan, lambda: noise)


def test_an_iteration_without_bounds_is_counted_on() -> None:
    series = Series("x")
    step = read_step(b"step " + b"9" * 400 + b" loss 2.5")
    assert step is not None
    assert series.add(*step, 256, 1, b"", minute) == 1
