"""What is seen of a running job, written as text files that are then read like logs: one for each process, and one of NCCL's RAS."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from memdoctor.model import Skip
from memdoctor.sources.live import ras, stacks
from memdoctor.sources.live.processes import Process, find

APART = 3.0  # seconds from one look at the stacks to the next: what has not moved by then waits


def collect(targets: Sequence[str], folder: Path, *, environ: Mapping[str, str] = os.environ, apart: float = APART) -> list[Skip]:
    """Write what ``targets`` (PIDs, or ``torchrun``) are doing into ``folder``; what could not be seen is a Skip. Raises InputError."""
    processes = find(targets)
    host = socket.gethostname().partition(".")[0]
    skips: list[Skip] = []
    command = stacks.tool()
    pids = [process.pid for process in processes]
    looks: list[dict[int, stacks.Stack]] = []
    if command is None:
        skips.append(Skip("stacks", stacks.MISSING))
    else:
        started = time.monotonic()
        looks.append(stacks.dump(pids, command))
        if any(stack.text for stack in looks[0].values()):
            time.sleep(max(0.0, apart - (time.monotonic() - started)))
            looks.append(stacks.dump(pids, command))
    for process in processes:
        texts = [f"memdoctor live: {described(process, host)}\n"]
        for look in looks:
            stack = look[process.pid]
            texts.append(f"\n{stack.text.rstrip()}\n" if stack.text else "")
        problem = looks[0][process.pid].problem if looks else ""
        if problem:
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
    return skips


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
