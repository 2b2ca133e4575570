"""What a child process costs: processor time and peak memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
_SCRIPT = Path(PYTHON).with_name("memdoctor")
MEMDOCTOR = (str(_SCRIPT),) if _SCRIPT.exists() else (PYTHON, "-m", "memdoctor")


@dataclass(frozen=True)
class Usage:
    """``seconds`` of user and system time of the child and of all its children; ``peak``: resident bytes of the largest of them.

    What it printed is in ``output``, at most its first 64 KiB.
    """

    seconds: float
    peak: int
    output: str


def environment(cache: Path) -> dict[str, str]:
    """That of the children: a cache of their own, and byte-code is written and used, as it is where a package was installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_"))}
    return {**kept, "XDG_CACHE_HOME": str(cache), "NO_COLOR": "1", "COLUMNS": "100"}


def run(command: Sequence[str], environ: Mapping[str, str], codes: Sequence[int] = (0,)) -> Usage:
    """Run ``command`` and wait. Raises RuntimeError where it ends with none of ``codes``.

    The peak of a child is never less than this process's own memory, which therefore stays small.
    """
    read, write = os.pipe()
    pid = os.posix_spawnp(
        command[0],
        list(command),
        environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_DUP2, write, 2), (os.POSIX_SPAWN_CLOSE, read)],
    )
    os.close(write)
    output = b""
    with open(read, "rb", buffering=0) as pipe:
        while piece := pipe.read(65_536):
            output = (output + piece)[:65_536]
    _, status, used = os.wait4(pid, 0)
    text = output.decode("utf-8", "replace")
    code = os.waitstatus_to_exitcode(status)
    if code not in codes:
        raise RuntimeError(f"{' '.join(command)[:200]}: exit code {code}: {text[-1000:]}")
    return Usage(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, text)
