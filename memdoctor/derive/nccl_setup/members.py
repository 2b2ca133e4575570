"""The processes of one attempt as NCCL's INFO lines tell of them, and the facts that are made about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.model import Fact, Origin
from memdoctor.records import record

MOST_LOCAL = 64  # GPUs of one machine


@record
class Member:
    """One process. ``machine`` is equal for the processes of one machine: host names repeat among containers, with the address they do not."""

    fact: Fact
    rank: int | None
    machine: tuple[str, str]

    def __getattr__(self, name: str) -> Any:
        return self.fact.fields.get(name)

    def edges_of(self, kind: str) -> int:
        """How many channels take the way ``kind``: p2p, shm, net, net_gdr, net_host, socket."""
        return int((self.fact.fields.get("edges") or {}).get(kind, 0))

    @property
    def settings(self) -> Mapping[str, str]:
        """The NCCL variables that the process says it obeys."""
        return self.fact.fields.get("variables") or {}

    @property
    def transport(self) -> str | None:
        """The network by its name, also where NCCL did not come to say which it uses: sockets are tried where no card is found."""
        return self.network or ("IB" if self.cards else "Socket" if self.socket else None)

    def line(self, *names: str) -> int:
        """Where the first of ``names`` that was told was told; the process's first line otherwise."""
        lines = self.fact.fields.get("lines") or {}
        return next((lines[name] for name in names if name in lines), self.fact.origin.line or 1)


def members_of(facts: Sequence[Fact]) -> list[Member]:
    """The processes in the order of their ranks; of several that were the same rank of a communicator that is set up anew the latest."""
    latest: dict[object, Member] = {}
    facts = [fact for fact in facts if fact.kind == "nccl.setup"]
    addresses: dict[str | None, set[str]] = {}
    for fact in facts:
        addresses.setdefault(fact.host, set()).update(filter(None, [fact.fields.get("address")]))
    for fact in facts:
        machine = (fact.host or "", (fact.fields.get("address") or "") if len(addresses[fact.host]) > 1 else "")
        latest[(fact.host, fact.fields.get("of_pid"))] = Member(fact, fact.rank, machine)
    return sorted(latest.values(), key=lambda member: (member.rank is None, member.rank or 0, member.fact.seq))


def fact_of(member: Member, kind: str, line: int, fields: Mapping[str, Any]) -> Fact:
    """A fact about ``member`` that line ``line`` of its file proves."""
    source = member.fact
    name = str(fields.get("name") or fields.get("what") or "")
    return Fact(
        kind=kind,
        fields={key: value for key, value in fields.items() if value is not None},
        origin=Origin("log", source.origin.path, line, source.origin.excerpt if line == source.origin.line else ""),
        rank=member.rank,
        host=source.host,
        time=source.time if line == source.origin.line else None,
        attempt=source.attempt,
        seq=(source.seq >> 44 << 44) | (line << 8),
        event=f"{kind}:{name}:{source.host}:{source.fields.get('of_pid')}",
        after=source.after if source.time is None else source.time,
    )


def by_machine(members: Sequence[Member]) -> dict[tuple[str, str], list[Member]]:
    """The members of each machine."""
    found: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        found.setdefault(member.machine, []).append(member)
    return found


def machines(members: Sequence[Member]) -> int:
    """How many machines the job spans at least: as NCCL counts them, or as many as the log shows."""
    told = max((member.nodes or 0 for member in members), default=0)
    leaves = any(member.edges_of("net") or member.edges_of("socket") for member in members)
    return told or max(len({member.machine for member in members}), 2 if leaves else 1)


def all_seen(members: Sequence[Member]) -> bool:
    """True where the log tells of all processes of the job, or NCCL how many machines there are."""
    return any(member.nodes for member in members) or len(members) >= max((member.world_size or 0 for member in members), default=0)


def usual(values: Sequence[object], share: float = 2 / 3) -> object | None:
    """The value that at least ``share`` of ``values`` have, of three or more; None where there is none."""
    if len(values) < 3:
        return None
    value, count = Counter(values).most_common(1)[0]
    return value if share * len(values) <= count < len(values) else None
