"""MLPerf's step lines: what is read of them, what is not, and that a run which prints them is seen to go on and to reach its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memdoctor.pipeline import diagnose_logs
from memdoctor.sources.logs.steps import read_step

OOM = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


def line(key: str, value: object, **metadata: object) -> str:
    told = {"namespace": "", "time_ms": 1773540000123, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return ":::MLLOG " + json.dumps({**told, "metadata": {"file": "/workspace/llm/callbacks.py", "lineno": 412, **metadata}})


def stats(step: float, loss: float = 2.5, *, name: str = "step") -> str:
    return line("tracked_stats", {"train_step_time": 4.25, "reduced_train_loss": loss}, **{name: step})


@pytest.mark.parametrize(
    ("raw", "shape", "values"),
    [
        (stats(1536.0), "mllog", {"iteration": 1536, "ms": 4250.0, "loss": 2.5}),
        ("0: " + stats(200, float("nan"), name="step_num"), "mllog", {"iteration": 200, "ms": 4250.0, "loss": float("nan")}),
        (
            line("tracked_stats", {"throughput": 512.0, "loss_scale": 32768.0, "current_lr": 0.05}, step=20),
            "mllog",
            {"iteration": 20, "rate": 512.0, "scale": 32768.0, "lr": 0.05},
        ),
        (line("tracked_stats", {"train_step_timing in s": 36.25}, step=4194304), "mllog", {"iteration": 4194304, "ms": 36250.0}),
        (line("train_loss", 1.3726, samples_count=576, lr=0.0004), "mllog_loss", {"iteration": 576, "loss": 1.3726, "lr": 0.0004}),
        (line("train_loss", 1.3726, samples_count=576), "mllog_loss", {"iteration": 576, "loss": 1.3726}),
    ],
)
def test_reads(raw: str, shape: str, values: dict[str, float]) -> None:
    step = read_step(raw.encode())
    assert step is not None
    assert step[0] == shape
    assert step[1] == pytest.approx(values, nan_ok=True)


@pytest.mark.parametrize(
    "raw",
    [
        line("tracked_stats", {"validation_step_time": 2.8}, step=768),
        line("tracked_stats", {"warmup_time": 382.3}, step=0),
        line("tracked_stats", {"throughput": 14711195.2}, step=0.8498),  # a share of an epoch
        line("tracked_stats", {"throughput": 9.5, "epoch_num": 3}, step=[1, 2]),
        line("tracked_stats", {"throughput": 9.5}, epoch_num=3),
        line("eval_accuracy", 0.72, epoch_num=3),
        line("eval_loss", 0.72, step=3),
        line("run_stop", None, status="success", step_num=3),
    ],
)
def test_leaves(raw: str) -> None:
    assert read_step(raw.encode()) is None


@pytest.mark.parametrize(("later", "found"), [(1, "oom.activations"), (2, None)])
def test_an_error_that_steps_follow_was_got_over(tmp_path: Path, later: int, found: str | None) -> None:
    log = tmp_path / "train.log"
    log.write_text(stats(768) + "\n" + OOM + "".join(stats(768 * number) + "\n" for number in range(2, 2 + later)))
    assert diagnose_logs([str(log)]).root_cause == found


@pytest.mark.parametrize(("status", "ended"), [("success", "completed"), ("aborted", "completed"), ("", "running")])
def test_the_end(tmp_path: Path, status: str, ended: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(stats(768) + "\n" + (line("run_stop", None, status=status) + "\n" if status else ""))
    assert diagnose_logs([str(log)]).run.ended == ended
