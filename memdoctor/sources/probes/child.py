"""A child process that prints one JSON object a line: it may crash, hang or talk nonsense, and what it had printed before is kept."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

LONGEST_LINE = 1 << 20
MOST_LINES = 20_000
TAIL = 4000  # characters of stderr that are kept
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
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(environ),
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            outcome.failed = f"{command[0]} cannot be started: {getattr(error, 'strerror', None) or error}"
            return outcome
        assert process.stdout is not None
        _live.add(process)
        reader = threading.Thread(target=_read, args=(process.stdout, outcome.lines), daemon=True)
        reader.start()
        deadline = time.monotonic() + timeout
        try:
            outcome.code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            outcome.timed_out = True
        if outcome.code != 0:  # also what a child that crashed may have started
            _kill(process)
        _live.discard(process)
        reader.join(max(0.1, min(PATIENCE, deadline + PATIENCE - time.monotonic())))
        outcome.stuck = outcome.timed_out and process.poll() is None
        errors.seek(0, os.SEEK_END)
        errors.seek(max(0, errors.tell() - TAIL))
        outcome.stderr = errors.read().decode("utf-8", "replace")
        if not reader.is_alive():
            process.stdout.close()
        if outcome.stuck:
            process.returncode = 0  # nobody waits for it any more: it hangs where no signal reaches it
    return outcome


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)


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
