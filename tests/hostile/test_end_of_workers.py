"""Ctrl-C and kills while several processes read: nobody is left behind, and what is said is one line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.hostile.running import command, environ

STEP = (
    " iteration {:8d}/ 9000000 | consumed samples: {:12d} | elapsed time per iteration (ms): 117.6 | lm loss: 6.2E+00 | grad norm: 1.0 |\n"
)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two logs of some 100 MB each."""
    first = tmp_path_factory.mktemp("big") / "first.log"
    with first.open("w") as file:
        for block in range(200):
            file.write("".join(STEP.format(step, step * 8) for step in range(block * 4_000, block * 4_000 + 4_000)))
    return [str(first), str(shutil.copyfile(first, first.with_name("second.log")))]


def group(leader: int) -> list[int]:
    """The live processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getpgid(int(entry.name)) == leader and ") Z " not in (entry / "stat").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def begun(two: list[str]) -> subprocess.Popen[bytes]:
    """A command that reads with two processes, once they are there."""
    process = subprocess.Popen(
        command("logs", *two, "--workers", "2"), env=environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    until = time.monotonic() + 60
    while len(group(process.pid)) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("after", [0.0, 0.3])
@pytest.mark.parametrize("whole_group", [True, False])
def test_ctrl_c(two: list[str], after: float, whole_group: bool) -> None:
    """A terminal tells the whole group, ``kill -INT`` the first process alone."""
    process = begun(two)
    time.sleep(after)
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")
    assert group(process.pid) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_the_first_process(two: list[str], number: signal.Signals) -> None:
    process = begun(two)
    process.send_signal(number)
    process.communicate(timeout=300)
    until = time.monotonic() + 30
    while group(process.pid):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_killed_worker_is_one_clear_error(two: list[str]) -> None:
    process = begun(two)
    worker = next(pid for pid in group(process.pid) if pid != process.pid)
    os.kill(worker, signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (3, b"")
    assert err.startswith(b"memdoctor: ")
    assert err.count(b"\n") == 1
    assert b"--workers 1" in err
    assert group(process.pid) == []
