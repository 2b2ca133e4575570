"""Processes of one's own user out of /proc: the ones that were named, or the workers of a launcher."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from memdoctor.errors import InputError
from memdoctor.records import record

LAUNCHER = "torchrun"  # the word for "whatever torchrun started here"
_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "torch/distributed/run.py", "torch/distributed/launch.py")
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_LOCALS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_WORLDS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_RAS = "NCCL_RAS_ADDR"
MOST = 1_024  # processes looked at
_WORDS = 6  # of a command line among which a launcher stands
_COMMAND = 300  # characters of a command line that are kept
_LOOK = 0.2  # seconds over which it is seen whether a process computes
ASK = "give the PID of a training process or of its launcher, or `torchrun`"


@record
class Process:
    """``state`` is the letter of /proc (R, S, D, T, t, Z, X), ``waits`` the kernel function that it sleeps in, ``cpu`` its share of one CPU."""

    pid: int
    parent: int
    command: str
    state: str
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    ras_address: str = ""  # where its NCCL was told to listen
    launcher: bool = False
    waits: str = ""
    cpu: float = 0.0
    age: float = 0.0


def find(targets: Sequence[str], proc: Path = Path("/proc")) -> list[Process]:
    """The processes that ``targets`` name, by rank: PIDs, and ``torchrun``. A launcher stands for its workers.

    Raises InputError where a target names no process, one of another user, or no launcher runs.
    """
    if not (proc / "self" / "stat").exists():
        raise InputError(
            "--live needs /proc, which this system does not have; dump the stacks with `py-spy dump --pid PID` and give the files"
        )
    found: dict[int, Process] = {}
    family = _family(proc)
    for target in targets:
        if target == LAUNCHER:
            roots = [process.pid for process in family.values() if process.pid != os.getpid() and process.launcher]
            if not roots:
                raise InputError(f"--live torchrun: none of your processes on this machine is one of torchrun; {ASK}")
        else:
            roots = [_pid(target, family, proc)]
        for root in roots:
            workers = _workers(root, family)
            if not workers and target == LAUNCHER:
                continue
            for process in workers or [family[root]]:
                found[process.pid] = process
    if not found:
        raise InputError(f"--live torchrun: torchrun runs, but has no workers (any more); {ASK}")
    chosen = sorted(found.values(), key=lambda process: (process.rank is None, process.rank or 0, process.pid))[:MOST]
    return _with_load(chosen, proc)


def _pid(target: str, family: Mapping[int, Process], proc: Path) -> int:
    if not target.isascii() or not target.isdigit() or int(target) == 0:
        raise InputError(f"--live {target!r}: not a process; {ASK}")
    pid = int(target)
    folder = proc / str(pid)
    if not folder.exists():
        raise InputError(f"--live {pid}: no such process on this machine; {ASK}")
    if pid not in family:
        try:
            owner = folder.stat().st_uid
        except OSError:
            raise InputError(f"--live {pid}: that process has just ended; {ASK}") from None
        raise InputError(
            f"--live {pid}: that process belongs to {_user(owner)}; memdoctor looks at processes of its own user only ({_user(os.getuid())})"
        )
    return pid


def _user(uid: int) -> str:
    import pwd  # not on every system

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _family(proc: Path) -> dict[int, Process]:
    """All processes of one's own user, without rank and load; those that end meanwhile are left out."""
    found = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            found[int(folder.name)] = _read(folder)
        except (OSError, ValueError, IndexError):
            continue
    return found


def _read(folder: Path) -> Process:
    state, parent, *_ = _stat(folder)
    words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    command = " ".join(words).strip() or f"[{(folder / 'comm').read_text().strip()}]"
    environ = _environ(folder)
    return Process(
        int(folder.name), int(parent), " ".join(command.split())[:_COMMAND], state,
        _number(environ, _RANKS), _number(environ, _LOCALS), _number(environ, _WORLDS), environ.get(_RAS, ""), _is_launcher(words),
    )  # fmt: skip


def _stat(folder: Path) -> list[str]:
    """The fields of ``stat`` behind the name, which may hold blanks and brackets itself."""
    return (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _environ(folder: Path) -> Mapping[str, str]:
    """The few variables that say which rank a process is, and where its NCCL listens; empty where they may not be read."""
    wanted = {*_RANKS, *_LOCALS, *_WORLDS, _RAS}
    try:
        entries = (folder / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in entries)
    return {name: value for name, _, value in pairs if name in wanted}


def _number(environ: Mapping[str, str], names: Sequence[str]) -> int | None:
    return next((int(environ[name]) for name in names if environ.get(name, "").isdigit()), None)


def _is_launcher(words: Sequence[str]) -> bool:
    return any(word == name or word.endswith("/" + name) for word in words[:_WORDS] for name in _LAUNCHERS)


def _workers(root: int, family: Mapping[int, Process]) -> list[Process]:
    """The ranks below ``root`` where it is a launcher: the first on each line of descent that has a rank of its own."""
    if family[root].rank is not None and not family[root].launcher:
        return []
    children: dict[int, list[Process]] = {}
    for process in family.values():
        children.setdefault(process.parent, []).append(process)
    found, todo = [], list(children.get(root, ()))
    while todo:
        process = todo.pop()
        if process.rank is not None and process.local_rank is not None:
            found.append(process)
        else:
            todo += children.get(process.pid, ())
    return found


def _with_load(processes: Sequence[Process], proc: Path) -> list[Process]:
    """The processes with what they wait for and how much they compute."""
    before = {process.pid: _ticks(proc / str(process.pid)) for process in processes}
    started = time.monotonic()
    time.sleep(_LOOK)
    span = time.monotonic() - started
    tick = os.sysconf("SC_CLK_TCK")
    uptime = float((proc / "uptime").read_text().split()[0])
    result = []
    for process in processes:
        folder = proc / str(process.pid)
        try:
            fields = _stat(folder)
            used = max(0, _ticks(folder) - before[process.pid])
            state, age = _state(process.state, fields[0]), uptime - int(fields[19]) / tick
        except (OSError, ValueError, IndexError):
            state, used, age = "X", 0, 0.0
        result.append(replace(process, state=state, waits=_waits(folder), cpu=used / tick / span, age=max(0.0, age)))
    return result


def _state(before: str, now: str) -> str:
    """A process is in state D for a moment whenever it reads; only one that stays there tells something."""
    return before if now == "D" != before else now


def _ticks(folder: Path) -> int:
    try:
        fields = _stat(folder)
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return 0


def _waits(folder: Path) -> str:
    """The kernel function that the process sleeps in; "" where that is not told."""
    try:
        text = (folder / "wchan").read_text().strip()
    except OSError:
        return ""
    return text if text.isidentifier() else ""
