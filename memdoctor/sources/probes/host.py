"""The host: system, memory, shared memory, CPUs, limits of a process, kernel parameters."""

from __future__ import annotations

import os
import platform
import re

from memdoctor import units
from memdoctor.sources.probes import cgroup, system
from memdoctor.sources.probes.notebook import Notebook, read_number, read_text
from memdoctor.sources.probes.request import Request

KINDS = ("host.system", "host.memory", "host.shm", "host.cpu", "host.limit", "host.kernel")
_PARAMETERS = {  # name -> file; what matters to training, and why, is in the rules
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "overcommit": "/proc/sys/vm/overcommit_memory",
    "pid_max": "/proc/sys/kernel/pid_max",
    "map_count": "/proc/sys/vm/max_map_count",
}


def probe(notes: Notebook, request: Request) -> None:
    """Everything that is cheap to read and hangs on nothing."""
    root = request.root
    group = cgroup.limits(root)

    def system_itself() -> None:
        release = re.search(r'^PRETTY_NAME="?([^"\n]*)', read_text(f"{root}/etc/os-release") or "", re.M)
        library, version = platform.libc_ver()
        notes.add(
            "host.system", path="uname", excerpt=f"{platform.system()} {platform.release()} {platform.machine()}", kernel=platform.release(),
            os=release[1] if release else platform.system(), machine=platform.machine(), libc=version if library == "glibc" else None,
            container=container(root, dict(request.environ)), virtual=_hypervisor(root), nodes=_nodes(dict(request.environ)),
        )  # fmt: skip

    def memory() -> None:
        ram = system.memory()
        excerpt = f"MemTotal {units.format_size(ram.total)}, MemAvailable {units.format_size(ram.available)}"
        if group.memory is not None:
            used = f", {units.format_size(group.memory_used)} used" if group.memory_used is not None else ""
            excerpt += f"; limit of the control group {units.format_size(group.memory)}{used}"
        notes.add(
            "host.memory", path=group.path or "/proc/meminfo", excerpt=excerpt, total=ram.total, available=ram.available, limit=group.memory,
            limit_used=group.memory_used, swap=ram.swap, swap_used=ram.swap_used,
        )  # fmt: skip

    def shared_memory() -> None:
        stats = os.statvfs(f"{root}/dev/shm")
        size, free = stats.f_blocks * stats.f_frsize, stats.f_bavail * stats.f_frsize
        excerpt = f"/dev/shm {units.format_size(size)}, {units.format_size(free)} free"
        notes.add("host.shm", path="/dev/shm", excerpt=excerpt, size=size, free=free)

    def cpus() -> None:
        cores, allowed = os.cpu_count(), _allowed()
        nodes = _numbers(read_text(f"{root}/sys/devices/system/node/online") or "")
        model = re.search(r"^model name\s*:\s*(.*)$", read_text(f"{root}/proc/cpuinfo", 4096) or "", re.M)
        excerpt = f"{cores} CPUs, {len(allowed) if allowed is not None else 'unknown'} of them allowed to this process"
        excerpt += f", quota {units.format_count(group.cores)}" if group.cores is not None else ""
        notes.add(
            "host.cpu", path="/proc/self/status", excerpt=excerpt, model=model[1].strip() if model else None, cores=cores,
            allowed=len(allowed) if allowed is not None else None, quota=group.cores, numa_nodes=len(nodes) or None,
            numa_allowed=_nodes_of(root, nodes, allowed) if allowed is not None and nodes else None,
        )  # fmt: skip

    def limits() -> None:
        _limits(notes, group)

    def kernel_parameters() -> None:
        for name, path in _PARAMETERS.items():
            number = read_number(f"{root}{path}")
            if number is not None:
                notes.add("host.kernel", path=path, excerpt=str(number), name=name, value=str(number), number=number)
        iommu = _iommu(root)
        notes.add("host.kernel", path="/sys/kernel/iommu_groups", excerpt=iommu, name="iommu", value=iommu)

    notes.try_each(system_itself, memory, shared_memory, cpus, limits, kernel_parameters)


