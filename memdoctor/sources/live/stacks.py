"""Python stacks of running processes, by way of py-spy where it is installed. Nothing is installed, and nothing is asked of the process itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memdoctor.records import record

LIMIT = 10.0  # seconds for one process: a process whose memory cannot be read in that time is not going to answer
AT_ONCE = 8
LONGEST = 2_000_000  # bytes of one dump
MISSING = "py-spy is not installed, so the stacks are unknown: pip install py-spy (it needs no change to the job)"
_REASON = 200


@record
class Stack:
    """``text`` as py-spy prints it; ``problem`` says why there is none."""

    text: str = ""
    problem: str = ""


def tool() -> str | None:
    """Where py-spy is: on the path, or beside the Python that memdoctor runs on."""
    beside = Path(sys.executable).parent / "py-spy"
    return shutil.which("py-spy") or (str(beside) if os.access(beside, os.X_OK) else None)


def dump(pids: Sequence[int], command: str, limit: float = LIMIT) -> dict[int, Stack]:
    """The stacks of ``pids``; each has ``limit`` seconds."""
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, max(1, len(pids)))) as pool:
        return dict(zip(pids, pool.map(lambda pid: _dump(pid, command, limit), pids), strict=True))


def _dump(pid: int, command: str, limit: float) -> Stack:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # a pipe would be held open by whoever it starts
        try:
            process = subprocess.Popen(
                [command, "dump", "--pid", str(pid)], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"},
            )  # fmt: skip
        except OSError as error:
            return Stack(problem=f"py-spy cannot be started: {error.strerror or error}")
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return Stack(problem=f"py-spy gave no answer within {limit:g} s")
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        err.seek(0)
        text = out.read(LONGEST).decode("utf-8", "replace")
        if code == 0 and "Thread " in text:
            return Stack(text)
        said = err.read(LONGEST).decode("utf-8", "replace").strip().split("\n")[0]
        return Stack(problem=f"py-spy: {said[:_REASON] or f'it ended with code {code} and no stack'}")
