"""Limits of the control group this process is in: version 2 and version 1, from inside a container or outside."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from memdoctor.records import record
from memdoctor.sources.probes.notebook import read_number, read_text

NO_LIMIT = 1 << 60  # version 1 writes a number near 2**63 for "no limit"


@record
class Limits:
    """Bytes, cores and processes; None where there is no limit. ``path`` is where the memory limit stands."""

    memory: int | None = None
    memory_used: int | None = None
    cores: float | None = None
    processes: int | None = None
    processes_used: int | None = None
    path: str = ""


def limits(root: str = "") -> Limits:
    """The tightest limits on the way from this process's group to the top."""
    groups = read_text(f"{root}/proc/self/cgroup") or ""
    two = re.search(r"^0::(.*)$", groups, re.M)
    memory: list[tuple[int, int | None, str]] = []
    cores: list[float] = []
    processes: list[tuple[int, int | None]] = []
    top = f"{root}/sys/fs/cgroup"
    for folder in _upwards(top, two[1] if two else "/"):
        _add_memory(memory, folder, "memory.max", "memory.current")
        quota = re.match(r"(\d+) (\d+)", read_text(f"{folder}/cpu.max") or "")
        if quota is not None and int(quota[2]) > 0:
            cores.append(int(quota[1]) / int(quota[2]))
        _add_processes(processes, folder)
    for controller in ("memory", "cpu", "cpu,cpuacct", "pids"):
        one = re.search(rf"^\d+:(?:\w+,)*{controller.split(',')[0]}(?:,\w+)*:(.*)$", groups, re.M)
        for folder in _upwards(f"{top}/{controller}", one[1] if one else "/"):
            if controller == "memory":
                _add_memory(memory, folder, "memory.limit_in_bytes", "memory.usage_in_bytes")
            elif controller == "pids":
                _add_processes(processes, folder)
            else:
                allowed, period = read_number(f"{folder}/cpu.cfs_quota_us"), read_number(f"{folder}/cpu.cfs_period_us")
                if allowed and allowed > 0 and period:
                    cores.append(allowed / period)
    tight, busy = min(memory, default=None, key=lambda entry: entry[0]), min(processes, default=None, key=lambda entry: entry[0])
    return Limits(
        memory=tight[0] if tight else None,
        memory_used=tight[1] if tight else None,
        cores=min(cores, default=None),
        processes=busy[0] if busy else None,
        processes_used=busy[1] if busy else None,
        path=tight[2].removeprefix(root) if tight else "",
    )


def _upwards(top: str, path: str) -> Iterator[str]:
    """``top`` joined with ``path`` and each folder above it; in a container only the top may be there."""
    parts = [part for part in path.split("/") if part not in ("", "..", ".")]
    for depth in range(len(parts), -1, -1):
        folder = "/".join([top, *parts[:depth]])
        if os.path.isdir(folder):
            yield folder


def _add_memory(found: list[tuple[int, int | None, str]], folder: str, limit: str, used: str) -> None:
    number = read_number(f"{folder}/{limit}")
    if number is not None and 0 < number < NO_LIMIT:
        found.append((number, read_number(f"{folder}/{used}"), f"{folder}/{limit}"))


def _add_processes(found: list[tuple[int, int | None]], folder: str) -> None:
    number = read_number(f"{folder}/pids.max")
    if number is not None:
        found.append((number, read_number(f"{folder}/pids.current")))
