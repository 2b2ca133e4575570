"""Which processes are Python, and which Python processes run below one that is not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from memdoctor.sources.live.interpreter import below, program, runs_python
from memdoctor.sources.live.processes import find
from tests.sources.live.test_processes import SLEEP, Started, start  # noqa: F401

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
SHELL = ["sh", "-c", f"sh -c \"python3 -c '{SLEEP}' & wait\" & wait"]


def process(folder: Path, exe: str | None, maps: str | None) -> Path:
    """A folder as /proc has it."""
    if exe is not None:
        (folder / "exe").symlink_to(exe)
    if maps is not None:
        (folder / "maps").write_text(maps)
    return folder


@pytest.mark.parametrize(
    ("exe", "maps", "is_python"),
    [
        ("/usr/bin/python3.11", "", True),
        ("/opt/conda/bin/pypy3", "", True),
        ("/opt/venv/bin/python3.12 (deleted)", "", True),
        ("/opt/app/trainer", "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libpython3.11.so.1.0\n", True),
        ("/opt/app/trainer", "7f00-7f01 r-xp 00000000 08:01 12 /opt/app/lib/_ssl.cpython-311-x86_64-linux-gnu.so\n", True),
        ("/usr/bin/sleep", "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/x86_64-linux-gnu/libc.so.6\n", False),
        ("/home/python/bin/sleep", "7f00-7f01 r-xp 00000000 08:01 12 /home/python/bin/sleep\n", False),
        ("/usr/bin/sleep", "", None),
        ("/usr/bin/sleep", None, None),
        (None, None, None),
    ],
)  # fmt: skip
def test_by_its_program_or_by_what_it_has_loaded(exe: str | None, maps: str | None, is_python: bool | None, tmp_path: Path) -> None:
    assert runs_python(process(tmp_path, exe, maps)) is is_python


def test_real_ones(start: Started) -> None:  # noqa: F811
    python, sleep = start(SLEEP), start("", command=("sleep", "600"))
    assert runs_python(Path(f"/proc/{python.pid}")) is True
    assert runs_python(Path(f"/proc/{sleep.pid}")) is False
    assert program(Path(f"/proc/{sleep.pid}")) == Path(os.path.realpath(shutil.which("sleep") or "")).name


def test_what_runs_below_a_shell(start: Started) -> None:  # noqa: F811
    shell = start("", command=SHELL)
    found = below(shell.pid)
    assert [runs_python(Path(f"/proc/{pid}")) for pid in found] == [True]
    assert below(found[0]) == []
    (asked,) = find([str(shell.pid)])
    assert asked.pid == shell.pid
