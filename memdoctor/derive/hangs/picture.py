"""From what the ranks say to the picture that flight recorders give (derive/collectives): who is in which group, who waits in which call.

So one judgement serves both: dumps show every call of a rank, watchdog lines only the one that timed out and how far the rank had come.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from memdoctor.derive.collectives.world import World
from memdoctor.derive.hangs.axes import Axes
from memdoctor.derive.hangs.groups import Group, everyone, group_of, split
from memdoctor.derive.hangs.waits import DEFAULT, Spoken, Wait
from memdoctor.derive.series.robust import median
from memdoctor.model import Call, ProcessGroup, RankDump
from memdoctor.records import record

COUNTED = 16  # calls after which two groups hardly ever stand at the same number by chance; at the start of a run they all do
TOGETHER = 60.0  # seconds within which ranks of one collective give up; they began to wait when the last but one of them came
_OPS = {
    "ALLREDUCE": "all_reduce", "BROADCAST": "broadcast", "REDUCE": "reduce", "ALLGATHER": "all_gather", "_ALLGATHER_BASE": "_all_gather_base",
    "REDUCE_SCATTER": "reduce_scatter", "_REDUCE_SCATTER_BASE": "_reduce_scatter_base", "ALLTOALL": "alltoall", "ALLTOALL_BASE": "alltoall_base",
    "GATHER": "gather", "SCATTER": "scatter", "_BROADCAST_OOP": "_broadcast_oop", "_REDUCE_OOP": "_reduce_oop",
}  # fmt: skip


@record
class Picture:
    """``groups`` by key; ``sure`` are the keys of those that the log itself names. ``waits`` have the key of their group, where there is one.

    ``timed_out`` and ``watching`` are the ranks that said so of themselves."""

    world: World
    groups: Mapping[str, Group]
    sure: frozenset[str]
    waits: Sequence[Wait]
    timed_out: frozenset[int]
    watching: frozenset[int]


def picture(said: Spoken, axes: Axes, seen: frozenset[int]) -> Picture:
    """``seen`` are all ranks that any line names."""
    waits = [replace(wait) for wait in said.waits]
    _date(waits)
    named = _by_name(waits, said, axes, seen)
    assumed = _unnamed(waits, named, axes, seen)
    groups = {**named, **assumed}
    descs = {wait.group: wait.desc for wait in waits if wait.group is not None and wait.desc}
    made = {
        key: ProcessGroup(
            key, key.split("/")[0], descs.get(key, said.descs.get(key, "default_pg" if key == DEFAULT else "")), group.members
        )
        for key, group in groups.items()
    }
    dumps = [*_waiting(waits, made), *_watching(said, waits, made)]
    return Picture(World(dumps), groups, frozenset(named), waits, said.ranks, frozenset(said.saw))


def _date(waits: Sequence[Wait]) -> None:
    """Where only a line without its limit is left of a time-out, it waited as long as the others."""
    lasted = [wait.fact.time.epoch - wait.began for wait in waits if wait.began is not None and wait.fact.time is not None]
    if lasted:
        for wait in waits:
            if wait.began is None and wait.fact.time is not None:
                wait.began = wait.fact.time.epoch - median(lasted)


# --- groups -----------------------------------------------------------------------------------------------------------------


def _by_name(waits: Sequence[Wait], said: Spoken, axes: Axes, seen: frozenset[int]) -> dict[str, Group]:
    """Groups that lines name. A number that several groups share (it is then each rank's own count) is told apart as ``number/part``."""
    groups: dict[str, Group] = {}
    for key in dict.fromkeys(wait.group for wait in waits if wait.group is not None):
        own = [wait for wait in waits if wait.group == key]
        if key == DEFAULT:
            groups[key] = everyone(axes, seen)
            continue
        pairs = sorted({(wait.rank, wait.place) for wait in own if wait.place is not None})
        parts = split(pairs, axes) if pairs else []
        desc = next((wait.desc for wait in own if wait.desc), said.descs.get(key, ""))
        for number, part in enumerate(parts):
            name = key if len(parts) == 1 else f"{key}/{number}"
            group = group_of(part, desc, axes) or Group(tuple(sorted({wait.rank for wait in own if wait.rank in part})), whole=False)
            groups[name] = group
            for wait in own:
                if wait.rank in part:
                    wait.group = name
        for wait in own:  # a line that does not tell the place
            if wait.group == key and key not in groups:
                wait.group = next(
                    (name for name, group in groups.items() if wait.rank in group.members and name.startswith(f"{key}/")), key
                )
        if key not in groups and any(wait.group == key for wait in own):
            groups[key] = Group(tuple(sorted({wait.rank for wait in own if wait.group == key})), whole=False)
    return groups


def _unnamed(waits: Sequence[Wait], named: Mapping[str, Group], axes: Axes, seen: frozenset[int]) -> dict[str, Group]:
    """Groups of the calls whose group no line names: ranks at the same number of calls, whose places fit into one group."""
    left = [wait for wait in waits if wait.group is None]
    for wait in left:
        wait.group = next((key for key, group in named.items() if _belongs(wait, group, [one for one in waits if one.group == key])), None)
    left = [wait for wait in left if wait.group is None and wait.seq is not None and not wait.pairwise]
    groups: dict[str, Group] = {}
    for seq in dict.fromkeys(wait.seq for wait in left):
        same = [wait for wait in left if wait.seq == seq]
        if not _one_moment(same) or not _one_call_each(same):
            continue
        pairs = sorted({(wait.rank, wait.place if wait.place is not None else wait.rank) for wait in same})
        for part in split(pairs, axes):
            all_ranks = len(same) == len(waits) and all(rank == place for rank, place in part.items())
            group = everyone(axes, seen) if all_ranks else group_of(part, "", axes)
            if group is None:
                continue
            key = f"?{len(groups)}"
            groups[key] = group
            for wait in same:
                if wait.rank in part:
                    wait.group = key
    return groups


def _belongs(wait: Wait, group: Group, others: Sequence[Wait]) -> bool:
    if wait.rank not in group.members or wait.seq is None or all(other.seq != wait.seq for other in others):
        return False
    return wait.place is None or (wait.place < len(group.members) and group.members[wait.place] == wait.rank)


def _one_moment(waits: Sequence[Wait]) -> bool:
    """Whether ranks that timed out in the same number of calls may be of one group. Where they differ in the call, number and moment must tell."""
    if len({(wait.op, wait.size) for wait in waits}) == 1:
        return True
    times = [wait.fact.time.epoch for wait in waits if wait.fact.time is not None]
    together = not times or (len(times) == len(waits) and max(times) - min(times) <= TOGETHER)
    return together and (waits[0].seq or 0) >= COUNTED


def _one_call_each(waits: Sequence[Wait]) -> bool:
    """False where one rank waits in two calls of that number: then they are of different groups."""
    return len({wait.rank for wait in waits}) == len(waits)


# --- ranks ------------------------------------------------------------------------------------------------------------------


def _waiting(waits: Sequence[Wait], made: Mapping[str, ProcessGroup]) -> list[RankDump]:
    """The ranks that timed out, each with the calls that did not end. One whose call is not told, or is a message to a peer that the line
    does not name, is left out: it is known to wait, but not for whom."""
    result = []
    for rank in sorted({wait.rank for wait in waits}):
        groups = {
            key: group for key, group in made.items() if rank in (group.ranks or ())
        }  # a rank beyond the size that the log tells is in none
        own = [wait for wait in waits if wait.rank == rank and wait.group in groups and not wait.pairwise]
        first: dict[str, Wait] = {}
        for wait in own:
            key = str(wait.group)
            if wait.seq is not None and (key not in first or wait.seq < (first[key].seq or 0)):
                first[key] = wait
        if not first:
            continue
        calls = tuple(_call(number, key, wait) for number, (key, wait) in enumerate(first.items()))
        enqueued = {key: max(wait.seq or 0, wait.enqueued or 0) for key, wait in first.items()}
        completed = {key: (wait.seq or 1) - 1 for key, wait in first.items()}
        result.append(RankDump(own[0].fact.origin.path or "", rank, 0, len(calls), groups, calls, enqueued, completed, backend="nccl"))
    return result


def _call(number: int, key: str, wait: Wait) -> Call:
    inside, outside = wait.size
    return Call(
        number, key, wait.seq or 0, _OPS.get(wait.op, wait.op.lower()), False,
        inputs=((inside,),) if inside is not None else (), outputs=((outside,),) if outside is not None else (),
        created=wait.began, limit=wait.limit,
    )  # fmt: skip


def _watching(said: Spoken, waits: Sequence[Wait], made: Mapping[str, ProcessGroup]) -> list[RankDump]:
    """The ranks that were alive and had not timed out, where a line tells how far they had come in a group that is held up."""
    pending = {wait.group for wait in waits if wait.group is not None}
    result = []
    for rank, numbers in said.saw.items():
        enqueued: dict[str, int] = {}
        completed: dict[str, int] = {}
        for key, (made_calls, ended) in numbers.items():
            for name in _keys(key, rank, made, pending):
                enqueued[name], completed[name] = made_calls, ended
        if enqueued:
            groups = {key: group for key, group in made.items() if group.ranks is not None and rank in group.ranks}
            result.append(RankDump("", rank, 0, 0, groups, (), enqueued, completed, backend="nccl"))
    return result


def _keys(key: str, rank: int, made: Mapping[str, ProcessGroup], pending: Collection[str]) -> list[str]:
    """The keys of held-up groups that are meant by ``key`` in a line of ``rank``; a line that names none means the only one."""
    own = [name for name in made if name in pending and rank in (made[name].ranks or ())]
    if not key:
        return own if len(own) == 1 else []
    return [name for name in own if name == key or name.startswith(f"{key}/")]
