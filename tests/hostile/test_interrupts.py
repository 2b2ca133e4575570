"""Ctrl-C at any moment: exit 130 or a complete report; no traceback, nothing half written, nothing and nobody left behind."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
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


def begun(process: subprocess.Popen[bytes], after: float) -> None:
    """Wait until the command has taken the signals in hand, and ``after`` seconds more. Before that the interpreter is still starting."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None and not int(Path(f"/proc/{process.pid}/status").read_text().partition("SigCgt:")[2].split()[0], 16) & bit:
        time.sleep(0.002)
    time.sleep(after)


def settled(code: int, folder: Path, cache: Path) -> None:
    """Interrupted, or at its end with an error found; the report is there as a whole or not at all, and nothing is half done."""
    assert code in (1, 130)
    assert os.listdir(folder) == ["report.json"] or (code == 130 and os.listdir(folder) == [])
    for report in folder.iterdir():
        assert json.loads(report.read_text())["root_cause"].startswith("oom.")
    assert [name for _, _, names in os.walk(cache) for name in names if name.endswith(".tmp")] == []


@pytest.mark.parametrize(
    "after", [0.0, 0.1, 0.4, 1.0, pytest.param(2.5, marks=pytest.mark.slow), pytest.param(5.0, marks=pytest.mark.slow)]
)
def test_at_a_moment(big: Path, after: float, tmp_path: Path) -> None:
    folder, cache = tmp_path / "out", tmp_path / "cache"
    folder.mkdir()
    process = subprocess.Popen(
        command("logs", str(big), "--format", "json", "--output", str(folder / "report.json")),
        env=environ(XDG_CACHE_HOME=str(cache), TMPDIR=str(folder)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    begun(process, after)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert out == b""
    clean(err)
    settled(process.returncode, folder, cache)
    with pytest.raises(ProcessLookupError):  # nobody of its group is left
        os.killpg(process.pid, 0)


# Runs the command, and presses Ctrl-C each time that so many functions were called: no moment is too short to be hit. Tells how many there were.
_AT_CALL = """\
import os, signal, sys
from memdoctor.entry import run

at, calls = {at!r}, 0

def count(frame, event, argument):
    global calls
    calls += 1
    if calls in at:
        os.kill(os.getpid(), signal.SIGINT)
    if calls == max(at):
        sys.setprofile(None)

sys.setprofile(count)
code = run()
sys.setprofile(None)
if max(at) > calls:
    print(calls)
sys.exit(code)
"""
NEVER = 1 << 40


@pytest.mark.parametrize(("moments", "presses"), [(4, 3), *(pytest.param(48, presses, marks=pytest.mark.slow) for presses in (1, 3))])
def test_at_any_call(moments: int, presses: int, tmp_path: Path) -> None:
    """From the first function to the last; every eighth time with nothing in the cache, which is then written, too."""
    log, folder, warm, cold = (tmp_path / name for name in ("train.log", "out", "warm", "cold"))
    log.write_text("".join(STEP.format(step, step * 8) for step in range(50)) + "[rank3]: " + OOM)
    folder.mkdir()

    def run(at: list[int], cache: Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-c", _AT_CALL.format(at=at), "logs", str(log), "--format", "json", "--output", str(folder / "report.json")],
            env=environ(XDG_CACHE_HOME=str(cache), TMPDIR=str(folder)), capture_output=True, timeout=300, check=False,
        )  # fmt: skip

    calls = {warm: [int(run([NEVER], warm).stdout) for _ in range(2)][1]}
    assert calls[warm] > 10_000
    chance = random.Random(presses)
    for number in range(moments):
        shutil.rmtree(folder)
        folder.mkdir()
        shutil.rmtree(cold, ignore_errors=True)
        cache = cold if number % 8 == 3 else warm
        if cache not in calls:
            calls[cold] = int(run([NEVER], cold).stdout)
            continue
        first = 1 + chance.randrange(calls[cache])
        ended = run([first + press * chance.choice([1, 3, 20, 400]) for press in range(presses)], cache)
        assert ended.stderr.strip() == b"", (number, first, ended.stderr)
        assert ended.returncode == 130 or ended.stdout, (number, first)  # it went on to its end, and was told so
        settled(ended.returncode, folder, cache)


def test_while_step_lines_are_written(tmp_path: Path) -> None:
    """As soon as the file is begun: its beginning does not stay."""
    log, folder = tmp_path / "train.log", tmp_path / "out"
    log.write_text("".join(STEP.format(step, step * 8) for step in range(150_000)))
    folder.mkdir()
    process = subprocess.Popen(
        command("logs", str(log), "--series", str(folder / "steps.csv")), env=environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while process.poll() is None and os.listdir(folder) == []:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    clean(err)
    assert (process.returncode, out) == (130, b"")
    assert os.listdir(folder) in ([], ["steps.csv"])
    assert [path for path in folder.iterdir() if path.read_bytes().count(b"\n") <= 150_000] == []


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_twice_in_a_row(big: Path, rounds: int) -> None:
    """The impatient press it again."""
    for number in range(rounds):
        process = subprocess.Popen(command("logs", str(big)), env=environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        begun(process, number * 0.1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.003)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=300)[1]
        clean(err)
        assert process.returncode in (1, 130)


@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_that_end(big: Path, wish: signal.Signals, tmp_path: Path) -> None:
    """A scheduler that ends the job, a terminal that is closed: tidied up in the same way."""
    folder, cache = tmp_path / "out", tmp_path / "cache"
    folder.mkdir()
    process = subprocess.Popen(
        command("logs", str(big), "--format", "json", "--output", str(folder / "report.json")),
        env=environ(XDG_CACHE_HOME=str(cache)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    begun(process, 0.5)
    process.send_signal(wish)
    out, err = process.communicate(timeout=300)
    assert out == b""
    clean(err)
    assert process.returncode in (1, 128 + wish)
    settled(1 if process.returncode == 1 else 130, folder, cache)


def test_within_code_that_is_made_at_run_time(tmp_path: Path) -> None:
    """As dataclasses and named tuples are: Python itself would end of it with a signal, although it was caught."""
    script = "from memdoctor import cli, entry; cli.main = lambda: exec('raise KeyboardInterrupt'); raise SystemExit(entry.run())"
    (tmp_path / "made.py").write_text(script)
    ended = subprocess.run([sys.executable, "-m", "made"], cwd=tmp_path, env=environ(), capture_output=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


def test_what_was_to_be_ignored_stays_so(tmp_path: Path) -> None:
    """``nohup``: who started the command wants it to go on."""
    log = tmp_path / "train.log"
    log.write_text("[rank3]: " + OOM)
    script = "import os, signal; from memdoctor import entry, cli; main = cli.main\n"
    script += "cli.main = lambda: (os.kill(os.getpid(), signal.SIGHUP), os.kill(os.getpid(), signal.SIGINT), main())[-1]; raise SystemExit(entry.run())"
    ended = subprocess.run(
        ["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh", sys.executable, "-c", script, "logs", str(log)],
        env=environ(), capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (1, b"")


@pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("after", [0.2, 1.0, *(pytest.param(number * 0.15, marks=pytest.mark.slow) for number in range(12))])
def test_while_several_processes_read(big: Path, after: float, wish: signal.Signals, tmp_path: Path) -> None:
    """Whoever is sent the signal alone takes its children along, even where it is killed; at the keyboard all of them get it."""
    folder, cache = tmp_path / "out", tmp_path / "cache"
    folder.mkdir()
    for rank in range(3):
        (tmp_path / f"rank_{rank}.log").symlink_to(big)
    process = subprocess.Popen(
        command("logs", *(str(path) for path in tmp_path.glob("*.log")), "--workers", "2", "--format", "json", "--output", str(folder / "report.json")),
        env=environ(XDG_CACHE_HOME=str(cache), TMPDIR=str(folder)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    begun(process, after)
    (os.killpg if wish == signal.SIGINT else os.kill)(process.pid, wish)
    out, err = process.communicate(timeout=300)
    assert out == b""
    clean(err)
    if wish != signal.SIGKILL:
        assert process.returncode in (1, 128 + wish)
        settled(1 if process.returncode == 1 else 130, folder, cache)
    for _ in range(100):  # those of one that was killed see it a moment later
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("a child is left")


def marked(mark: str) -> list[str]:
    """The processes that have ``mark`` in their environment: children, too, that left for a session of their own."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text())
    return found


@pytest.mark.parametrize("after", [0.0, 0.1, 0.3, *(pytest.param(number * 0.12, marks=pytest.mark.slow) for number in range(12))])
def test_while_a_machine_is_checked(after: float, tmp_path: Path) -> None:
    """Its probes run in children with sessions of their own, which the keyboard does not reach."""
    mark = f"MARK_OF_A_TEST={tmp_path}"
    process = subprocess.Popen(
        command("check", "--format", "json"), env=environ(XDG_CACHE_HOME=str(tmp_path), MARK_OF_A_TEST=str(tmp_path)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    begun(process, after)
    process.send_signal(signal.SIGINT)
    time.sleep(0.003)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    clean(err)
    assert process.returncode == 130 or (process.returncode in (0, 1, 2) and json.loads(out)), (process.returncode, err)
    until = time.monotonic() + 10
    while marked(mark):
        assert time.monotonic() < until, marked(mark)
        time.sleep(0.05)


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
