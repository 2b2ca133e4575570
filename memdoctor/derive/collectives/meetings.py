"""The collectives that did not end, one for each group: who is in it, who is missing, whether they do the same."""

from __future__ import annotations

from collections.abc import Iterator

from memdoctor.derive.collectives.comparing import compare, in_other_order
from memdoctor.derive.collectives.meeting import Fault, Meeting
from memdoctor.derive.collectives.world import ONE_SIDED, World


def collectives(world: World) -> Iterator[Meeting]:
    """For each group the first collective that holds it up."""
    pending: dict[str, set[int]] = {}
    for calls in world.open.values():
        for call in calls:
            if not call.p2p and world.sure(call.group):
                pending.setdefault(call.group, set()).add(call.seq)
    for key in sorted(world.groups):
        found = next((meeting for seq in sorted(pending.get(key, ())) if (meeting := _meeting(world, key, seq)) is not None), None)
        if found is None and key not in pending and world.sure(key):
            found = _last(world, key)
        if found is not None:
            yield found


def _meeting(world: World, key: str, seq: int) -> Meeting | None:
    """The collective, or None where it was only not yet known to be over."""
    members = world.members[key]
    seen = [rank for rank in members if rank in world.dumps]
    joined = [rank for rank in seen if world.enqueued(rank, key) >= seq]
    calls = {rank: call for rank in joined if (call := world.call(rank, key, seq)) is not None}
    waiting = tuple(rank for rank, call in calls.items() if not call.done)
    absent = tuple(rank for rank in seen if world.enqueued(rank, key) < seq)
    unseen = tuple(rank for rank in members if rank not in world.dumps)
    through = [rank for rank in joined if rank not in waiting and world.through(rank, key, seq)]
    fault = _fault(world, key, seq)
    both_ways = all(call.op not in ONE_SIDED for call in calls.values())
    if fault is None and through and both_ways:
        # Nobody gets through a collective to which somebody did not come: those who are "absent" wrote their dump earlier.
        trusted = world.dumps[through[0]].backend == "nccl"
        if absent or not trusted:
            return None
        return Meeting(key, seq, members, calls, waiting, (), (), partial=True, outer={rank: calls[rank].index for rank in waiting})
    return Meeting(key, seq, members, calls, waiting, absent, unseen, None, False, fault, {rank: calls[rank].index for rank in waiting})


def _last(world: World, key: str) -> Meeting | None:
    """The last collective of a group in which all seems over, where the ranks did not do the same in it."""
    seen = [rank for rank in world.members[key] if rank in world.dumps]
    seq = max((world.enqueued(rank, key) for rank in seen), default=0)
    fault = _fault(world, key, seq) if seq > 0 else None
    if fault is None:
        return None
    calls = {rank: call for rank in seen if (call := world.call(rank, key, seq)) is not None}
    return Meeting(key, seq, world.members[key], calls, tuple(calls), fault=fault)


def _fault(world: World, key: str, seq: int) -> Fault | None:
    calls = {rank: call for rank in world.members[key] if rank in world.dumps and (call := world.call(rank, key, seq)) is not None}
    fault = compare(calls)
    if fault is not None and fault.name == "mismatch_type" and in_other_order(world, key, seq, fault):
        return Fault("order", fault.ranks)
    return fault
