"""On which host a rank runs, also one of which no line tells it: nodes hold neighbouring ranks, equally many each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memdoctor.model import Fact


class Hosts:
    """``known`` maps ranks to hosts; ``nodes`` and ``world`` are the size of the job, None where the log does not tell it."""

    def __init__(self, known: Mapping[int, str], world: int | None, nodes: int | None) -> None:
        self._known = known
        self._block = world // nodes if world and nodes and world % nodes == 0 else None

    def of(self, rank: int) -> str | None:
        if rank in self._known:
            return self._known[rank]
        if self._block is None:
            return None
        first = rank - rank % self._block
        there = {self._known[one] for one in range(first, first + self._block) if one in self._known}
        elsewhere = {host for one, host in self._known.items() if not first <= one < first + (self._block or 0)}
        return there.pop() if len(there) == 1 and not there & elsewhere else None


def hosts_of(facts: Sequence[Fact], world: int | None) -> Hosts:
    """From the facts of the log, with their ranks filled in."""
    known: dict[int, str] = {}
    nodes = 0
    for fact in facts:
        if fact.kind == "run.world":
            nodes = max(nodes, fact.fields.get("nodes") or 0)
        if (
            fact.host is not None
            and fact.rank is not None
            and not (fact.kind == "rank.place" and fact.fields.get("world_size") not in (None, world))
        ):
            known.setdefault(fact.rank, fact.host)
    hosts = set(known.values())
    if len(hosts) > nodes:  # what few lines tell, such as a launcher's box, does not show how many nodes there are
        nodes = len(hosts) if world and 2 * len(known) >= world else 0
    return Hosts(known, world, nodes or None)