def container(root: str, environ: dict[str, str]) -> str | None:
    """Which kind of container this process is in; None outside of any, as far as can be told."""
    for name, kind in (
        ("KUBERNETES_SERVICE_HOST", "kubernetes"),
        ("APPTAINER_NAME", "apptainer"),
        ("SINGULARITY_NAME", "singularity"),
        ("ENROOT_ROOTFS", "enroot"),
    ):
        if environ.get(name):
            return kind
    if os.path.exists(f"{root}/.dockerenv"):
        return "docker"
    if os.path.exists(f"{root}/run/.containerenv"):
        return "podman"
    match = re.search(r"docker|kubepods|containerd|lxc|libpod", read_text(f"{root}/proc/1/cgroup") or "")
    return {"kubepods": "kubernetes", "libpod": "podman"}.get(match[0], match[0]) if match else None


def _hypervisor(root: str) -> str | None:
    vendor = (read_text(f"{root}/sys/class/dmi/id/sys_vendor") or "").strip()
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", read_text(f"{root}/proc/cpuinfo", 8192) or "", re.M)
    return (vendor or "unknown") if flags else None


def _nodes(environ: dict[str, str]) -> int | None:
    """How many nodes the job has, as the launcher's variables tell."""
    for name in ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "GROUP_WORLD_SIZE", "PET_NNODES", "NNODES"):
        if environ.get(name, "").isdigit():
            return int(environ[name])
    world, local = environ.get("WORLD_SIZE", ""), environ.get("LOCAL_WORLD_SIZE", "")
    if world.isdigit() and local.isdigit() and int(local) > 0:
        return max(1, int(world) // int(local))
    return None


def _allowed() -> set[int] | None:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def _numbers(text: str) -> list[int]:
    """``0-3,8`` -> [0, 1, 2, 3, 8]"""
    result: list[int] = []
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        result += range(int(low), min(int(high or low), int(low) + 4096) + 1)
    return result


def _nodes_of(root: str, nodes: list[int], allowed: set[int]) -> int | None:
    """On how many NUMA nodes the allowed CPUs lie."""
    lists = [_numbers(read_text(f"{root}/sys/devices/system/node/node{node}/cpulist") or "") for node in nodes]
    return sum(bool(allowed.intersection(cpus)) for cpus in lists) or None


def _limits(notes: Notebook, group: cgroup.Limits) -> None:
    import resource

    for name, number, unit in (
        ("open_files", resource.RLIMIT_NOFILE, "open files"),
        ("processes", resource.RLIMIT_NPROC, "processes"),
        ("memlock", resource.RLIMIT_MEMLOCK, "bytes of locked memory"),
    ):
        soft, hard = (None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(number))
        excerpt = f"{'no limit' if soft is None else f'{soft:,}'} {unit} (hard limit {'none' if hard is None else f'{hard:,}'})"
        notes.add("host.limit", path="ulimit", excerpt=excerpt, name=name, soft=soft, hard=hard, unlimited=soft is None)
    if group.processes is not None:
        excerpt = f"{group.processes:,} processes and threads in the control group, {group.processes_used} now"
        notes.add(
            "host.limit", path="/sys/fs/cgroup/pids.max", excerpt=excerpt, name="cgroup_processes", soft=group.processes, unlimited=False,
            used=group.processes_used,
        )  # fmt: skip


def _iommu(root: str) -> str:
    """off, passthrough or translated: the kind of most groups of devices."""
    folder = f"{root}/sys/kernel/iommu_groups"
    groups = sorted(os.listdir(folder))[:64] if os.path.isdir(folder) else []
    kinds = [(read_text(f"{folder}/{group}/type") or "").strip() for group in groups]
    if not groups:
        return "off"
    if any(kind.startswith("DMA") for kind in kinds):
        return "translated"
    if "iommu=pt" in (read_text(f"{root}/proc/cmdline") or "") or "identity" in kinds:
        return "passthrough"
    return "unknown"
