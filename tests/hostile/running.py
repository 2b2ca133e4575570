"""The whole command in a process of its own: what it ends with, what it says, how much memory it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

TOP = Path(__file__).resolve().parents[2]
TIMEOUT = 900  # seconds: against a test that never ends, not a measurement
# The peak is read in the child itself: what wait4 tells includes the size of the process that forked it.
_MEASURED = """\
import sys
from memdoctor.entry import run
code = run()
with open({peak!r}, "w") as file:
    file.write(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
sys.exit(code)
"""
MIB = 1 << 20
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.20 GiB is free. "
    "Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 74.10 GiB is allocated by PyTorch, and "
    "512.00 MiB is reserved by PyTorch but unallocated.\n"
)


@dataclass(frozen=True)
class Ended:
    """How the command ended; ``peak`` is the most memory it took in bytes, where that was asked for."""

    code: int
    out: bytes
    err: str
    peak: int = 0

    @property
    def report(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def environ(**more: str) -> dict[str, str]:
    """The environment of a child: this checkout, an own cache, no colour forced."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMDOCTOR")}
    return {**kept, "PYTHONPATH": str(TOP), "PYTHONUTF8": "1", **more}


def command(*arguments: str | bytes) -> list[str | bytes]:
    return [sys.executable, "-m", "memdoctor", *arguments]


def memdoctor(
    *arguments: str | bytes, cwd: Path | None = None, stdin: IO[bytes] | int | None = None, env: Mapping[str, str] | None = None
) -> Ended:
    """Run ``memdoctor`` to its end; fails where it shows a traceback."""
    ended = subprocess.run(
        command(*arguments), cwd=cwd, stdin=stdin, env=env or environ(), capture_output=True, timeout=TIMEOUT, check=False
    )
    return checked(Ended(ended.returncode, ended.stdout, ended.stderr.decode()))


def measured(*arguments: str) -> Ended:
    """As ``memdoctor``, with the most memory that it took."""
    with tempfile.TemporaryDirectory() as folder:
        peak = Path(folder, "peak")
        whole = [sys.executable, "-c", _MEASURED.format(peak=str(peak)), *arguments]
        ended = subprocess.run(whole, env=environ(), stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)
        return checked(Ended(ended.returncode, ended.stdout, ended.stderr.decode(), int(peak.read_text()) * 1024))


def checked(ended: Ended) -> Ended:
    """``ended``, which must be an end that memdoctor chose: no traceback, no fault of its own, no signal."""
    assert "Traceback" not in ended.err, ended.err
    assert "internal error" not in ended.err, ended.err
    assert ended.code in (0, 1, 2, 130), (ended.code, ended.err)
    return ended
