"""A job that is ended while its ranks wait: what waited before the signal came is not a consequence of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs

GAVE_UP = 13 * 3600 + 600  # seconds of the day at which the ranks give up, ten minutes after they began to wait
WORLD = (
    "using world size: 8, data-parallel size: 8, context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1"
)


def _clock(second: int) -> str:
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _timeouts(stamped: bool = True) -> list[str]:
    lines = []
    for rank in range(4):
        head = f"[rank{rank}]:[E{f'1129 {_clock(GAVE_UP)}.00000000{rank}' if stamped else ''} ProcessGroupNCCL.cpp:632] [Rank {rank}] "
        lines += [
            head
            + "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=48213, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, "
            "Timeout(ms)=600000) ran for 600011 milliseconds before timing out.",
            head + "To avoid data inconsistency, we are taking the entire process down.",
        ]
    return lines


def _kill(after: int, kind: str) -> str:
    """What is printed ``after`` seconds after the ranks gave up."""
    clock = _clock(GAVE_UP + after)
    return {
        "slurm": f"slurmstepd: error: *** STEP 4711.0 ON node-01 CANCELLED AT 2026-11-29T{clock} ***",
        "torchrun": f"W1129 {clock}.000000 4242 torch/distributed/elastic/agent/server/api.py:723] Received 15 death signal, shutting down workers",
        "undated": "W torch/distributed/elastic/agent/server/api.py:723] Received 15 death signal, shutting down workers",
    }[kind]


def _diagnosed(folder: Path, files: dict[str, list[str]]) -> Report:
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return diagnose_logs([str(folder)])


def _root(report: Report) -> tuple[str | None, set[str]]:
    """The cause, and what it explains."""
    return report.root_cause, {found.cause for found in report.diagnoses if found.explained_by == "d1"}


@pytest.mark.parametrize("kind", ["slurm", "torchrun"])
@pytest.mark.parametrize("after", [1, 3, 30, 300])
@pytest.mark.parametrize("split", [False, True], ids=["one_file", "a_file_of_the_launcher"])
def test_time_outs_that_were_printed_before_the_signal_are_the_matter(split: bool, after: int, kind: str, tmp_path: Path) -> None:
    outs, kill = [WORLD, *_timeouts()], [_kill(after, kind)]
    report = _diagnosed(tmp_path, {"train.log": outs, "launcher.log": kill} if split else {"train.log": outs + kill})
    assert _root(report) == ("hang.straggler", {"job.killed"})


@pytest.mark.parametrize("after", [-3, -30, -300])
@pytest.mark.parametrize("split", [False, True], ids=["one_file", "a_file_of_the_launcher"])
def test_so_are_waits_that_had_begun_before_the_signal(split: bool, after: int, tmp_path: Path) -> None:
    """The signal ends a job that stands already; its ranks give up a little later."""
    kill, outs = [_kill(after, "torchrun")], _timeouts()
    report = _diagnosed(tmp_path, {"train.log": [WORLD, *outs], "launcher.log": kill} if split else {"train.log": [WORLD, *kill, *outs]})
    assert _root(report) == ("hang.straggler", {"job.killed"})


@pytest.mark.parametrize("after", [-660, -900])
@pytest.mark.parametrize("split", [False, True], ids=["one_file", "a_file_of_the_launcher"])
def test_waits_that_began_after_the_signal_are_its_consequence(split: bool, after: int, tmp_path: Path) -> None:
    kill, outs = [_kill(after, "torchrun")], _timeouts()
    report = _diagnosed(tmp_path, {"train.log": [WORLD, *outs], "launcher.log": kill} if split else {"train.log": [WORLD, *kill, *outs]})
    assert _root(report) == ("job.killed", {"hang.straggler"})


def test_without_times_the_lines_of_one_file_tell(tmp_path: Path) -> None:
    kill, outs = [_kill(0, "undated")], _timeouts(stamped=False)
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    assert _root(_diagnosed(tmp_path / "before", {"train.log": [WORLD, *kill, *outs]}))[0] == "job.killed"
    assert _root(_diagnosed(tmp_path / "after", {"train.log": [WORLD, *outs, *kill]}))[0] == "hang.straggler"


def test_where_nothing_tells_the_order_a_kill_leaves_nobody_the_minutes_of_a_time_out(tmp_path: Path) -> None:
    report = _diagnosed(tmp_path, {"train.log": [WORLD, *_timeouts(stamped=False)], "launcher.log": [_kill(0, "undated")]})
    assert _root(report) == ("hang.straggler", {"job.killed"})


def test_a_node_that_goes_down_is_noticed_late_and_still_the_cause(tmp_path: Path) -> None:
    """The scheduler waits minutes before it calls a node dead: the ranks of the others had begun to wait for it long before."""
    clock = _clock(GAVE_UP - 300)
    gone = f"slurmstepd: error: *** STEP 4711.0 ON node-01 CANCELLED AT 2026-11-29T{clock} DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    report = _diagnosed(tmp_path, {"train.log": [WORLD, gone, *_timeouts()]})
    assert report.diagnoses[0].rule == "job/node_failure"
