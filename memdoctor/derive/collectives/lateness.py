"""Ranks that came, but long after the others: found by the times at which the calls were made, with the clocks of the hosts allowed for."""

from __future__ import annotations

from collections.abc import Mapping

from memdoctor.derive.collectives.meeting import Meeting
from memdoctor.derive.collectives.world import World
from memdoctor.derive.series.robust import median
from memdoctor.model import Call

SHARE = 0.5  # of the limit: who comes later than that is late; clocks are off by seconds, limits are minutes
LIMIT = 600.0  # seconds: NCCL's default, where the dump does not tell
BEFORE = 16  # earlier collectives of the group that show how far the clocks are apart
STEPS = 64  # how far back a delay is followed


def late_ranks(world: World, meeting: Meeting) -> dict[int, float]:
    """The ranks whose delay held up ``meeting``, with the seconds by which each was late."""
    bound = SHARE * (meeting.limit or LIMIT)
    late = {rank: by for rank, by in _behind(world, meeting.group, meeting.seq, meeting.calls).items() if by > bound}
    if not late or len(late) == len(meeting.calls):
        return {}
    idle = {rank: gap for rank in world.dumps if (gap := _idle(world, rank, bound)) > bound}
    if not idle or 2 * len(idle) > len(world.dumps):
        idle = {}
        for rank, by in late.items():
            root = _follow(world, rank, meeting.calls[rank], bound)
            idle[root] = max(by, idle.get(root, 0.0))
    return idle if 2 * len(idle) <= len(world.dumps) else {}


def _idle(world: World, rank: int, bound: float) -> float:
    """How long the rank made no call although all that it had called before was over: a rank that is held up waits in a call instead."""
    free: float | None = None
    longest = 0.0
    for call in world.calls_of[rank]:
        if free is not None and call.created is not None:
            longest = max(longest, call.created - free)
        end = call.ended if call.done else None
        if call.created is None or end is None:
            return longest if longest > bound else 0.0
        free = max(free or 0.0, call.created, end)
    return longest


def _behind(world: World, key: str, seq: int, calls: Mapping[int, Call]) -> dict[int, float]:
    """By how many seconds each rank came after the first half, less what its clock was ahead in the calls before."""
    made = {rank: call.created for rank, call in calls.items() if call.created is not None}
    if len(made) < 2:
        return {}
    start = _middle(list(made.values()))
    offsets: dict[int, list[float]] = {}
    if all(call.pair is None for call in calls.values()):
        for number in range(max(1, seq - BEFORE), seq):
            before = {
                rank: call.created for rank in made if (call := world.call(rank, key, number)) is not None and call.created is not None
            }
            if len(before) == len(made):
                middle = _middle(list(before.values()))
                for rank, time in before.items():
                    offsets.setdefault(rank, []).append(time - middle)
    return {rank: time - start - (median(offsets[rank]) if rank in offsets else 0.0) for rank, time in made.items()}


def _middle(times: list[float]) -> float:
    """The time by which half of them had come (of two: the first)."""
    return sorted(times)[(len(times) - 1) // 2]


def _follow(world: World, rank: int, call: Call, bound: float) -> int:
    """Who began the delay: a rank that was itself held up in its call before was not late of its own."""
    for _ in range(STEPS):
        before = next((one for one in reversed(world.calls_of[rank]) if one.index < call.index and not one.p2p), None)
        if before is None or before.created is None or call.created is None or not before.done:
            return rank
        others = {
            other: one
            for other in world.members[before.group]
            if other in world.dumps and (one := world.call(other, before.group, before.seq)) is not None
        }
        behind = {other: by for other, by in _behind(world, before.group, before.seq, others).items() if by > bound}
        if call.created - before.created > bound and rank not in behind and not behind:
            return rank  # all came to the call before in time, and then this one did not go on
        if not behind:
            return rank
        last = max(behind, key=lambda other: behind[other])
        rank, call = last, others[last]
    return rank
