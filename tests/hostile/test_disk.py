"""What lies on disks beside logs: pipes, sockets, devices, loops, floods of files, files that fail while they are read."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from memdoctor.cli import main
from memdoctor.sources.logs import stored
from tests.hostile.running import OOM, command, environ, measured, memdoctor
from tests.hostile.test_big import FEW, MANY

FAILED = "[rank3]: " + OOM


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """A folder with one log and everything that is none."""
    (tmp_path / "train.log").write_text(FAILED)
    os.mkfifo(tmp_path / "fifo.log")
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(tmp_path)  # the name of a socket is short
    try:
        listener.bind("socket.log")
    finally:
        os.chdir(here)
        listener.close()
    for name, target in {
        "null": "/dev/null",
        "zero": "/dev/zero",
        "random": "/dev/urandom",
        "full": "/dev/full",
        "tty": "/dev/tty",
    }.items():
        (tmp_path / f"{name}.log").symlink_to(target)
    (tmp_path / "broken.log").symlink_to("nowhere")
    (tmp_path / "itself.log").symlink_to("itself.log")
    (tmp_path / "ping.log").symlink_to("pong.log")
    (tmp_path / "pong.log").symlink_to("ping.log")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "same").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "root").symlink_to("/")
    (tmp_path / "empty.log").touch()
    return tmp_path


def test_a_folder_of_everything(zoo: Path) -> None:
    ended = measured("logs", str(zoo), "--format", "json")
    assert (ended.code, ended.err) == (1, "")
    assert ended.peak < FEW
    assert ended.report["root_cause"].startswith("oom.")
    told = {os.path.basename(skip["source"]) for skip in ended.report["skips"]}
    assert {"fifo.log", "socket.log", "zero.log", "random.log", "broken.log", "itself.log", "ping.log", "up", "root"} <= told
    assert [Path(each["path"]).name for each in ended.report["inputs"] if each["lines"]] == ["train.log"]


@pytest.mark.parametrize("name", ["socket", "null", "zero", "random", "full", "tty", "broken", "itself", "ping", "empty"])
def test_each_of_them_named(zoo: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """None can be read: one line that says so, and never an endless one."""
    assert main(["logs", str(zoo / f"{name}.log")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{name}.log" in err
    assert err.count("\n") == 1


def test_a_fifo_that_is_named_and_written_to(zoo: Path) -> None:
    with subprocess.Popen(command("logs", str(zoo / "fifo.log")), env=environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        with open(zoo / "fifo.log", "w") as pipe:
            pipe.write(FAILED)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert b"oom." in out
    assert err == b""


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_flood_of_empty_files(count: int, tmp_path: Path) -> None:
    folder = tmp_path / "flood"
    folder.mkdir()
    for number in range(count):
        os.close(os.open(folder / f"part{number}.log", os.O_CREAT | os.O_WRONLY))
    ended = measured("logs", str(folder), "--format", "json")
    assert ended.peak < MANY
    assert ended.code in (0, 2)
    assert len(ended.err) < 10_000
    (folder / "train.log").write_text(FAILED)
    ended = measured("logs", str(folder))
    assert (ended.code, ended.err) == (1, "")
    assert ended.peak < MANY
    assert len(ended.out) < 20_000


def test_deep_folders_and_long_names(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(400):  # deeper than PATH_MAX
        os.mkdir("d" * 60, dir_fd=folder)
        inner = os.open("d" * 60, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    (tmp_path / ("n" * 251 + ".log")).write_text(FAILED)
    ended = memdoctor("logs", str(tmp_path))
    assert (ended.code, ended.err) == (1, "")
    subprocess.run(["rm", "-rf", str(tmp_path / ("d" * 60))], check=True)


@pytest.mark.parametrize(
    "path",
    ["/proc/self/mem", "/proc/self/pagemap", "/proc/self/environ", "/proc/self", "/dev/stdin/x", "/dev/fd/99", "\0", ""],
)
def test_files_of_the_system(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["logs", path, "--format", "json"])
    err = capsys.readouterr().err
    assert code in (0, 1, 2)
    assert "Traceback" not in err
    assert "internal error" not in err


class Failing:
    """A raw stream that gives ``data`` and then an error."""

    def __init__(self, data: bytes, error: Exception) -> None:
        self._data, self._error = data, error

    def readinto(self, view: memoryview, /) -> int:
        if not self._data:
            raise self._error
        got = min(len(view), len(self._data), 1_000)
        view[:got], self._data = self._data[:got], self._data[got:]
        return got

    def close(self) -> None:
        self._data = b""


@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), OSError(116, "Stale file handle"), ValueError("closed"), PermissionError(13, "x")]
)
def test_a_read_error_midway(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What was read before counts, and the report says where reading stopped."""
    (tmp_path / "train.log").write_text(FAILED)
    monkeypatch.setattr("memdoctor.sources.logs.reading.open_stored", lambda path: stored.Stored(Failing(FAILED.encode() * 5, error)))
    assert main(["logs", str(tmp_path / "train.log"), "--format", "json"]) == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert err == ""
    assert report["root_cause"].startswith("oom.")
    assert any("read error after" in skip["reason"] for skip in report["skips"])


def test_a_file_that_is_taken_away_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Between the look at the folder and the reading."""
    path = tmp_path / "train.log"
    path.write_text(FAILED)

    def gone(name: str) -> stored.Stored:
        path.unlink(missing_ok=True)
        return stored.open_stored(name)

    monkeypatch.setattr("memdoctor.sources.logs.reading.open_stored", gone)
    assert main(["logs", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
