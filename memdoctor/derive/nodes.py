"""Which node a line is of, and which ranks run there: a number that each node counts from 0 is a rank only with the first rank of its node."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from memdoctor.lazy import lazy
from memdoctor.model import Fact, FileRead

WATCHDOG = ("watchdog.timeout", "watchdog.taken_down")
GPUS = 8  # of a node, where nothing tells of more
ENOUGH = 2  # processes of a node whose watchdogs agree on its first rank
_ADDRESS = lazy(r"[\d.]+|.*:.*")
_STREAM = lazy(r"(?<![a-z])(?:stdout|stderr|out|err)(?![a-z])|\.[eo](?=\d)", re.IGNORECASE)
_OF_GROUP = lazy(
    r"\[(?:PG (?:ID \d+ PG GUID )?(?P<pg>[^(\] ]+)(?: ?\((?P<desc>[^)]*)\))? )?Rank (?P<rank>\d+)\] (?:NCCL |Process group )?[wW]atchdog (?:thread|caught)",
    needs=("atchdog ",),
)


def local_of(fact: Fact) -> int | None:
    """The place among the processes of the node that the fact is about."""
    local = fact.fields.get("local")
    return local if local is not None else fact.fields.get("local_rank")


def group_rank(fact: Fact) -> tuple[int | None, str | None, str | None]:
    """The rank within a process group that torch's watchdog says, with the group's number and name where they are told."""
    if fact.kind in WATCHDOG:
        return fact.fields.get("pg_rank"), fact.fields.get("pg"), fact.fields.get("pg_desc")
    match = _OF_GROUP.search(fact.origin.excerpt) if "atchdog" in fact.origin.excerpt else None
    return (None, None, None) if match is None else (int(match["rank"]), match["pg"], match["desc"])


def of_all(pg: str | None, desc: str | None) -> bool:
    """True for the group of all ranks: the rank within it is the global one."""
    return pg == "0" or desc == "default_pg"


class Nodes:
    """``rank_told`` yields the rank that a fact itself tells, one of the whole job; ``files`` by number.

    ``several``: there are more nodes than one. ``in_parts``: watchdogs of several processes say the same rank, so one within a part of the job.
    """

    def __init__(self, facts: Sequence[Fact], files: Mapping[int, FileRead], rank_told: Callable[[Fact], int | None]) -> None:
        self._files = files
        self._exact: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._by_file: dict[tuple[int, int], set[int]] = defaultdict(set)
        self._bases_of: dict[int, set[int]] = defaultdict(set)  # by file: of more than one node's ranks the local ones tell nothing
        self._within: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))  # ranks in groups, mostly that of all
        hosts = {_short(file.host) for file in files.values() if file.host is not None}
        tasks: set[str] = set()
        for file in files.values():
            for machine in file.machines:
                (tasks if machine.startswith("task ") else hosts).add(_short(machine))
        locals_ = {file.local_rank for file in files.values() if file.local_rank is not None}
        units: dict[str, dict[str, set[int]]] = {"names": {}, "labels": {}, "launchers": {}}  # where local ranks are told: numbers of files
        most, nodes, world, least = -1, max((file.nodes for file in files.values()), default=1), 0, 0
        for file in files.values():
            if file.local_rank is not None:
                units["names"].setdefault(_unit_of(file), set()).add(file.number)
        for fact in facts:
            fields = fact.fields
            if fact.kind in ("run.world", "nccl.setup"):
                nodes = max(nodes, fields.get("nodes") or 1)
            if fact.kind in ("run.world", "rank.place", "nccl.setup"):
                least = max(least, fields.get("world_size") or 0)
            if fact.kind == "run.world":
                world = max(world, fields.get("world_size") or 0)
            rank, local = rank_told(fact), local_of(fact)
            if rank is not None:
                most = max(most, rank)
            node = self.of(fact)
            kind, _, name = node.partition(":")
            if kind == "task":
                tasks.add(f"task {name}")
            elif kind == "host" and (local is not None or _labelled(fact)):
                hosts.add(name)
            if local is None or fact.kind == "run.start":
                continue
            locals_.add(local)
            if kind == "unit" and name not in units["names"]:
                units["launchers" if fact.kind == "process.exit" else "labels"].setdefault(name, set()).add(fact.seq >> 44)
            if rank is not None:
                self._exact[node][local].add(rank)
                self._by_file[fact.seq >> 44, local].add(rank)
                self._bases_of[fact.seq >> 44].add(rank - local)
            within, pg, desc = group_rank(fact)
            if within is not None and of_all(pg, desc):
                self._exact[node][local].add(within)
            elif within is not None and pg is None:
                self._within[node][local].add(within)
        self._apart = len({name for told in units.values() for name in told}) + len(tasks) > 1
        size = max([GPUS, *(local + 1 for local in locals_)])
        self._world = world or None
        self.several = (
            nodes > 1
            or len(hosts) > 1
            or len(tasks) > 1
            or bool(tasks - {"task 0"})
            or any(_beside(told, files) for told in units.values())
            or max(most + 1, least) > size
            or any(rank != local for node in self._exact.values() for local, ranks in node.items() for rank in ranks)
            or any(rank > local for node in self._within.values() for local, ranks in node.items() for rank in ranks)
        )
        claims: dict[int, int] = defaultdict(int)
        for told in self._within.values():
            for ranks in told.values():
                for rank in ranks:
                    claims[rank] += 1
        self.in_parts = any(count > 1 for count in claims.values())
        self._bases = self._find_bases()

    def of(self, fact: Fact) -> str:
        """The node that the fact is about: by the task of srun that is a node, by its host, else by the file."""
        stream = fact.fields.get("stream") or ""
        task = stream.partition("/")[0]
        if task[:1] == "n" and task[1:].isdecimal():
            return f"task:{task[1:]}"
        host = fact.fields.get("on_host") or fact.host
        if host is not None:
            return f"host:{_short(host)}"
        file = self._files.get(fact.seq >> 44)
        if file is not None and file.local_rank is not None:
            return f"unit:{_unit_of(file)}"
        return f"unit:{_unit(fact.origin.path or '')}"

    def rank(self, fact: Fact, local: int) -> int | None:
        """The rank of process ``local`` of the fact's node."""
        node = self.of(fact)
        told = self._exact.get(node, {}).get(local, set())
        if len(told) == 1:
            return next(iter(told))
        if told:
            return None
        joined = self._joined.get(node)
        if joined is not None:
            within = group_rank(fact)[0]
            if within is not None:
                return within
            return next(iter(joined[local]), None) if len(joined.get(local, ())) == 1 else None
        base = self._bases.get(node)
        if base is not None and (self._world is None or base + local < self._world):
            return base + local
        file = self._files.get(fact.seq >> 44)
        if node.startswith("unit:") or (file is not None and file.host is not None and file.host == fact.host):  # by the name of a file
            number = fact.seq >> 44
            told = set() if len(self._bases_of.get(number, ())) > 1 else self._by_file.get((number, local)) or set()
            if not told and not self._apart and len(self._bases_of.get(number, ())) < 2:
                told = {rank for ranks in self._exact.values() for rank in ranks.get(local, ())}
            if told:
                return next(iter(told)) if len(told) == 1 else None
        return None if self.several or fact.kind == "run.start" else local

    def _find_bases(self) -> dict[str, int]:
        """The first rank of each node that tells it: launchers number the processes of a node one after the other."""
        bases: dict[str, int] = {}
        self._joined: dict[str, dict[int, set[int]]] = {}  # of lines of several nodes in one: by process the ranks that did not speak up
        for node, told in self._exact.items():
            found = {rank - local for local, ranks in told.items() for rank in ranks}
            if len(found) == 1 and min(found) >= 0:
                bases[node] = min(found)
        weak: dict[str, int] = {}
        for node, told in self._within.items():
            if node in bases or node in self._exact:
                continue
            votes: dict[int, set[int]] = defaultdict(set)
            for local, ranks in told.items():
                for rank in ranks:
                    votes[rank - local].add(local)
            size = max(told) + 1
            firsts = sorted(base for base, locals_ in votes.items() if base >= 0 and 2 * len(locals_) >= size)
            if len(firsts) > 1 and firsts == list(range(firsts[0], firsts[0] + size * len(firsts), size)):
                self._joined[node] = {local: {base + local for base in firsts if local not in votes[base]} for local in range(size)}
                continue
            base = max(votes)  # a rank within a smaller group is never greater than the global one
            if base >= 0 and len(votes[base]) >= ENOUGH and 2 * len(votes[base]) > len(told):
                weak[node] = base
        claims = [(node.partition(":")[0], base) for node, base in weak.items()]
        for node, base in weak.items():
            if claims.count((node.partition(":")[0], base)) == 1 and (base > 0 or any(other > 0 for other in weak.values())):
                bases[node] = base
        return bases


