"""Ctrl-C at any moment: exit 130 or a complete report; no traceback, nothing half written, nothing and nobody left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.hostile.running import OOM, command, environ

STEP = (
    " iteration {:8d}/ 9000000 | consumed samples: {:12d} | elapsed time per iteration (ms): 117.6 | lm loss: 6.2E+00 | grad norm: 1.0 |\n"
)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 100 MB that end in an out-of-memory."""
    path = tmp_path_factory.mktemp("big") / "train.log"
    with open(path, "w") as file:
        for block in range(200):
            file.write("".join(STEP.format(step, step * 8) for step in range(block * 4_000, block * 4_000 + 4_000)))
        file.write("[rank3]: " + OOM)
    return path


def clean(err: bytes) -> None:
    assert b"Traceback" not in err, err
    assert b"KeyboardInterrupt" not in err, err
    assert b"Exception ignored" not in err, err


@pytest.mark.parametrize(
    "after", [0.05, 0.2, 0.5, 1.0, pytest.param(2.5, marks=pytest.mark.slow), pytest.param(5.0, marks=pytest.mark.slow)]
)
def test_at_a_moment(big: Path, after: float, tmp_path: Path) -> None:
    folder, cache = tmp_path / "out", tmp_path / "cache"
    folder.mkdir()
    target = folder / "report.json"
    environment = environ(XDG_CACHE_HOME=str(cache), TMPDIR=str(folder))
    process = subprocess.Popen(
        command("logs", str(big), "--format", "json", "--output", str(target)),
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    time.sleep(after)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert out == b""
    if process.returncode == -signal.SIGINT or b"site.py" in err or (b"Fatal Python error" in err and after < 0.5):
        pytest.skip("the interpreter itself was still starting")
    clean(err)
    assert process.returncode in (1, 130)
    if process.returncode == 130:
        assert os.listdir(folder) == []
    else:
        assert os.listdir(folder) == ["report.json"]
        assert json.loads(target.read_text())["root_cause"].startswith("oom.")
    assert [name for _, _, names in os.walk(cache) for name in names if not name.endswith((".json", ".hsdb"))] == []
    with pytest.raises(ProcessLookupError):  # nobody of its group is left
        os.killpg(process.pid, 0)


@pytest.mark.parametrize("rounds", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_twice_in_a_row(big: Path, rounds: int) -> None:
    """The impatient press it again."""
    for number in range(rounds):
        process = subprocess.Popen(command("logs", str(big)), env=environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.6 + number * 0.05)
        process.send_signal(signal.SIGINT)
        time.sleep(0.003)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=300)[1]
        assert b"memdoctor/" not in err or b"Traceback" not in err, err


def test_while_standard_input_is_waited_for() -> None:
    process = subprocess.Popen(command("logs", "-"), env=environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"one line\n")
    process.stdin.flush()
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    clean(err)
    assert out == b""
    assert process.returncode == 130
