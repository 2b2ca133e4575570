"""Which processes are looked at, what is told of them, and which are refused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memdoctor.errors import InputError
from memdoctor.sources.live.processes import find

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
SLEEP = "import time; time.sleep(600)"
RANKS = "import subprocess, sys, os\nfor r in range(2): subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], env={**os.environ, 'RANK': str(r), 'LOCAL_RANK': str(r), 'WORLD_SIZE': '2'})\nimport time; time.sleep(600)"


class Started:
    """Starts processes, each in a session of its own, and ends them with all they started."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def __call__(
        self, code: str, *more: str, user: str | None = None, command: Sequence[str] = (), **variables: str
    ) -> subprocess.Popen[bytes]:
        environ = {key: value for key, value in os.environ.items() if key not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")} | variables
        process = subprocess.Popen(command or [sys.executable, "-c", code, *more], env=environ, start_new_session=True, user=user)
        self.processes.append(process)
        time.sleep(0.3)
        return process

    def end(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def start() -> Iterator[Started]:
    started = Started()
    yield started
    started.end()


def test_a_process_with_its_rank(start: Started) -> None:
    pid = start(SLEEP, RANK="3", LOCAL_RANK="1", WORLD_SIZE="8").pid
    (process,) = find([str(pid)])
    assert (process.pid, process.rank, process.local_rank, process.world_size) == (pid, 3, 1, 8)
    assert process.state == "S"
    assert process.cpu < 0.5
    assert "time.sleep" in process.command


def test_a_launcher_stands_for_its_workers_and_they_for_their_loaders(start: Started) -> None:
    launcher = start(RANKS)
    time.sleep(0.7)
    found = find([str(launcher.pid)])
    assert [process.rank for process in found] == [0, 1]
    assert launcher.pid not in [process.pid for process in found]


def test_torchrun_is_found_by_its_command(start: Started) -> None:
    launcher = start(RANKS, "/opt/venv/bin/torchrun")
    time.sleep(0.7)
    mine = {process.pid for process in find([str(launcher.pid)])}
    assert mine <= {process.pid for process in find(["torchrun"])}
    assert len(mine) == 2


def test_a_stopped_process_is_told_as_such(start: Started) -> None:
    process = start(SLEEP)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.1)
    assert find([str(process.pid)])[0].state == "T"


def test_a_process_that_computes_shows_it(start: Started) -> None:
    process = start("while True: pass")
    assert find([str(process.pid)])[0].cpu > 0.2


@pytest.mark.parametrize("target", ["0", "-1", "abc", "1e3", "", "12 34", "٣"])
def test_what_is_no_pid_is_said_so(target: str) -> None:
    with pytest.raises(InputError, match="not a process; give the PID"):
        find([target])


def test_a_process_that_is_gone_is_said_so() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(InputError, match=rf"--live {process.pid}: no such process"):
        find([str(process.pid)])


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of somebody else")
def test_a_process_of_another_user_is_refused(start: Started) -> None:
    process = start("", user="nobody", command=("sleep", "600"))
    with pytest.raises(InputError, match=rf"--live {process.pid}: that process belongs to nobody .* of its own user only"):
        find([str(process.pid)])


@pytest.mark.skipif(os.getuid() == 0, reason="root owns process 1")
def test_the_first_process_is_not_ours() -> None:
    with pytest.raises(InputError, match="of its own user only"):
        find(["1"])
