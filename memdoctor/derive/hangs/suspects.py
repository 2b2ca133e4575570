"""Which ranks held up the others, as far as what the ranks say of their time-outs shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdoctor.derive.collectives.judging import verdicts
from memdoctor.derive.collectives.lateness import late_ranks
from memdoctor.derive.collectives.meeting import Meeting
from memdoctor.derive.collectives.meetings import collectives
from memdoctor.derive.collectives.unseen import suspects as fewest
from memdoctor.derive.collectives.verdict import Verdict
from memdoctor.derive.collectives.waits import Knot, Waits
from memdoctor.derive.hangs.axes import Axes
from memdoctor.derive.hangs.picture import Picture
from memdoctor.records import record

MOST = 2  # of so many members fewer than one may be silent: where more are, their output is not in this log
DIFFERENT = ("mismatch_type", "mismatch_dtype", "mismatch_size")

End = tuple[Knot, Meeting]  # a call that nothing but its own ranks holds up, and who waits for it in the end


@record
class Suspect:
    """``name``: silent (said nothing of the time-out), behind (alive, had not called), late (called long after the others), odd (called something
    else than the majority), mixed (likewise, without a majority), extra (called what nobody else called), untold (timed out, in which call is
    not told), unclear (silent or untold), stuck (called like all others, and nothing ends). ``others`` are the suspects beside it; ``sure``: the log names the group.
    """

    name: str
    rank: int
    meeting: Meeting | None
    waiting: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    sure: bool = True
    late: float | None = None
    members: int | None = None
    counts: bool = False  # an odd or mixed one that differs in the number of its call


def suspects(shown: Picture, axes: Axes, excused: frozenset[int], aborted: frozenset[int] = frozenset()) -> list[Suspect]:
    """The ranks at fault in ascending order. ``excused`` are ranks whose own error the log shows: where they explain the wait, nobody is named.
    ``aborted`` are ranks that ended as those do that gave up waiting: they are no suspects beside others."""
    found = verdicts(shown.world) if shown.world.dumps else []
    named = [suspect for verdict in found if (suspect := _named(shown, verdict)) is not None]
    if named:
        return sorted(named, key=lambda one: one.rank)
    knots = Waits(shown.world, list(collectives(shown.world))).knots() if shown.world.dumps else []
    ends = [(knot, knot.meetings[0]) for knot in knots if len(knot.meetings) == 1 and not knot.ranks]
    if not ends:
        return _of_all(shown, axes, excused, aborted)
    lagging = [suspect for knot, meeting in ends for suspect in (*_counted(shown, knot, meeting), *_late(shown, knot, meeting))]
    if lagging:
        return lagging
    knot, meeting = _first(ends)
    untold = [] if meeting.since is None or _missing(shown, meeting, aborted) else _untold(shown, knot, meeting)
    if untold:
        return untold
    lacking = [(knot, meeting, ranks) for knot, meeting in ends if (ranks := _missing(shown, meeting, aborted))]
    if lacking:
        silent = _silent(shown, lacking, excused)
        either = [one for end in ends for one in _untold(shown, *end)]
        return _either(silent, either) if silent and either else silent
    if aborted.intersection(rank for _, meeting in ends for rank in meeting.unseen):
        return []  # the only one that is missing ended by itself
    return [suspect for knot, meeting in ends for suspect in _untold(shown, knot, meeting) or _stuck(shown, knot, meeting)]


def _first(ends: Sequence[End]) -> End:
    """Where the waiting began: the others came to theirs because of it. Without times, where most of the members are known to wait."""
    timed = all(meeting.since is not None for _, meeting in ends)
    return min(ends, key=lambda end: (end[1].since or 0.0) if timed else -len(end[1].waiting) / len(end[1].members))


def _named(shown: Picture, verdict: Verdict) -> Suspect | None:
    meeting, rank = verdict.meeting, verdict.rank
    if meeting is None or rank is None:
        return None
    sure = meeting.group in shown.sure
    if verdict.name in DIFFERENT:
        told = {one for one, call in meeting.calls.items() if call.op}
        name = "mixed" if set(verdict.others) | {rank} >= told else "odd"
        return Suspect(name, rank, meeting, verdict.waiting, verdict.others, sure)
    if verdict.name in ("cycle", "order") and any(len(shown.world.open.get(one, ())) > 1 for one in (rank, *verdict.others)):
        return None  # lines do not tell which of two calls holds up the other
    name = {"missing": "behind", "late": "late", "extra": "extra", "cycle": "mixed", "order": "mixed"}.get(verdict.name, "")
    return Suspect(name, rank, meeting, verdict.waiting, verdict.others, sure, verdict.late) if name else None


def _counted(shown: Picture, knot: Knot, meeting: Meeting) -> list[Suspect]:
    """Ranks that time out in another number of calls than the others of their group: they made one more, or one less."""
    if not meeting.partial or meeting.group not in shown.sure:
        return []
    behind = meeting.waiting
    ahead = tuple(
        rank
        for rank in meeting.members
        if any(call.group == meeting.group and call.seq > meeting.seq for call in shown.world.open.get(rank, ()))
    )
    if not ahead:  # the others have it behind them, and are not held up themselves
        if MOST * len(behind) >= len(meeting.members):
            return []
        return [Suspect("behind", rank, meeting, _less(knot.waiting, rank), _less(behind, rank)) for rank in behind]
    odd = min(behind, ahead, key=len) if len(behind) != len(ahead) else tuple(sorted((*behind, *ahead)))
    name = "odd" if len(behind) != len(ahead) else "mixed"
    waiting = tuple(sorted({*knot.waiting, *behind, *ahead}))
    return [Suspect(name, rank, meeting, _less(waiting, rank), _less(odd, rank), counts=True) for rank in odd]


def _missing(shown: Picture, meeting: Meeting, aborted: frozenset[int]) -> list[int]:
    """The members of which no line says that they waited, too. One that only watched counts where others that watched tell their calls."""
    unseen = [rank for rank in meeting.unseen if rank not in shown.timed_out and rank not in aborted]
    silent = [rank for rank in unseen if rank not in shown.watching]
    tells = any(rank in shown.world.dumps for rank in shown.watching)
    return silent if silent and not tells else unseen


def _silent(shown: Picture, lacking: Sequence[tuple[Knot, Meeting, list[int]]], excused: frozenset[int]) -> list[Suspect]:
    """The fewest ranks that explain all waits, and whoever is missing where the wait began."""
    found = fewest([frozenset(ranks) for _, _, ranks in lacking])
    of = {rank: lacking[places[0]][:2] for rank, places in found.items()}
    first = _first([(knot, meeting) for knot, meeting, _ in lacking])
    of |= {rank: first for _, meeting, ranks in lacking if meeting is first[1] for rank in ranks}
    if excused & of.keys():
        return []
    ranks = tuple(sorted(of))
    members = len({rank for _, meeting in of.values() for rank in meeting.members})
    if _too_many(len(ranks), members, whole=all(shown.groups[meeting.group].whole for _, meeting in of.values())):
        return []
    result = []
    for rank in ranks:
        knot, meeting = of[rank]
        result.append(Suspect("silent", rank, meeting, knot.waiting, _less(ranks, rank), meeting.group in shown.sure, members=members))
    return result


def _either(silent: Sequence[Suspect], untold: Sequence[Suspect]) -> list[Suspect]:
    """Lines are missing, so it may be a rank that never came, or one that was in another call."""
    found = {one.rank: one for one in (*untold, *silent)}
    return [replace(one, name="unclear", others=_less(sorted(found), rank)) for rank, one in sorted(found.items())]


def _late(shown: Picture, knot: Knot, meeting: Meeting) -> list[Suspect]:
    sure = meeting.group in shown.sure
    return [
        Suspect("late", rank, meeting, _less(knot.waiting, rank), (), sure, by) for rank, by in late_ranks(shown.world, meeting).items()
    ]


def _untold(shown: Picture, knot: Knot, meeting: Meeting) -> list[Suspect]:
    """Members that timed out, and whose call no line tells: it may be another one than that of the others."""
    sure = meeting.group in shown.sure
    # Where lines name the groups of the others, a call without one says no more than none.
    told = {wait.rank for wait in shown.waits if wait.op and (wait.group is not None or not sure)}
    told |= {wait.rank for wait in shown.waits if wait.fact.rank != wait.rank}  # the first to give up, as others tell, had waited longest
    untold = [rank for rank in meeting.members if rank in shown.timed_out and rank not in told]
    if not untold or _too_many(len(untold), len(meeting.members)):
        return []
    return [Suspect("untold", rank, meeting, _less(knot.waiting, rank), _less(untold, rank), sure) for rank in untold]


def _stuck(shown: Picture, knot: Knot, meeting: Meeting) -> list[Suspect]:
    """Everybody is in the call, and it does not end."""
    group = shown.groups[meeting.group]
    if (
        not (group.whole or group.round)
        or meeting.group not in shown.sure
        or len(meeting.waiting) < 2
        or set(meeting.waiting) != set(meeting.members)
    ):
        return []
    return [Suspect("stuck", rank, meeting, _less(knot.waiting, rank), _less(meeting.waiting, rank)) for rank in meeting.waiting]


def _of_all(shown: Picture, axes: Axes, excused: frozenset[int], aborted: frozenset[int]) -> list[Suspect]:
    """Where no line tells who waits for whom: the ranks of the job that said nothing, or those of the groups in which messages wait."""
    waiting = tuple(sorted(shown.timed_out))
    spoke = shown.timed_out | shown.watching | aborted
    pairs = {wait.group for wait in shown.waits if wait.pairwise}
    neighbours = {rank for key, group in shown.groups.items() if key in pairs for rank in group.members}
    for ranks in (range(axes.world or 0), sorted(neighbours)):
        silent = [rank for rank in ranks if rank not in spoke]
        if excused.intersection(silent):
            return []
        if silent and not _too_many(len(silent), len(ranks)):
            return [Suspect("silent", rank, None, waiting, _less(silent, rank), sure=False, members=len(ranks)) for rank in silent]
    return []


def _too_many(number: int, members: int, *, whole: bool = True) -> bool:
    return (number > 1 or not whole) and MOST * number >= members


def _less(ranks: Sequence[int], without: int) -> tuple[int, ...]:
    return tuple(rank for rank in ranks if rank != without)
