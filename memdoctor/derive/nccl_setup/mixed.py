"""Ranks that use another network than all others: NCCL's networks do not understand each other, so such a job never trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdoctor.derive.nccl_setup.members import Member, fact_of, machines
from memdoctor.derive.nccl_setup.paths import why_sockets
from memdoctor.derive.nccl_setup.stops import STAGES, Stop
from memdoctor.model import Fact

_BUILT_IN = ("Socket", "IB")  # what a rank is left with that lacks a library or a card: of two equal halves it is the odd one


def odd_networks(members: Sequence[Member]) -> tuple[list[Member], str]:
    """The ranks on another network than most machines, and the network of those; no ranks where all that tell theirs are alike."""
    on: dict[str, list[Member]] = {}
    for member in members:
        if member.transport is not None:
            on.setdefault(member.transport, []).append(member)
    if len(on) < 2 or machines(members) < 2:
        return [], ""

    def rarity(network: str) -> tuple[int, int, int]:
        own = on[network]
        return len({member.machine for member in own}), len(own), -_BUILT_IN[::-1].index(network) if network in _BUILT_IN else 1

    usual = max(on, key=rarity)
    return [member for member in members if member.transport not in (None, usual)], usual


def mixed(members: Sequence[Member], stop: Stop | None, *, sure: bool) -> list[Fact]:
    """One fact ``mixed`` for each rank on another network, where that explains ``stop``; None: the job ended before its first step.

    ``sure``: the log says that the job ended there; not so sure are ranks that had not met, which they do over sockets anyway.
    """
    odd, usual = odd_networks(members)
    if not odd or (stop is not None and not set(map(id, stop.behind)) <= set(map(id, odd)) and min(stop.steps) < STAGES.index("connect")):
        return []
    met = max(stop.steps) >= STAGES.index("topology") if stop is not None else all(member.stage == "complete" for member in members)
    fields = {
        "name": "mixed", "usual": usual, "sure": sure and met,
        "stage": STAGES[max(stop.steps)] if stop is not None else None, "waiting": len(stop.waiting) if stop is not None else None,
        "of": (stop.size or None) if stop is not None else None,
    }  # fmt: skip
    found = []
    for member in odd:
        reason, variable = why_sockets(member, ()) if member.transport == "Socket" else ("", None)
        if not reason and member.cards == () and member.transport == "Socket":
            reason = "NCCL found no RDMA device there"
        line = member.line(variable or "network", "network", "socket", "socket_interface")
        own = {
            **fields,
            "transport": member.transport,
            "reason": reason or None,
            "variable": variable,
            "value": member.settings.get(variable or ""),
        }
        found.append(fact_of(member, "nccl.verdict", line, own))
    # It began when the first of them chose its network.
    first = {fact.origin.path: min(member.fact.seq for member in members if member.fact.origin.path == fact.origin.path) for fact in found}
    return [replace(fact, seq=first[fact.origin.path]) for fact in found]