def _short(host: str) -> str:
    host = host.lower()
    return host if _ADDRESS.fullmatch(host) else host.partition(".")[0]


def _labelled(fact: Fact) -> bool:
    """True where a label, or NCCL, puts the host before the line."""
    stream = fact.fields.get("stream") or ""
    return fact.host is not None and (stream.partition("/")[0] == fact.host or stream.startswith(f"{fact.host}:"))


def _unit_of(file: FileRead) -> str:
    """The files beside which the local rank that the name tells is unique, where one node is all there is."""
    return file.unit or file.path.rpartition("/")[0] + "/"


def _unit(path: str) -> str:
    """The path without what tells one output of a process from the other."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + _STREAM.sub("", name)


def _beside(units: Mapping[str, set[int]], files: Mapping[int, FileRead]) -> bool:
    """True where files of several units were written at one time, or may have been: one after the other they are attempts."""
    spans: list[tuple[float, float]] = []
    attempts: list[int | None] = []
    for numbers in units.values():
        own = [files[number] for number in numbers if number in files]
        attempts.append(max((file.attempt or 0 for file in own), default=0) or None)
        firsts = [file.first.epoch for file in own if file.first is not None]
        lasts = [file.last.epoch for file in own if file.last is not None]
        if firsts and lasts:
            spans.append((min(firsts), max(lasts)))
    if len(units) < 2:
        return False
    if None not in attempts and len(set(attempts)) == len(attempts):
        return False
    if len(spans) < len(units):
        return True
    spans.sort()
    return any(after[0] <= before[1] for before, after in pairwise(spans))
