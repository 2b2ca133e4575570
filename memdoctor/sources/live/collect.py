"""What is seen of a running job, written as text files that are then read like logs: one for each process, and one of NCCL's RAS."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from memdoctor.model import Skip
from memdoctor.records import record
from memdoctor.sources.live import interpreter, ras, stacks
from memdoctor.sources.live.processes import ASK, Process, find

APART = 3.0  # seconds from one look at the stacks to the next: what has not moved by then waits
_PROC = Path("/proc")


@record
class Seen:
    """``skips``: what could not be seen. ``strangers``: of each process that is not Python, one line that says so; ``nothing``: that is all there is."""

    skips: tuple[Skip, ...]
    strangers: tuple[str, ...]
    nothing: bool


def collect(targets: Sequence[str], folder: Path, *, environ: Mapping[str, str] = os.environ, apart: float = APART) -> Seen:
    """Write what ``targets`` (PIDs, or ``torchrun``) are doing into ``folder``. Raises InputError."""
    processes = find(targets)
    strangers = {process.pid: interpreter.program(_PROC / str(process.pid)) for process in processes if _is_stranger(process)}
    host = socket.gethostname().partition(".")[0]
    skips: list[Skip] = []
    command = stacks.tool()
    pids = [process.pid for process in processes if process.pid not in strangers]
    looks: list[dict[int, stacks.Stack]] = []
    if not pids:
        pass
    elif command is None:
        skips.append(Skip("stacks", stacks.MISSING))
    else:
        started = time.monotonic()
        looks.append(stacks.dump(pids, command))
        if any(stack.text for stack in looks[0].values()):
            time.sleep(max(0.0, apart - (time.monotonic() - started)))
            looks.append(stacks.dump(pids, command))
    for process in processes:
        texts = [f"memdoctor live: {described(process, host)}\n"]
        found = [look[process.pid] for look in looks if process.pid in look]
        texts += [f"\n{stack.text.rstrip()}\n" for stack in found if stack.text]
        problem = found[0].problem if found else ""
        if process.pid in strangers:
            skips.append(Skip(f"stack of process {process.pid}", f"not a Python process ({strangers[process.pid]})"))
        elif problem:
            skips.append(Skip(f"stack of process {process.pid}", problem))
        name = f"rank_{process.rank}" if process.rank is not None else f"process_{process.pid}"
        path = folder / f"{name}.txt"
        if path.exists():  # two jobs on one machine: ranks repeat
            path = folder / f"{name}_of_{process.pid}.txt"
        path.write_text("".join(texts), encoding="utf-8", errors="replace")
    told = next((process.ras_address for process in processes if process.ras_address), "")
    answer = ras.ask({ras.VARIABLE: told, **environ} if told else environ)
    if answer.text:
        (folder / "nccl_ras.txt").write_text(
            f"memdoctor live: NCCL RAS at {answer.address}\n{answer.text.rstrip()}\n\n", encoding="utf-8", errors="replace"
        )
    elif answer.problem:
        skips.append(Skip("NCCL RAS", answer.problem))
    lines = tuple(_stranger(pid, name) for pid, name in strangers.items())
    return Seen(tuple(skips), lines, nothing=not pids and not answer.text)


def _is_stranger(process: Process) -> bool:
    return interpreter.runs_python(_PROC / str(process.pid)) is False


def _stranger(pid: int, name: str) -> str:
    below = interpreter.below(pid)
    instead = f"below it runs Python: {', '.join(map(str, below))}" if below else ASK
    return f"--live {pid}: not a Python process ({name}), so its stack cannot be read; {instead}"


def described(process: Process, host: str) -> str:
    """One line about a process; rules/signals/live.yaml reads it."""
    who = f"process {process.pid}"
    if process.rank is not None:
        who += f" rank {process.rank}"
    if process.local_rank is not None:
        who += f" local {process.local_rank}"
    if process.world_size is not None:
        who += f" world {process.world_size}"
    waits = f" in {process.waits}" if process.waits else ""
    return f"{who} on {host}: state {process.state}{waits}, CPU {process.cpu:.0%}, for {process.age:.0f} s, command {process.command}"
