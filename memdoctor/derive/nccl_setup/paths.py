"""Slow ways: sockets in place of InfiniBand, copies through host memory in place of GPUDirect RDMA or NVLink, few channels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memdoctor.derive.nccl_setup.members import Member, all_seen, by_machine, fact_of, machines
from memdoctor.model import Fact

FEW = 2  # channels: with NVLink there are eight to 32, less only where a slow link or a variable limits them
MANY = 4  # GPUs of a machine from which on so few channels are strange
MOSTLY = 3 / 4
_LIMITS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS")
_SWITCHED_ON = ("1", "2")
_IPOIB = re.compile(r"ib(?:\d+|[pPs]\d+\w*)(?:\.\w+)?")  # IP over InfiniBand, as the kernel and udev name it: ib0, ib0.8001, ibp12s0, ibs5


def sockets(members: Sequence[Member]) -> list[Fact]:
    """Ranks that use TCP between machines: ``sockets`` where something shows that there is better, ``tcp`` otherwise."""
    several = machines(members) > 1
    if not several and all_seen(members):
        return []
    fast = [member for member in members if _fast(member)]
    found = []
    for member in members:
        if member.network != "Socket":
            continue
        reason, variable = why_sockets(member, fast)
        if not several and variable is None:
            continue
        if not reason and member.stage != "complete":
            continue
        line = member.line(variable or "network", "network", "socket")
        fields = {
            "name": "sockets" if reason else "tcp",
            "reason": reason or None,
            "variable": variable,
            "value": member.settings.get(variable or ""),
            "transport": "Socket",
        }
        found.append(fact_of(member, "nccl.verdict", line, fields))
    return found


def why_sockets(member: Member, fast: Sequence[Member]) -> tuple[str, str | None]:
    """What shows that ``member`` could do better, and the variable that keeps it from that."""
    settings = member.settings
    if settings.get("NCCL_IB_DISABLE") in _SWITCHED_ON:
        return "NCCL_IB_DISABLE is set", "NCCL_IB_DISABLE"
    if settings.get("NCCL_NET", "").lower() == "socket":
        return "NCCL_NET asks for sockets", "NCCL_NET"
    if member.cards:
        return f"it has {len(member.cards)} RDMA devices", None
    if settings.get("NCCL_IB_HCA"):
        return "NCCL_IB_HCA names devices, and none is found", "NCCL_IB_HCA"
    over = _IPOIB.fullmatch(member.socket or member.interface or "")
    if over:
        return f"{over[0]} is an interface of an InfiniBand card, used for TCP", None
    if fast:
        return f"{len(fast)} other rank{'s use' if len(fast) > 1 else ' uses'} {fast[0].network}", None
    return "", None


def _fast(member: Member) -> bool:
    return member.network is not None and member.network != "Socket"


def _omni_path(member: Member) -> bool:
    """True for the cards of Omni-Path. They speak verbs, so NCCL calls them IB; verbs do not reach GPUs there, and a card bears few channels."""
    return bool(member.cards) and all(str(card).startswith("hfi") for card in member.cards)


def gdr_off(members: Sequence[Member]) -> list[Fact]:
    """Ranks whose channels to other machines take the way through host memory although the network could reach the GPUs.

    Where all ranks lack it, it is off for InfiniBand at least. Where some have it, a rank is at fault only if the same GPU of other machines
    has it: which GPUs are near a card is the same everywhere.
    """
    asked = [member for member in members if member.edges_of("net") and _fast(member) and not _omni_path(member)]
    without = [member for member in asked if not member.edges_of("net_gdr")]
    if not asked:
        return _gdr_not_offered(members)
    if not without:
        return []
    if len(without) == len(asked):
        if any(member.edges_of("shm") for member in members) and not any(member.edges_of("p2p") for member in members):
            return []  # cards that cannot even reach each other: consumer models, which have no GPUDirect, either
        guilty = [member for member in without if str(member.network).startswith("IB")]
    else:
        with_ = {member.gpu for member in asked if member.edges_of("net_gdr")}
        guilty = [member for member in without if member.gpu in with_]
    return [
        fact_of(
            member, "nccl.verdict", member.line(*(("gdr_far", "gdr") if member.gdr is False else ()), "net_host"),
            {"name": "gdr_off", "reason": _why_no_gdr(member, len(guilty) < len(asked)), "transport": member.network, "variable": _gdr_variable(member)},
        )
        for member in guilty
    ]  # fmt: skip


def _gdr_not_offered(members: Sequence[Member]) -> list[Fact]:
    """Ranks whose GPU no card can reach, where no channel is told of: the log holds the beginning of the set-up only, so no more than possible.

    Nothing goes over the network on one machine alone.
    """
    if any(member.edges or member.nodes == 1 or _omni_path(member) for member in members):
        return []
    return [
        fact_of(member, "nccl.verdict", member.line("gdr_far", "gdr"), {"name": "gdr_not_offered", "reason": _why_no_gdr(member, False), "transport": member.network})
        for member in members
        if _fast(member) and member.gdr is False
    ]  # fmt: skip


def _gdr_variable(member: Member) -> str | None:
    level = member.settings.get("NCCL_NET_GDR_LEVEL", member.settings.get("NCCL_IB_GDR_LEVEL"))
    if level in ("LOC", "0"):
        return "NCCL_NET_GDR_LEVEL" if "NCCL_NET_GDR_LEVEL" in member.settings else "NCCL_IB_GDR_LEVEL"
    return None


def _why_no_gdr(member: Member, some: bool) -> str:
    variable = _gdr_variable(member)
    if variable is not None:
        return f"{variable} is {member.settings[variable]}"
    if member.gdr is False and "gdr_far" in (member.lines or {}):
        return "every network card is too far from the GPU"
    if member.gdr is False:
        return "the driver does not offer it for the card"
    return "other ranks have it" if some else "no rank has it"


def shared_memory(members: Sequence[Member]) -> list[Fact]:
    """Ranks that reach a GPU of their own machine through host memory although there is NVLink.

    Machines with PCIe alone do so between their halves, and those with bridges between two GPUs from pair to pair: nothing is wrong there.
    """
    groups = by_machine(members)
    clean = {len(own) for own in groups.values() if any(m.edges_of("p2p") for m in own) and not any(m.edges_of("shm") for m in own)}
    found = []
    for own in groups.values():
        linked = _linked(own)
        for member in own:
            if not member.edges_of("shm") or not (linked or len(own) in clean):
                continue
            variable = "NCCL_P2P_DISABLE" if member.settings.get("NCCL_P2P_DISABLE") == "1" else None
            reason = "the machine has NVLink" if linked else "other machines of the job reach all their GPUs directly"
            fields = {"name": "shm", "reason": reason, "transport": "SHM", "variable": variable}
            found.append(fact_of(member, "nccl.verdict", member.line("shm"), fields))
    return found


def _linked(own: Sequence[Member]) -> bool:
    """True where NVLink joins all GPUs of a machine: its switch is there, or all but a few of the GPUs are read over it."""
    return any(member.nvls for member in own) or sum(member.nvlink_read is True for member in own) >= MOSTLY * len(own) > 0


def few_channels(members: Sequence[Member]) -> list[Fact]:
    """Ranks with hardly any channels where NVLink and the network would bear many."""
    groups = by_machine(members)
    linked = any(_linked(own) for own in groups.values())
    if machines(members) > 1:  # one card for eight GPUs bears no more
        linked = linked and all(_fast(member) and len(member.cards or ()) >= MANY and not _omni_path(member) for member in members)
    found = []
    for member in members:
        if member.channels is None or not 0 < member.channels <= FEW or (member.local_ranks or len(groups[member.machine])) < MANY:
            continue
        variable = next((name for name in _LIMITS if _number(member.settings.get(name)) in range(1, FEW + 1)), None)
        if variable is None and not linked:
            continue
        fields = {
            "name": "few_channels", "channels": member.channels, "variable": variable, "value": member.settings.get(variable or ""),
            "reason": "limited" if variable else "nvlink",
        }  # fmt: skip
        found.append(fact_of(member, "nccl.verdict", member.line(variable or "channels", "channels"), fields))
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
