"""A child process that prints one JSON object a line: it may crash, hang or talk nonsense, and what it had printed before is kept."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from memdoctor import catalog

LONGEST_LINE = 1 << 20
MOST_LINES = 20_000
TAIL = 4000  # bytes of stderr that are kept
PATIENCE = 2.0  # seconds that a killed child gets to go; one that hangs inside the driver cannot


_live: set[subprocess.Popen[bytes]] = set()


@atexit.register
def _end_all() -> None:
    """Whoever interrupts the command ends its children, too: they have sessions of their own and do not see the keyboard."""
    for process in list(_live):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


@dataclass(slots=True)
class Outcome:
    """``code`` is negative for a signal, None where the child was still there in the end; ``stderr`` is its tail."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    code: int | None = None
    timed_out: bool = False
    stuck: bool = False
    stderr: str = ""
    failed: str = ""  # why it could not be started

    def ended(self) -> str:
        """How it ended, in words; "" where it ended well."""
        if self.failed:
            return self.failed
        if self.timed_out:
            return "it cannot be ended either: it hangs inside the kernel" if self.stuck else "it was ended"
        if self.code is None or self.code == 0:
            return ""
        if self.code < 0:
            with contextlib.suppress(ValueError):
                return f"it died of {signal.Signals(-self.code).name}"
        return f"it ended with code {self.code}"


def run(command: Sequence[str], *, timeout: float, environ: Mapping[str, str], cwd: str | None = None) -> Outcome:
    """Start ``command`` in a session of its own and read it until it ends, or ``timeout`` seconds are over and it is killed."""
    outcome = Outcome()
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        outcome.failed = f"it cannot be started: {getattr(error, 'strerror', None) or error}"
        return outcome
    assert process.stdout is not None
    assert process.stderr is not None
    _live.add(process)
    tail = bytearray()
    readers = (
        threading.Thread(target=_read, args=(process.stdout, outcome.lines), daemon=True),
        threading.Thread(target=_keep_tail, args=(process.stderr, tail), daemon=True),
    )
    for reader in readers:
        reader.start()
    deadline = time.monotonic() + timeout
    try:
        outcome.code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        outcome.timed_out = True
    if outcome.code != 0:  # also what a child that crashed may have started
        _kill(process)
    _live.discard(process)
    for reader, stream in zip(readers, (process.stdout, process.stderr), strict=True):
        reader.join(max(0.1, min(PATIENCE, deadline + PATIENCE - time.monotonic())))
        if not reader.is_alive():
            stream.close()
    outcome.stuck = outcome.timed_out and process.poll() is None
    outcome.stderr = bytes(tail).decode("utf-8", "replace")
    if outcome.stuck:
        process.returncode = 0  # nobody waits for it any more: it hangs where no signal reaches it
    return outcome


def is_fact(line: Mapping[str, Any]) -> bool:
    """True for a line that is a fact of a kind that there is; a child may talk nonsense."""
    return isinstance(line.get("kind"), str) and line["kind"] in catalog.KINDS and isinstance(line.get("fields"), dict)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)


def _keep_tail(stream: IO[bytes], tail: bytearray) -> None:
    """Read to the end and keep the last TAIL bytes: nothing that a child says piles up anywhere."""
    with contextlib.suppress(OSError, ValueError):
        while chunk := stream.read1(1 << 16):  # type: ignore[attr-defined]
            tail += chunk
            del tail[:-TAIL]


def _read(stream: IO[bytes], lines: list[dict[str, Any]]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while len(lines) < MOST_LINES:
            line = stream.readline(LONGEST_LINE)
            if not line:
                return
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict):
                    lines.append(value)
        while stream.read1(1 << 16):  # type: ignore[attr-defined]  # who says more than is kept may still come to an end
            pass


def run_text(command: Sequence[str], *, timeout: float, environ: Mapping[str, str]) -> tuple[int | None, str]:
    """A short foreign program: its exit code (None: it did not end in time, or could not be started) and what it printed."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            env=dict(environ),
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")
