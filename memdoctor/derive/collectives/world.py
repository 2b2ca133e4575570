"""The dumps of all ranks as one picture: who is in which group, how far each rank came there, what has not ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memdoctor.model import Call, ProcessGroup, RankDump

DEFAULT = ("default_pg",)
# What only the root waits for, or only the others: that one rank is through says nothing of the rest.
ONE_SIDED = ("broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "gather", "scatter")


class World:
    """``members`` are those that a dump names or, where none does, the ranks that have the group. ``sure`` are the groups whose key is equal
    on all ranks."""

    def __init__(self, dumps: Sequence[RankDump]) -> None:
        dumps = _one_key(dumps)
        self.dumps: dict[int, RankDump] = {dump.rank: dump for dump in dumps}
        self.groups: dict[str, ProcessGroup] = {}
        self.members: dict[str, tuple[int, ...]] = {}
        having: dict[str, list[int]] = {}
        for rank, dump in sorted(self.dumps.items()):
            for key, group in dump.groups.items():
                self.groups.setdefault(key, group)
                having.setdefault(key, []).append(rank)
        for key, group in self.groups.items():
            everyone = group.desc in DEFAULT or group.name == "0"
            self.members[key] = group.ranks or tuple(sorted(self.dumps) if everyone else having[key])
        self._numbered_alike = _numbered_alike(dumps)
        self._calls: dict[tuple[int, str], dict[int, Call]] = {}
        self.open: dict[int, list[Call]] = {}
        self.calls_of: dict[int, Sequence[Call]] = {}
        for rank, dump in self.dumps.items():
            self.calls_of[rank] = self._settled(dump)
            for call in self.calls_of[rank]:
                if not call.p2p:
                    self._calls.setdefault((rank, call.group), {})[call.seq] = call
                if not call.done:
                    self.open.setdefault(rank, []).append(call)

    @property
    def size(self) -> int | None:
        """The number of ranks of the job, where a dump tells it."""
        told = [group.ranks[-1] + 1 for group in self.groups.values() if group.ranks and (group.desc in DEFAULT or group.name == "0")]
        return max(told, default=None)

    def sure(self, key: str) -> bool:
        """False where nobody can say who is in the group: its members are not told, or ranks in different groups use one key."""
        group = self.groups[key]
        if group.ranks is None and len(self.members[key]) < 2:
            return False  # whoever else is in it has not called anything there
        return group.shared or self._numbered_alike

    def held_elsewhere(self, rank: int) -> bool:
        """True for a rank that waits in a group of which nobody can say who else is in it."""
        return any(not self.sure(call.group) for call in self.open.get(rank, ()))

    def call(self, rank: int, key: str, seq: int) -> Call | None:
        """The collective with that number, where the dump of the rank still holds it."""
        return self._calls.get((rank, key), {}).get(seq)

    def calls(self, rank: int, key: str) -> Mapping[int, Call]:
        return self._calls.get((rank, key), {})

    def enqueued(self, rank: int, key: str) -> int:
        """The number of the last collective that the rank handed over; 0 for none."""
        return self.dumps[rank].enqueued.get(key, 0)

    def through(self, rank: int, key: str, seq: int) -> bool:
        """True where that collective had ended on the rank."""
        call = self.call(rank, key, seq)
        return call.done if call is not None else self.dumps[rank].completed.get(key, 0) >= seq

    def label(self, key: str) -> str:
        group = self.groups[key]
        return group.desc if group.desc and group.desc != "undefined" else f"group {group.name}"

    def _settled(self, dump: RankDump) -> Sequence[Call]:
        """The calls of a rank. Gloo marks a call as over that nobody joined: where a member never came, it was not."""
        if dump.backend != "gloo":
            return dump.calls
        last = dump.calls[-1].index if dump.calls else 0
        return [
            replace(call, done=False)
            if call.done and self._nobody_came(call) and (call.op not in ONE_SIDED or call.index == last)
            else call
            for call in dump.calls
        ]

    def _nobody_came(self, call: Call) -> bool:
        return any(self.enqueued(rank, call.group) < call.seq for rank in self.members[call.group] if rank in self.dumps)


def _numbered_alike(dumps: Sequence[RankDump]) -> bool:
    """True where the numbers of groups mean the same on all ranks: each rank's own run from 0 on, and then all ranks have about the same."""
    numbers = [frozenset(key for key, group in dump.groups.items() if not group.shared) for dump in dumps]
    return len(frozenset().union(*numbers)) >= 2 * max([1, *map(len, numbers)])


def _one_key(dumps: Sequence[RankDump]) -> list[RankDump]:
    """A group whose ranks one dump does not tell gets the key that the others have for it."""
    told: dict[str, list[ProcessGroup]] = {}
    for group in {group.key: group for dump in dumps for group in dump.groups.values() if group.ranks is not None}.values():
        told.setdefault(group.name, []).append(group)
    result = []
    for dump in dumps:
        other: dict[str, ProcessGroup] = {}
        for key, group in dump.groups.items():
            if group.ranks is None and group.shared:
                fitting = [one for one in told.get(group.name, ()) if one.ranks is not None and dump.rank in one.ranks]
                if len(fitting) == 1:
                    other[key] = fitting[0]
        result.append(_renamed(dump, other) if other else dump)
    return result


def _renamed(dump: RankDump, other: Mapping[str, ProcessGroup]) -> RankDump:
    def key(old: str) -> str:
        return other[old].key if old in other else old

    return replace(
        dump,
        groups={key(old): other.get(old, group) for old, group in dump.groups.items()},
        enqueued={key(old): number for old, number in dump.enqueued.items()},
        completed={key(old): number for old, number in dump.completed.items()},
        calls=tuple(replace(call, group=key(call.group)) for call in dump.calls),
    )
