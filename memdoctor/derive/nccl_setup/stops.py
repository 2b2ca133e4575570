"""A set-up that does not end: at which step, and which ranks are behind the others or never came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdoctor.derive.nccl_setup.members import Member, fact_of, machines
from memdoctor.model import Ended, Fact, StepMark
from memdoctor.records import record

STAGES = (
    "network",
    "bootstrap",
    "topology",
    "graph",
    "connect",
    "trees",
    "finish",
    "complete",
)  # as sources/logs/nccl_process.py names them
TOPOLOGY, GRAPH = STAGES.index("topology"), STAGES.index("graph")
_OVER = ("completed",)


@record
class Stop:
    """A set-up that is not over: the members of one communicator, those of them that wait, and at which step (as in STAGES) each does."""

    own: Sequence[Member]
    waiting: Sequence[Member]
    steps: Sequence[int]
    size: int  # ranks of the communicator
    part: bool  # it is one of a part of the job

    @property
    def behind(self) -> list[Member]:
        """Those that are at an earlier step than others; empty where all are at one."""
        least = min(self.steps)
        return [member for member, step in zip(self.waiting, self.steps, strict=True) if step == least] if least < max(self.steps) else []


def stop_of(members: Sequence[Member], marks: Sequence[StepMark], status: Ended, world: int | None) -> Stop | None:
    """The set-up of the greatest communicator that is not over; None where all are, or nothing tells."""
    if status in _OVER:
        return None
    groups: dict[object, list[Member]] = {}
    for member in members:
        if member.begun and member.whole and member.stage:
            groups.setdefault(_group(member), []).append(member)
    for own in sorted(groups.values(), key=len, reverse=True):
        waiting = [member for member in own if _waits(member) and not _went_on(member, marks)]
        done = {member.machine for member in own if not _waits(member)}
        waiting = [member for member in waiting if member.machine not in done]  # else its last line was lost among those of others
        if waiting and not _alone(waiting, members):
            return _stop(own, waiting, members, world)
    return None


def _stop(own: Sequence[Member], waiting: Sequence[Member], members: Sequence[Member], world: int | None) -> Stop:
    size = max(member.open_size or member.world_size or 0 for member in own)
    job = max([world or 0, *(member.world_size or 0 for member in members)])
    part = 0 < size < job
    steps = [STAGES.index(_stage(member)) for member in waiting]
    if max(steps) >= GRAPH:  # the meeting was over for all of them, whatever else a rank had to say since
        steps = [max(step, TOPOLOGY) for step in steps]
    return Stop(own, waiting, steps, size if part else job, part)


def _group(member: Member) -> object:
    """What is equal for the processes that set up one communicator together."""
    if member.connecting and member.stage == "complete":
        return (member.comm, member.world_size)
    return (member.open_comm or member.comm, member.open_size or member.world_size)


def _waits(member: Member) -> bool:
    return member.stage != "complete" or bool(member.connecting)


def _stage(member: Member) -> str:
    return "connect" if member.stage == "complete" and member.connecting else str(member.stage)


def _went_on(member: Member, marks: Sequence[StepMark]) -> bool:
    """True where steps follow the last word of the set-up; steps of another file cannot be told from such."""
    path, file = member.fact.origin.path, member.fact.seq >> 44
    last = (file << 44) | ((member.open_line or member.line("p2p", "shm", "net", "socket")) << 8)
    return any(mark.seq > last or mark.path != path for mark in marks)


def _alone(waiting: Sequence[Member], members: Sequence[Member]) -> bool:
    """True where there is too little to judge by: one process of which not even the size of its communicator is known."""
    return len(waiting) == 1 and len(members) == 1 and not (waiting[0].open_size or waiting[0].world_size)


def tell_stop(stop: Stop, members: Sequence[Member], *, sure: bool, name: str = "stopped") -> list[Fact]:
    """One fact for each rank that the others wait for; for each that waits, where none is behind the others.

    ``sure``: the log says that the job ended there; ``name``: what the facts are called.
    """
    common = {
        "name": name,
        "waiting": len(stop.waiting),
        "of": stop.size or None,
        "transport": _transport(members),
        "way": _way(members),
        "sure": sure,
    }
    missing, elsewhere = absent(stop, members)
    if missing or elsewhere:
        fields = {**common, "reason": "missing", "stage": STAGES[max(stop.steps)]}
        found = [_of_missing(stop.waiting[0], rank, fields) for rank in missing]
        return found or [fact_of(member, "nccl.verdict", member.line("comm"), fields) for member in elsewhere]
    least, common["reason"] = min(stop.steps), "behind" if stop.behind else "all"
    return [
        fact_of(member, "nccl.verdict", member.open_line or member.line("network"), {**common, "stage": STAGES[step]})
        for member, step in zip(stop.waiting, stop.steps, strict=True)
        if step == least
    ]


def absent(stop: Stop, members: Sequence[Member]) -> tuple[list[int], list[Member]]:
    """Whom the others wait for because they have not begun: ranks of which nothing was heard, and processes that are not in this communicator."""
    if stop.part:
        return [], _elsewhere(stop.waiting, members, stop.size)
    return _missing(stop.own, stop.size), []


def _missing(own: Sequence[Member], size: int) -> list[int]:
    """Ranks of which no process was heard although their neighbours on the same machine were.

    Whole machines that are not in the log may have a log of their own; only ranks between others are missing for sure.
    """
    known = {
        member.machine: sorted(rank for peer in own if peer.machine == member.machine and (rank := _rank(peer)) is not None)
        for member in own
    }
    heard = {rank for ranks in known.values() for rank in ranks}
    if not size or len(heard) >= size or not heard or any(_rank(member) is None for member in own):
        return []
    most = max(len(ranks) for ranks in known.values())
    full = max([most, *(ranks[-1] - ranks[0] + 1 for ranks in known.values() if ranks and ranks[-1] - ranks[0] < 2 * most)])
    per_machine = next((count for count in range(full, size + 1) if size % count == 0), size)
    absent = []
    for ranks in known.values():
        block = ranks[0] // per_machine * per_machine
        absent += [rank for rank in range(block, min(block + per_machine, size)) if rank not in heard]
    return sorted(set(absent))


def _elsewhere(waiting: Sequence[Member], members: Sequence[Member], size: int) -> list[Member]:
    """Processes that have not begun a communicator of a part of the job, where the others on their machine wait for it."""
    found: list[Member] = []
    for machine in {member.machine for member in waiting}:
        here = [member for member in members if member.machine == machine]
        idle = [member for member in here if not _waits(member)]
        if idle and len(here) % size == 0 and len(idle) < size:
            found += idle
    return found


def _rank(member: Member) -> int | None:
    if member.open_rank is not None:
        return int(member.open_rank)
    if member.of_rank is not None:
        return int(member.of_rank)
    return member.rank


def _of_missing(witness: Member, rank: int, fields: dict[str, object]) -> Fact:
    made = fact_of(witness, "nccl.verdict", witness.open_line or witness.line("network"), fields)
    known = {**made.fields, "witness": -1 if witness.rank is None else witness.rank}
    return replace(made, fields=known, rank=rank, host=None, event=f"{made.event}:{rank}")


def _transport(members: Sequence[Member]) -> str | None:
    """The network between these processes by its name."""
    names = sorted({member.network for member in members if member.network})
    return next((name for name in names if name != "Socket"), "Socket" if names else None) if machines(members) > 1 else None


def _way(members: Sequence[Member]) -> str:
    """What the channels between these processes run over: rdma, socket, or local where they are on one machine."""
    if machines(members) < 2:
        return "local"
    return "socket" if _transport(members) == "Socket" else "rdma"
