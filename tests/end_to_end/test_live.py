"""A job that hangs now, from the command line: real processes, real stacks where torch and py-spy are there, a stand-in for py-spy and RAS otherwise."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stand_in import spy
from tests.stand_in.ras import BEHIND, GOOD, SILENT, Server

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
HANG = """\
import datetime, sys, time
import torch, torch.distributed as dist


def load_next_batch():
    time.sleep(600)


def train():
    for step in range(3):
        loss = torch.ones(4)
        if step == 2 and dist.get_rank() == 1:
            load_next_batch()
        dist.all_reduce(loss)
        print("step", step, flush=True)


dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=10))
train()
"""
Processes = list[subprocess.Popen[bytes]]


@pytest.fixture
def job() -> Iterator[Processes]:
    """Processes of a job; all are ended in the end."""
    processes: Processes = []
    yield processes
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _environ(rank: int, **more: str) -> dict[str, str]:
    return {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", **more}


def _sleep(job: Processes, **by_rank: str) -> list[str]:
    """Two processes that do nothing; the stand-in shows the stack that ``rank0`` and ``rank1`` name, and makes the trouble of ``trouble``."""
    for rank in range(2):
        more = {"SPY_STACK": by_rank.get(f"rank{rank}", "reduce")}
        if by_rank.get("trouble"):
            more["SPY_TROUBLE"] = by_rank["trouble"]
        job.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=_environ(rank, **more)))
    time.sleep(0.3)
    return [argument for process in job for argument in ("--live", str(process.pid))]


def _run(*arguments: str, **variables: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, report and stderr of ``memdoctor logs``."""
    done = subprocess.run(
        [sys.executable, "-m", "memdoctor", "logs", "--format", "json", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        timeout=90,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def _with_spy(folder: Path) -> str:
    spy.install(folder)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_the_rank_that_does_not_enter_is_named(job: Processes, tmp_path: Path) -> None:
    code, report, _ = _run(*_sleep(job, rank1="load"), PATH=_with_spy(tmp_path))
    assert (code, report["root_cause"]) == (1, "hang.straggler")
    (found,) = report["diagnoses"]
    assert (found["rule"], found["ranks"], found["confidence"]) == ("hang/stack_absent", [1], "likely")
    assert "not in all_reduce" in found["message"]
    assert "load_next_batch (hang.py:4)" in found["message"]
    assert found["evidence"][0]["path"] == "live/rank_1.txt"
    assert report["run"]["ended"] == "running"
    assert [file["path"] for file in report["inputs"]] == ["live/rank_0.txt", "live/rank_1.txt"]


def test_all_in_one_collective_blames_nobody(job: Processes, tmp_path: Path) -> None:
    _, report, _ = _run(*_sleep(job), PATH=_with_spy(tmp_path))
    (found,) = report["diagnoses"]
    assert (found["rule"], found["ranks"], found["confidence"]) == ("hang/stack_together", [0, 1], "possible")


def test_ranks_that_move_do_not_hang(job: Processes, tmp_path: Path) -> None:
    code, report, _ = _run(*_sleep(job, rank1="load", trouble="moves"), PATH=_with_spy(tmp_path))
    assert (code, report["diagnoses"]) == (0, [])


def test_without_stacks_the_system_still_tells_of_a_stopped_process(job: Processes, tmp_path: Path) -> None:
    arguments = _sleep(job, trouble="denied")
    job[1].send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    _, report, _ = _run(*arguments, PATH=_with_spy(tmp_path))
    assert [(found["rule"], found["ranks"]) for found in report["diagnoses"]] == [("hang/process_stopped", [1])]
    assert any("Permission Denied" in skip["reason"] for skip in report["skips"])


@pytest.mark.parametrize(
    ("answer", "rule", "ranks"),
    [(BEHIND, "hang/ras_behind", [2, 5]), (SILENT, "hang/ras_silent", [3]), (GOOD, None, [])],
    ids=["behind", "silent", "good"],
)
def test_what_ras_says_is_judged(answer: str, rule: str | None, ranks: list[int], job: Processes, tmp_path: Path) -> None:
    with Server(answer) as server:
        _, report, _ = _run(*_sleep(job, trouble="denied"), PATH=_with_spy(tmp_path), NCCL_RAS_ADDR=server.address)
    assert [(found["rule"], found["ranks"]) for found in report["diagnoses"]] == ([(rule, ranks)] if rule else [])


def test_logs_may_stand_beside_it(job: Processes, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    code, report, _ = _run(*_sleep(job, rank1="load"), str(log), PATH=_with_spy(tmp_path))
    assert code == 1
    assert len(report["inputs"]) == 3
    assert {found["rule"] for found in report["diagnoses"]} >= {"hang/stack_absent"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--live", "999999999"], "--live 999999999: no such process on this machine; give the PID"),
        (["--live", "train.py"], "--live 'train.py': not a process; give the PID"),
        ([], "Missing argument 'PATH...'"),
    ],
)
def test_what_cannot_be_looked_at_is_one_clear_error(arguments: list[str], said: str) -> None:
    code, _, stderr = _run(*arguments)
    assert code == 2
    assert said in stderr
    assert "Traceback" not in stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of somebody else")
def test_a_process_of_another_user_is_refused(job: Processes) -> None:
    job.append(subprocess.Popen(["sleep", "600"], user="nobody"))
    time.sleep(0.2)
    code, _, stderr = _run("--live", str(job[0].pid))
    assert code == 2
    assert "belongs to nobody" in stderr


def test_a_process_that_is_no_python_is_an_error(job: Processes, tmp_path: Path) -> None:
    """Nothing that could be looked at is left; whether py-spy is installed does not matter."""
    job.append(subprocess.Popen(["sleep", "600"]))
    time.sleep(0.2)
    pid = str(job[0].pid)
    for path in (_with_spy(tmp_path), "/nowhere"):
        code, report, stderr = _run("--live", pid, PATH=path)
        assert (code, report) == (2, {})
        assert f"--live {pid}: not a Python process (" in stderr
        assert "so its stack cannot be read; give the PID of a training process" in stderr
        assert stderr.count("\n") == 1


def test_the_python_below_a_shell_is_offered(job: Processes, tmp_path: Path) -> None:
    job.append(
        subprocess.Popen(["sh", "-c", f"{sys.executable} -c 'import time; time.sleep(600)' & echo $!; wait"], stdout=subprocess.PIPE)
    )
    assert job[0].stdout is not None
    with job[0].stdout as said:
        inner = int(said.readline())
    time.sleep(0.3)
    try:
        code, _, stderr = _run("--live", str(job[0].pid), PATH=_with_spy(tmp_path))
    finally:
        os.kill(inner, signal.SIGKILL)
    assert code == 2
    assert stderr.endswith(f"so its stack cannot be read; below it runs Python: {inner}\n")


def test_beside_others_it_is_a_skip_and_a_line_on_stderr(job: Processes, tmp_path: Path) -> None:
    arguments = _sleep(job, rank1="load")
    job.append(subprocess.Popen(["sleep", "600"]))
    time.sleep(0.2)
    code, report, stderr = _run(*arguments, "--live", str(job[2].pid), PATH=_with_spy(tmp_path))
    assert (code, report["root_cause"]) == (1, "hang.straggler")
    (skip,) = report["skips"]
    assert skip["source"] == f"stack of process {job[2].pid}"
    assert skip["reason"].startswith("not a Python process (")
    assert stderr.startswith(f"memdoctor: --live {job[2].pid}: not a Python process (")
    assert stderr.count("\n") == 1


def test_a_log_beside_it_is_read(job: Processes, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    job.append(subprocess.Popen(["sleep", "600"]))
    time.sleep(0.2)
    code, report, stderr = _run("--live", str(job[0].pid), str(log), PATH="/nowhere")
    assert (code, report["root_cause"]) == (1, "oom.activations")
    assert any(skip["reason"].startswith("not a Python process (") for skip in report["skips"])
    assert "its stack cannot be read" in stderr


def test_one_that_is_stopped_is_still_told(job: Processes) -> None:
    job.append(subprocess.Popen(["sleep", "600"]))
    job[0].send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    _, report, _ = _run("--live", str(job[0].pid), PATH="/nowhere")
    assert [found["rule"] for found in report["diagnoses"]] == ["hang/process_stopped"]


def test_without_py_spy_a_python_process_is_no_error(job: Processes) -> None:
    code, report, stderr = _run(*_sleep(job), PATH="/nowhere")
    assert (code, stderr) == (0, "")
    if not (Path(sys.executable).parent / "py-spy").exists():
        assert [skip["source"] for skip in report["skips"]] == ["stacks"]


def _real() -> tuple[str, str]:
    """A Python with torch, and py-spy: this one's own, or those that MEMDOCTOR_TORCH_PYTHON and the path name."""
    python = os.environ.get("MEMDOCTOR_TORCH_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_gloo_available()"], capture_output=True).returncode:
        pytest.skip("needs torch (or MEMDOCTOR_TORCH_PYTHON, a Python that has it)")
    beside = Path(python).parent / "py-spy"
    tool = shutil.which("py-spy") or (str(beside) if beside.exists() else None)
    if tool is None:
        pytest.skip("needs py-spy")
    return python, str(Path(tool).parent)


def test_two_real_ranks_of_which_one_does_not_enter(job: Processes, tmp_path: Path) -> None:
    python, folder = _real()
    script = tmp_path / "hang.py"
    script.write_text(HANG)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    outputs = [tmp_path / f"output_{rank}" for rank in range(2)]
    for rank in range(2):
        with open(outputs[rank], "wb") as output:
            job.append(
                subprocess.Popen(
                    [python, str(script)], env=_environ(rank, MASTER_ADDR="127.0.0.1", MASTER_PORT=port), stdout=output, stderr=output
                )
            )
    patience = time.monotonic() + 240
    while not all("step 1" in output.read_text() for output in outputs):
        assert time.monotonic() < patience, outputs[0].read_text()
        time.sleep(0.2)
    time.sleep(1)
    _, report, _ = _run(
        *(part for process in job for part in ("--live", str(process.pid))), PATH=f"{folder}{os.pathsep}{os.environ['PATH']}"
    )
    if any("Permission" in skip["reason"] or "Operation not permitted" in skip["reason"] for skip in report["skips"]):
        pytest.skip("this system lets nobody look into other processes")
    (found,) = report["diagnoses"]
    assert (report["root_cause"], found["ranks"]) == ("hang.straggler", [1])
    assert "load_next_batch" in found["message"]


@pytest.mark.parametrize("named", [True, False], ids=["with ranks", "bare"])
def test_dumps_of_many_processes_in_one_file(named: bool, tmp_path: Path) -> None:
    """As `for p in $(pgrep ...); do py-spy dump --pid $p; done > stacks.txt` makes it."""
    parts = []
    for rank in range(32):
        pid = 5_000 + rank
        if named:
            parts.append(
                f"memdoctor live: process {pid} rank {rank} local {rank} world 32 on node-01: state S, CPU 0%, for 90 s, command python hang.py\n"
            )
        frames = "\n".join(f"    {frame}" for frame in spy.STACKS["load" if rank == 17 else "reduce"])
        parts.append(
            f'Process {pid}: python hang.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread {pid} (idle): "MainThread"\n{frames}\n'
        )
    log = tmp_path / "stacks.txt"
    log.write_text("".join(parts))
    _, report, _ = _run(str(log))
    (found,) = report["diagnoses"]
    assert (found["rule"], found["ranks"]) == ("hang/stack_absent", [17] if named else [])
    assert "with 31 others, but at" in found["message"]
    assert "--pid 5017" in found["fixes"][0]["command"]
