"""Ranks that are not like their peers: interface, machines counted wrong, a GPU used twice, cards, switches and variables that differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from memdoctor.derive.nccl_setup.members import MOST_LOCAL, Member, by_machine, fact_of, machines, usual
from memdoctor.derive.nccl_setup.stops import STAGES
from memdoctor.model import Fact

_LOOPBACK = re.compile(r"^lo\d*$")
_INSIDE = re.compile(r"^(?:docker\d|virbr|veth|br-[0-9a-f]|cni\d|cali|flannel|podman|lxcbr|lxdbr|tailscale|tun\d|tap\d|dummy)")
# Variables that decide how data is cut and sent: ranks that differ in them misunderstand each other or slow all down.
_ALIKE = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_NET", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_P2P_LEVEL",
    "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_COLLNET_ENABLE",
    "NCCL_CROSS_NIC", "NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE", "NCCL_P2P_NET_CHUNKSIZE", "NCCL_IB_GID_INDEX", "NCCL_IB_TC", "NCCL_IB_SL",
)  # fmt: skip


def interfaces(members: Sequence[Member]) -> list[Fact]:
    """Ranks of a job of several machines that meet over an interface which no other machine can reach, or over another network than all others."""
    if machines(members) < 2:
        return []
    found = []
    addresses = {machine: own[0].address for machine, own in by_machine(members).items()}
    common = usual([_network(address) for address in addresses.values()], share=0.6)
    names = {member.interface for member in members if _network(member.address) == common}
    for member in members:
        used, line = member.interface, member.line("bootstrap")
        if used is None or not _private(used):
            used, line = member.socket, member.line("socket_interface")
            used = used if used is not None and _private(used) and member.network in (None, "Socket") else None
        if used is not None:
            fields = {
                "name": "interface",
                "value": used,
                "text": member.address,
                "reason": "loopback" if _LOOPBACK.match(used) else "inside the machine",
            }
        elif common is not None and member.address and _network(member.address) != common and member.interface not in names:
            line = member.line("bootstrap")
            fields = {
                "name": "interface_odd",
                "value": member.interface,
                "usual": ", ".join(sorted(map(str, names))),
                "text": member.address,
            }
        else:
            continue
        found.append(
            fact_of(
                member,
                "nccl.verdict",
                line,
                {**fields, "variable": "NCCL_SOCKET_IFNAME" if "NCCL_SOCKET_IFNAME" in member.settings else None},
            )
        )
    return found


def _private(interface: str) -> bool:
    return bool(_LOOPBACK.match(interface) or _INSIDE.match(interface))


def _network(address: str | None) -> str | None:
    """The first half of an IPv4 address; None for others, whose networks are not told by their look."""
    parts = (address or "").split(".")
    return ".".join(parts[:2]) if len(parts) == 4 else None


def miscounted(members: Sequence[Member]) -> list[Fact]:
    """Ranks whose machine NCCL takes for several, or for one with another."""
    size = max((member.world_size or 0 for member in members), default=0)
    job = [member for member in members if member.world_size == size and member.nodes]
    if not job or len({member.of_rank for member in job}) != size or len({member.comm for member in job}) != 1:
        return []
    counted, groups = max(member.nodes for member in job), by_machine(job)
    if counted == len(groups) or (counted > len(groups) and any(_twice(own) for own in groups.values())):
        return []  # containers on several machines that all have one name
    found = []
    for own in groups.values():
        for member in own:
            if member.local_ranks and member.local_ranks != len(own):
                variable = "NCCL_HOSTID" if "NCCL_HOSTID" in member.settings else None
                fields = {
                    "name": "nodes", "nodes": counted, "hosts": len(groups), "variable": variable, "value": member.settings.get("NCCL_HOSTID"),
                    "reason": "split" if member.local_ranks < len(own) else "merged",
                }  # fmt: skip
                found.append(fact_of(member, "nccl.verdict", member.line(variable or "nodes", "nodes"), fields))
    return found


def _twice(own: Sequence[Member]) -> bool:
    buses = [member.bus_id for member in own if member.bus_id]
    return len(buses) != len(set(buses))


def duplicates(members: Sequence[Member]) -> list[Fact]:
    """Pairs of ranks of one communicator on one GPU."""
    found = []
    for own in by_machine(members).values():
        if len(own) > MOST_LOCAL or any(member.nodes and member.local_ranks and member.local_ranks < len(own) for member in own):
            continue  # several machines of one name
        by_gpu: dict[tuple[Any, ...], list[Member]] = {}
        for member in own:
            if member.bus_id and member.of_rank is not None and member.settings.get("NCCL_MULTI_RANK_GPU_ENABLE") != "1":
                by_gpu.setdefault((member.comm, member.world_size, member.bus_id), []).append(member)
        for sharers in by_gpu.values():
            if len({member.of_rank for member in sharers}) < 2:
                continue
            for member in sharers:
                other = next(peer for peer in sharers if peer.of_rank != member.of_rank)
                a, b = sorted((member, other), key=lambda sharer: sharer.of_rank)
                fields = {"name": "duplicate_gpu", "bus_id": member.bus_id, "rank_a": _number(a), "rank_b": _number(b)}
                found.append(fact_of(member, "nccl.verdict", member.line("comm"), fields))
    return found


def _number(member: Member) -> int:
    return int(member.rank if member.rank is not None else member.of_rank)


def odd_ones(members: Sequence[Member]) -> list[Fact]:
    """Ranks that differ from all others in what must be alike."""
    found: list[Fact] = []
    groups = by_machine(members)
    aspects: tuple[tuple[str, str, Callable[[Member], object]], ...] = (
        ("RDMA devices", "cards", lambda member: len(member.cards) if member.cards else None),
        ("NVLink SHARP (NVLS)", "nvls", lambda member: None if member.nvls is None else ("available" if member.nvls else "not available")),
    )
    for what, line, read in aspects:
        by_host = {machine: {read(member) for member in own} for machine, own in groups.items()}
        plain = [next(iter(values)) for values in by_host.values() if len(values) == 1 and None not in values]
        common = usual(plain) if len(plain) == len(groups) else None
        if common is None and len(plain) == len(groups) == 2 and what == "RDMA devices":
            common = max(plain, key=lambda value: int(str(value))) if plain[0] != plain[1] and min(map(str, plain)) != "0" else None
        for member in members:
            if common is not None and read(member) not in (None, common):
                found.append(_odd(member, line, what, read(member), common, len(members)))
    for name in _ALIKE:
        asked = _came_by(members, name)
        speaking = [member for member in asked if member.settings]
        values = [member.settings.get(name) for member in speaking]
        common = usual(values) if any(values) and len(speaking) == len(asked) else None
        if common is None and not (any(values) and values.count(None) > len(values) * 2 / 3 and len(values) > 2):
            continue
        for member in speaking:
            value = member.settings.get(name)
            if value != common:
                found.append(_odd(member, name, name, value or "not set", common or "not set", len(members)))
    return found


def _came_by(members: Sequence[Member], name: str) -> Sequence[Member]:
    """All but those that say nothing of a variable because they are not where NCCL looks at it: none that names it came so little far."""
    least = min((_steps(member) for member in members if name in member.settings), default=-1)
    return [member for member in members if name in member.settings or _steps(member) >= least] if least > 0 else members


def _steps(member: Member) -> int:
    return STAGES.index(member.stage) if member.stage else -1


def _odd(member: Member, line: str, what: str, value: object, common: object, of: int) -> Fact:
    fields = {"what": what, "value": str(value), "usual": str(common), "others": of}
    return fact_of(member, "nccl.odd", member.line(line), fields)
