"""Where the report goes: full disks, closed pipes, readers that leave."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.running import OOM, command, environ, memdoctor


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "train.log").write_text("[rank3]: " + OOM)
    return str(tmp_path / "train.log")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one page."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(folder)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")


@needs_full
def test_output_to_a_full_device(log: str) -> None:
    ended = memdoctor("logs", log, "--output", "/dev/full")
    assert (ended.code, ended.out) == (2, b"")
    assert ended.err == "memdoctor: --output /dev/full: the report cannot be written: No space left on device\n"


@pytest.mark.parametrize("old", [None, "old\n"])
def test_output_to_a_full_disk(log: str, old: str | None, small_disk: Path) -> None:
    target = small_disk / "report.json"
    if old is not None:
        target.write_text(old)
    else:
        (small_disk / "filler").write_bytes(b"x" * 4_096)
    before = sorted(os.listdir(small_disk))
    ended = memdoctor("logs", log, "--format", "json", "--output", str(target))
    assert (ended.code, ended.out) == (2, b"")
    assert "No space left on device" in ended.err
    assert ended.err.count("\n") == 1
    assert sorted(os.listdir(small_disk)) == before
    assert old is None or target.read_text() == old


def test_a_cache_on_a_full_disk(log: str, small_disk: Path) -> None:
    """The cache may be impossible; the answer is not."""
    (small_disk / "filler").write_bytes(b"x" * 4_096)
    ended = memdoctor("logs", log, env=environ(XDG_CACHE_HOME=str(small_disk)))
    assert (ended.code, ended.err) == (1, "")
    assert b"oom." in ended.out
    assert [name for _, _, names in os.walk(small_disk) for name in names if name != "filler"] == []


@needs_full
@pytest.mark.parametrize("form", ["text", "json"])
def test_stdout_on_a_full_device(log: str, form: str) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command("logs", log, "--format", form), env=environ(), stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 2
    assert ended.stderr == b"memdoctor: stdout: the report cannot be written: No space left on device\n"


@needs_full
def test_stderr_on_a_full_device(tmp_path: Path) -> None:
    """Even the complaint cannot be written: the exit code still tells."""
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command("logs", str(tmp_path / "none")), env=environ(), stdout=subprocess.PIPE, stderr=full, check=False)
    assert ended.returncode == 2


@pytest.mark.parametrize("closed", ["0<&-", ">&-", "2>&-", "0<&- >&- 2>&-", ">&- 2>&-"])
def test_closed_streams(log: str, closed: str, tmp_path: Path) -> None:
    shell = f'exec "$@" {closed}'
    ended = subprocess.run(["sh", "-c", shell, "sh", *command("logs", log)], env=environ(), capture_output=True, check=False)
    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr
    assert b"oom." in ended.stdout or ">&-" in closed.replace("2>&-", "")
    missing = subprocess.run(
        ["sh", "-c", shell, "sh", *command("logs", str(tmp_path / "none"))], env=environ(), capture_output=True, check=False
    )
    assert missing.returncode == 2
    assert b"Traceback" not in missing.stderr


def test_standard_input_that_is_closed() -> None:
    ended = subprocess.run(["sh", "-c", 'exec "$@" 0<&-', "sh", *command("logs", "-")], env=environ(), capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [["-vv"], ["--format", "json"]])
def test_a_reader_that_takes_one_line(log: str, arguments: list[str]) -> None:
    """`| head -1`, with a report longer than a pipe holds."""
    many = Path(log)
    many.write_text("".join(f"[rank{rank}]: {OOM}" for rank in range(64)))
    pipe = 'set -o pipefail; "$@" | head -1'
    ended = subprocess.run(["bash", "-c", pipe, "bash", *command("logs", log, *arguments)], env=environ(), capture_output=True, check=False)
    assert ended.stdout.count(b"\n") == 1
    assert ended.stderr == b""
    assert ended.returncode == 1


def test_a_reader_that_is_gone_from_the_start(log: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    ended = subprocess.run(command("logs", log), env=environ(), stdout=theirs, stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    assert ended.returncode == 1
    assert ended.stderr == b""
