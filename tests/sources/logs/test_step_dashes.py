"""verl's step lines: what is read of them, what is not, and that a job which prints them is seen to go on."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from memdoctor.pipeline import diagnose_logs
from memdoctor.sources.logs.step_shapes import dashes
from memdoctor.sources.logs.steps import read_step

OOM = "(TaskRunner pid=9) [prompt] It says 'RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB'. Why?\n"


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (
            b"(TaskRunner pid=991) step:41 - global_seqlen/mean:6521.0 - actor/pg_loss:-0.004 - actor/grad_norm:0.31 - actor/lr:1e-06 - "
            b"timing_s/step:91.25 - perf/throughput:1020.5",
            {"iteration": 41, "grad_norm": 0.31, "lr": 1e-6, "ms": 91250.0, "tokens": 1020.5},
        ),
        (b"step:7 - actor/grad_norm:np.float64(nan) - actor/lr:0.0", {"iteration": 7, "grad_norm": math.nan, "lr": 0.0}),
        (b"step:12 - train/loss:0.93 - train/lr(1e-3):0.01", {"iteration": 12, "loss": 0.93}),
    ],
)
def test_reads(raw: bytes, values: dict[str, float]) -> None:
    step = read_step(raw)
    assert step is not None
    assert step[0] == "dashes"
    assert step[1] == pytest.approx(values, nan_ok=True)


@pytest.mark.parametrize(
    "raw", [b"step:12", b"step:12 - done", b"step:x - actor/lr:1", b"laststep:3 - actor/lr:1", b"a step: 3 - actor/lr:1"]
)
def test_leaves(raw: bytes) -> None:
    assert dashes.read(raw) is None


@pytest.mark.parametrize(("later", "found"), [(0, "oom.activations"), (1, "oom.activations"), (2, None)])
def test_an_error_that_steps_follow_was_got_over(tmp_path: Path, later: int, found: str | None) -> None:
    log = tmp_path / "train.log"
    steps = [f"(TaskRunner pid=9) step:{number} - actor/grad_norm:0.3 - timing_s/step:9.1\n" for number in range(1, 4)]
    log.write_text(steps[0] + OOM + "".join(steps[1 : 1 + later]))
    assert diagnose_logs([str(log)]).root_cause == found
