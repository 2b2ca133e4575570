"""From the dumps of all ranks to the verdicts: which ranks are at fault, and how. The door of this package.

Only the ends of the graph of waits are at fault. What is proved (a rank that never came, a difference, a circle) leaves nothing to what is
only not known (a rank without a dump) or seen of all alike (nothing moves).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from memdoctor.derive.collectives.lateness import late_ranks
from memdoctor.derive.collectives.meeting import Meeting
from memdoctor.derive.collectives.meetings import collectives
from memdoctor.derive.collectives.messages import messages
from memdoctor.derive.collectives.unseen import suspects
from memdoctor.derive.collectives.verdict import Verdict
from memdoctor.derive.collectives.waits import Knot, Waits
from memdoctor.derive.collectives.world import World

FEW = 4  # one rank in so many that called what the others did not is the odd one, rather than all the others late
MOST_STUCK = 16  # meetings that are told where nothing moves


def verdicts(world: World) -> list[Verdict]:
    """What the dumps show, the ranks at fault in ascending order; one verdict ``ok`` where nothing is held up."""
    meetings = [*collectives(world), *messages(world)]
    knots = Waits(world, meetings).knots()
    proved = [verdict for knot in knots for verdict in _proved(world, knot, meetings)]
    if proved:
        return sorted(_each_once(proved), key=lambda verdict: (verdict.rank or 0, verdict.name))
    if any(world.held_elsewhere(rank) for rank in world.open):
        return _idle_alone(world) or [Verdict("undecided", None, None, tuple(sorted(world.open)))]
    open_ends = [(knot, knot.meetings[0]) for knot in knots if len(knot.meetings) == 1 and not knot.ranks]
    whole = [(knot, meeting) for knot, meeting in open_ends if not meeting.partial] or open_ends
    unseen = [(knot, meeting) for knot, meeting in whole if meeting.unseen]
    if unseen:
        return _unseen(unseen)
    late = [
        Verdict("late", rank, meeting, knot.waiting, (), by)
        for knot, meeting in open_ends
        for rank, by in late_ranks(world, meeting).items()
    ]
    if late:
        return sorted(_each_once(late), key=lambda verdict: verdict.rank or 0)
    behind = [verdict for knot, meeting in whole for verdict in _not_started(knot, meeting)]
    if behind:
        return sorted(_each_once(behind), key=lambda verdict: verdict.rank or 0)
    stuck = [Verdict("stuck_all", None, meeting, knot.waiting) for knot, meeting in whole]
    return stuck[:MOST_STUCK] or [Verdict("ok", None, None)]


def _proved(world: World, knot: Knot, meetings: Sequence[Meeting]) -> list[Verdict]:
    if len(knot.ranks) + len(knot.meetings) > 1:
        return _circle(world, knot)
    if knot.meetings:
        meeting = knot.meetings[0]
        fault = meeting.fault
        if fault is None:
            return []
        return [Verdict(fault.name, rank, meeting, _less(knot.waiting, (rank,)), _less(fault.ranks, (rank,))) for rank in fault.ranks]
    (rank,) = knot.ranks
    if world.held_elsewhere(rank):
        return []
    lacking = [meeting for meeting in meetings if rank in meeting.absent]
    meeting = min(lacking, key=lambda one: (one.since or 0.0, len(one.absent), one.group, one.seq))
    if _called_alone(world, meeting):
        return [Verdict("extra", one, meeting, (), _less(meeting.waiting, (one,))) for one in meeting.waiting]
    return [Verdict("missing", rank, meeting, knot.waiting)]


def _idle_alone(world: World) -> list[Verdict]:
    """Where the dumps do not tell who is in which group: the few ranks that wait for nothing while all others wait."""
    idle = [rank for rank in world.dumps if not world.open.get(rank)]
    if not idle or FEW * len(idle) > len(world.dumps):
        return []
    first = min(world.open, key=lambda rank: (world.open[rank][0].created or 0.0, rank))
    call = world.open[first][0]
    meeting = Meeting(call.group, call.seq, tuple(world.dumps), {first: call}, (first,), tuple(idle))
    return [Verdict("missing", rank, meeting, tuple(sorted(world.open))) for rank in idle]


def _called_alone(world: World, meeting: Meeting) -> bool:
    """True where a few ranks call what nobody else does, and the others wait for nothing: then the few are the odd ones."""
    idle = all(not world.open.get(rank) for rank in meeting.absent)
    return (
        meeting.pair is None
        and not meeting.unseen
        and idle
        and len(meeting.members) - len(meeting.absent) == len(meeting.waiting)
        and FEW * len(meeting.waiting) <= len(meeting.members)
    )


def _circle(world: World, knot: Knot) -> list[Verdict]:
    """Ranks that wait for each other: of those that entered two meetings in opposite orders the fewer, or both where they are as many."""
    odd: dict[int, Meeting] = {}
    handed_over = False  # the opposite orders stand in the rings themselves
    for one, other in combinations(knot.meetings, 2):
        first, second = _entered(world, one, other), _entered(world, other, one)
        if not first or not second:
            continue
        handed_over |= any(rank in other.outer for rank in first) and any(rank in one.outer for rank in second)
        if len(first) <= len(second):
            odd.update(dict.fromkeys(first, one))
        if len(second) <= len(first):
            odd.update(dict.fromkeys(second, other))
    if not odd:
        links = set(knot.ranks) or {rank for meeting in knot.meetings for rank in meeting.waiting}
        odd = {rank: next((meeting for meeting in knot.meetings if rank in meeting.waiting), knot.meetings[0]) for rank in sorted(links)}
    name = "order" if handed_over else "cycle"
    ranks = tuple(sorted(odd))
    return [Verdict(name, rank, odd[rank], _less(knot.waiting, (rank,)), _less(ranks, (rank,))) for rank in ranks]


def _entered(world: World, one: Meeting, other: Meeting) -> list[int]:
    """The members of both that entered ``one`` and not yet, or only later, ``other``."""
    both = set(one.members) & set(other.members)
    return sorted(rank for rank in both if rank in one.outer and (rank in other.absent or one.outer[rank] < other.outer.get(rank, -1)))


def _unseen(lacking: Sequence[tuple[Knot, Meeting]]) -> list[Verdict]:
    found = suspects([frozenset(meeting.unseen) for _, meeting in lacking])
    ranks = tuple(sorted(found))
    result = []
    for rank in ranks:
        meeting = min((lacking[place][1] for place in found[rank]), key=lambda one: (one.since or 0.0, len(one.unseen)))
        waiting = sorted({one for place in found[rank] for one in lacking[place][0].waiting})
        result.append(Verdict("not_seen", rank, meeting, tuple(waiting), _less(ranks, (rank,))))
    return result


def _not_started(knot: Knot, meeting: Meeting) -> list[Verdict]:
    """Ranks whose GPU had not reached a collective that runs on those of the others: something before it does not end there."""
    states = {rank: call.started for rank, call in meeting.calls.items() if rank in meeting.waiting}
    behind = tuple(rank for rank, started in states.items() if started is False)
    if None in states.values() or not behind or 2 * len(behind) > len(states) or meeting.pair is not None:
        return []
    return [Verdict("not_started", rank, meeting, _less(knot.waiting, (rank,)), _less(behind, (rank,))) for rank in behind]


def _each_once(found: Sequence[Verdict]) -> list[Verdict]:
    best: dict[int | None, Verdict] = {}
    for verdict in found:
        other = best.get(verdict.rank)
        if other is None or len(verdict.waiting) > len(other.waiting):
            best[verdict.rank] = verdict
    return list(best.values())


def _less(ranks: Sequence[int], without: Sequence[int]) -> tuple[int, ...]:
    left_out = set(without)
    return tuple(rank for rank in ranks if rank not in left_out)
