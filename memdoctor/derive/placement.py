"""Which rank a fact belongs to, where its own line does not say: by process id, local rank, file or launcher box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdoctor.derive.misnamed import misnamed, says
from memdoctor.derive.nodes import WATCHDOG, Nodes, group_rank, local_of, of_all
from memdoctor.derive.quoted import give_to_workers
from memdoctor.derive.tasks import tasks_are_ranks
from memdoctor.model import Fact, FileRead

_PLACES = ("rank.place", "nccl.setup", "process.live")


class Places:
    """What the logs tell of rank ↔ process ↔ local rank ↔ host."""

    def __init__(self, facts: Sequence[Fact], files: Sequence[FileRead] = ()) -> None:
        self._by_pid: dict[tuple[str | None, int], set[int]] = {}
        self._pids_of_hosts: set[int] = set()
        self._hosts: dict[int, str] = {}
        self._parts = any(_in_a_part(fact) for fact in facts)
        self._whole = _whole_job(facts)
        self._files = {file.number: file for file in files}
        self._unnamed = misnamed(facts, files)
        self.nodes = Nodes(facts, self._files, self._told)
        if self.nodes.several:
            self._unnamed |= {file.number for file in files if file.unit and file.rank is not None and file.rank == file.local_rank}
        self._tasks = tasks_are_ranks(facts)
        for fact in facts:
            rank = self._told(fact)
            if rank is None:
                continue
            host = fact.fields.get("on_host") or fact.host
            if host is not None:
                self._hosts.setdefault(rank, host)
            self._note(host, _pid_of(fact), rank)
        for fact in facts:  # a launcher that names local rank and process tells the rest by way of the rank
            if fact.kind == "process.exit" and fact.fields.get("of_pid") is not None:
                known = self.rank_of(fact)
                if known is not None:
                    self._note(fact.fields.get("on_host") or fact.host, fact.fields["of_pid"], known)

    def _note(self, host: str | None, pid: int | None, rank: int) -> None:
        if pid is None:
            return
        self._by_pid.setdefault((None, pid), set()).add(rank)
        if host is not None:
            self._by_pid.setdefault((host, pid), set()).add(rank)
            self._pids_of_hosts.add(pid)

    def _told(self, fact: Fact) -> int | None:
        """The rank that the fact itself tells."""
        rank = fact.fields.get("of_rank")
        if rank is not None:
            return int(rank) if self._counts(fact) else None
        return self._own(fact)

    def _own(self, fact: Fact) -> int | None:
        """The rank of the line or of the file's name, where that is not a number of something else."""
        number = fact.seq >> 44
        if fact.rank is None or number not in self._unnamed:
            return fact.rank
        file = self._files[number]
        if fact.rank != file.rank or says(fact.origin.excerpt, fact.rank):
            return fact.rank
        return None

    def _counts(self, fact: Fact) -> bool:
        """False where ``of_rank`` of a place is a rank within a part of the job."""
        return fact.kind not in _PLACES or fact.fields.get("world_size") in (None, self._whole)

    def rank_of(self, fact: Fact) -> int | None:
        fields = fact.fields
        if fields.get("of_rank") is not None and fact.kind == "process.exit":
            return int(fields["of_rank"])
        own = self._own(fact)
        if own is not None:
            return own
        if fields.get("of_rank") is not None and self._counts(fact):
            return int(fields["of_rank"])
        within, pg, desc = group_rank(fact)
        if within is not None and of_all(pg, desc):
            return int(within)
        by_pid = self._of_pid(fact)
        if by_pid is not None:
            return by_pid
        local = local_of(fact)
        known = None if local is None else self.nodes.rank(fact, local)
        if known is not None:
            return known
        if fields.get("file_rank") is not None and (fact.seq >> 44) not in self._unnamed:
            return int(fields["file_rank"])
        if self._tasks and isinstance(fields.get("task"), (str, int)) and str(fields["task"]).isdecimal():
            return int(fields["task"])
        if within is not None and pg is None and not self._parts and not self.nodes.in_parts:
            return int(within)  # of a group that the line does not name: mostly that of all ranks
        return None

    def _of_pid(self, fact: Fact) -> int | None:
        """The rank of the process; one with the same number on another host is another."""
        pid = _pid_of(fact)
        if pid is None:
            return None
        host = fact.fields.get("on_host") or fact.host
        anywhere = host is None or pid not in self._pids_of_hosts or not self.nodes.several
        for key in ((host, pid), (None, pid)) if anywhere else ((host, pid),):
            ranks = self._by_pid.get(key)
            if ranks is not None and len(ranks) == 1:
                return next(iter(ranks))
        return None

    def host_of(self, rank: int | None) -> str | None:
        return None if rank is None else self._hosts.get(rank)

    def file_of(self, file: FileRead) -> FileRead:
        """``file`` without the rank of its name where it is none."""
        if file.number in self._unnamed:
            return replace(file, rank=None, ranks=file.ranks - {file.rank})
        return file


def _pid_of(fact: Fact) -> int | None:
    pid: int | None = fact.fields.get("of_pid") or fact.fields.get("pid")
    return pid


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
    return fact.kind in WATCHDOG and fact.rank is not None and fields.get("pg") is None and fields.get("pg_rank") not in (None, fact.rank)


def place(facts: Sequence[Fact], files: Sequence[FileRead]) -> list[Fact]:
    """Facts with rank and host filled in where the rest of the logs tells them."""
    return placed(facts, files)[0]


def placed(facts: Sequence[Fact], files: Sequence[FileRead]) -> tuple[list[Fact], list[FileRead]]:
    """As ``place``, and the files without the ranks of their names that are none."""
    facts = give_to_workers(facts)
    places = Places(facts, files)
    result = []
    for fact in facts:
        rank = places.rank_of(fact)
        host = fact.host or places.host_of(rank) or (fact.fields.get("node") if rank is not None and fact.kind == "scheduler" else None)
        result.append(fact if rank == fact.rank and host == fact.host else replace(fact, rank=rank, host=host))
    return result, [places.file_of(file) for file in files]


def ranks_seen(facts: Sequence[Fact], files: Sequence[FileRead]) -> frozenset[int]:
    """Every rank that a line, a file name or a launcher names."""
    seen = {fact.rank for fact in facts if fact.rank is not None}
    for file in files:
        seen |= file.ranks
    return frozenset(seen)
