"""Which rank a fact belongs to, where its own line does not say: by process id, local rank, file or launcher box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdoctor.model import Fact, FileRead

_PLACES = ("rank.place", "nccl.setup", "process.live")
_WATCHDOG = ("watchdog.timeout", "watchdog.taken_down")


class Places:
    """What the logs tell of rank ↔ process ↔ local rank ↔ host."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._by_pid: dict[tuple[str | None, int], set[int]] = {}
        self._by_local: dict[tuple[str | None, int], set[int]] = {}
        self._hosts: dict[int, str] = {}
        self.nodes = 1
        self.world: int | None = None
        self._parts = any(_in_a_part(fact) for fact in facts)
        self._whole = _whole_job(facts)
        hosts: set[str] = set()
        for fact in facts:
            if fact.kind == "run.world":
                self.nodes = max(self.nodes, fact.fields.get("nodes") or 1)
                self.world = max(self.world or 0, fact.fields.get("world_size") or 0) or None
            if fact.host is not None and fact.kind in (*_PLACES, "process.exit"):
                hosts.add(fact.host)
            fields = fact.fields
            rank = fields.get("of_rank")
            if rank is None:
                rank = fact.rank
            elif not self._counts(fact):
                continue  # a rank inside a smaller communicator
            if rank is None:
                continue
            host = fields.get("on_host") or fact.host
            if host is not None:
                self._hosts.setdefault(rank, host)
            pid = fields.get("of_pid") or fields.get("pid")
            local = fields.get("local") if fields.get("local") is not None else fields.get("local_rank")
            if pid is not None:
                self._by_pid.setdefault((host, pid), set()).add(rank)
                self._by_pid.setdefault((None, pid), set()).add(rank)
            if local is not None:
                self._by_local.setdefault((host, local), set()).add(rank)
                self._by_local.setdefault((None, local), set()).add(rank)
        self.nodes = max(self.nodes, len(hosts))
        for fact in facts:  # a launcher that names local rank and process tells the rest by way of the rank
            if fact.kind == "process.exit" and fact.fields.get("of_pid") is not None:
                known = self.rank_of(fact)
                if known is not None:
                    self._by_pid.setdefault((None, fact.fields["of_pid"]), set()).add(known)

    def _counts(self, fact: Fact) -> bool:
        """False where ``of_rank`` of a place is a rank within a part of the job."""
        return fact.kind not in _PLACES or fact.fields.get("world_size") in (None, self._whole)

    def rank_of(self, fact: Fact) -> int | None:
        fields = fact.fields
        if fields.get("of_rank") is not None and fact.kind == "process.exit":
            return int(fields["of_rank"])
        if fact.rank is not None:
            return fact.rank
        if fields.get("of_rank") is not None and self._counts(fact):
            return int(fields["of_rank"])
        place = fields.get("pg_rank") if fact.kind in _WATCHDOG else None
        if place is not None and (fields.get("pg") == "0" or fields.get("pg_desc") == "default_pg"):
            return int(place)  # the rank in the group of all ranks is the global one
        pid = fields.get("of_pid") or fields.get("pid")
        local = fields.get("local") if fields.get("local") is not None else fields.get("local_rank")
        for table, key in ((self._by_pid, pid), (self._by_local, local)):
            if key is None:
                continue
            for host in (fact.host, None):
                ranks = table.get((host, key))
                if ranks is not None and len(ranks) == 1:
                    return next(iter(ranks))
        if fields.get("file_rank") is not None:
            return int(fields["file_rank"])
        if local is not None and self.nodes == 1 and fact.kind != "run.start":
            return int(local)
        if place is not None and fields.get("pg") is None and not self._parts:
            return int(place)  # of a group that the line does not name: mostly that of all ranks
        return None

    def host_of(self, rank: int | None) -> str | None:
        return None if rank is None else self._hosts.get(rank)


def _whole_job(facts: Sequence[Fact]) -> int:
    """The size of the communicators whose ranks are those of the job; 0 where the log shows only communicators of parts of it."""
    places = [fact for fact in facts if fact.kind in _PLACES and fact.fields.get("world_size")]
    biggest: int = max((fact.fields["world_size"] for fact in places), default=0)
    world = max((fact.fields.get("world_size") or 0 for fact in facts if fact.kind == "run.world"), default=0)
    claims: dict[int, set[tuple[object, object]]] = {}
    for fact in places:
        if fact.kind == "nccl.setup" and fact.fields["world_size"] == biggest and fact.fields.get("comm"):
            claims.setdefault(fact.fields.get("of_rank", -1), set()).add((fact.host, fact.fields["comm"]))
    if any(fact.rank is not None and fact.rank >= biggest > 0 and fact.kind not in _PLACES for fact in facts):
        return 0  # a rank of the job that none of them has
    several = sum(len({host for host, _ in claim}) > 1 and len({comm for _, comm in claim}) > 1 for claim in claims.values())
    return 0 if world > biggest > 0 or (several and several == len(claims)) else biggest


def _in_a_part(fact: Fact) -> bool:
    """True for a line of a watchdog whose rank is one within a part of the job, as its prefix shows."""
    fields = fact.fields
    return fact.kind in _WATCHDOG and fact.rank is not None and fields.get("pg") is None and fields.get("pg_rank") not in (None, fact.rank)


def place(facts: Sequence[Fact], files: Sequence[FileRead]) -> list[Fact]:
    """Facts with rank and host filled in where the rest of the logs tells them."""
    places = Places(facts)
    result = []
    for fact in facts:
        rank = places.rank_of(fact)
        host = fact.host or places.host_of(rank)
        result.append(fact if rank == fact.rank and host == fact.host else replace(fact, rank=rank, host=host))
    return result


def ranks_seen(facts: Sequence[Fact], files: Sequence[FileRead]) -> frozenset[int]:
    """Every rank that a line, a file name or a launcher names."""
    seen = {fact.rank for fact in facts if fact.rank is not None}
    for file in files:
        seen |= file.ranks
    return frozenset(seen)
