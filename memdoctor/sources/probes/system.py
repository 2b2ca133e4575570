"""What psutil knows of the host; the one place that uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

from memdoctor.records import record


@record
class Memory:
    """Bytes."""

    total: int
    available: int
    swap: int
    swap_used: int


@record
class Process:
    """A process, as far as it may be looked at. ``age`` in seconds; ``zombie``: it has ended, and its parent has not asked how."""

    pid: int
    command: str | None
    user: str | None
    age: float | None
    parent: int | None
    mine: bool | None
    zombie: bool = False


@record
class Interface:
    """``speed`` in Mbit/s, 0 or None where it is not known."""

    name: str
    up: bool
    speed: int | None
    mtu: int
    addresses: tuple[str, ...]


def memory() -> Memory:
    import psutil

    ram, swap = psutil.virtual_memory(), psutil.swap_memory()
    return Memory(ram.total, ram.available, swap.total, swap.used)


def interfaces() -> list[Interface]:
    import socket

    import psutil

    addresses = psutil.net_if_addrs()
    result = []
    for name, stats in sorted(psutil.net_if_stats().items()):
        own = [entry.address.partition("%")[0] for entry in addresses.get(name, []) if entry.family in (socket.AF_INET, socket.AF_INET6)]
        result.append(Interface(name, stats.isup, stats.speed or None, stats.mtu, tuple(own)))
    return result


def processes(pids: Iterable[int]) -> Mapping[int, Process]:
    """Those of ``pids`` that exist here; in a container pids of the host do not."""
    import os
    import time

    import psutil

    found = {}
    for pid in pids:
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                command = " ".join(_cmdline(process)) or process.name()
                uid = process.uids().real
                age, zombie = time.time() - process.create_time(), process.status() == psutil.STATUS_ZOMBIE
                found[pid] = Process(pid, command, _user(process), age, process.ppid(), uid == os.getuid(), zombie)
        except psutil.Error:
            continue
    return found


def uses_gpu(pid: int) -> bool | None:
    """Whether the process has NVIDIA's driver open or loaded; None where that may not be looked at, or the process has ended."""
    import os

    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
        if any("/libcuda.so" in line or "/dev/nvidia" in line for line in lines):
            return True
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return None
    for name in names:
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("/dev/nvidia"):
                return True
    return False if lines else None


def _cmdline(process: object) -> list[str]:
    import psutil

    try:
        return list(process.cmdline())  # type: ignore[attr-defined]
    except psutil.Error:
        return []


def _user(process: object) -> str | None:
    import psutil

    try:
        return str(process.username())  # type: ignore[attr-defined]
    except (psutil.Error, KeyError):
        return None


def commands_running(names: Iterable[str]) -> list[str]:
    """Names of running programs that are among ``names``, of any user."""
    import psutil

    wanted = set(names)
    return sorted({name for process in psutil.process_iter(["name"]) if (name := process.info.get("name")) in wanted})
