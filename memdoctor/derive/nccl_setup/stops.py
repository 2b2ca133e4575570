"""A set-up that does not end: at which step, and which ranks are behind the others or never came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdoctor.derive.nccl_setup.members import Member, fact_of, machines
from memdoctor.model import Ended, Fact, StepMark

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


def stopped(members: Sequence[Member], marks: Sequence[StepMark], status: Ended, world: int | None) -> list[Fact]:
    """One fact for each rank that the others wait for; for each that waits, where none is behind the others.

    ``sure`` is False where the log merely ends in the middle of the set-up: it may be over by now.
    """
    if status in _OVER:
        return []
    groups: dict[object, list[Member]] = {}
    for member in members:
        if member.begun and member.whole and member.stage:
            groups.setdefault(_group(member), []).append(member)
    for own in sorted(groups.values(), key=len, reverse=True):
        waiting = [member for member in own if _waits(member) and not _went_on(member, marks)]
        done = {member.machine for member in own if not _waits(member)}
        waiting = [member for member in waiting if member.machine not in done]  # else its last line was lost among those of others
        if waiting and not _alone(waiting, members):
            return _tell(waiting, own, members, status, world)
    return []


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


def _tell(waiting: Sequence[Member], own: Sequence[Member], members: Sequence[Member], status: Ended, world: int | None) -> list[Fact]:
    sure = status in ("failed", "killed")
    size = max(member.open_size or member.world_size or 0 for member in own)
    job = max([world or 0, *(member.world_size or 0 for member in members)])
    part = 0 < size < job
    size = size if part else job
    missing = [] if part else _missing(own, size)
    order = [STAGES.index(_stage(member)) for member in waiting]
    most = max(order)
    if most >= GRAPH:  # the meeting was over for all of them, whatever else a rank had to say since
        order = [max(step, TOPOLOGY) for step in order]
    least = min(order)
    steps = list(zip(waiting, order, strict=True))
    behind = [(member, step) for member, step in steps if step == least] if least < most else []
    common = {
        "name": "stopped",
        "waiting": len(waiting),
        "of": size or None,
        "transport": _transport(members),
        "way": _way(members),
        "sure": sure,
    }
    if missing:
        stage = STAGES[most]
        witness = waiting[0]
        return [_of_missing(witness, rank, {**common, "reason": "missing", "stage": stage}) for rank in missing]
    elsewhere = _elsewhere(waiting, members, size) if part else []
    if elsewhere:
        fields = {**common, "reason": "missing", "stage": STAGES[most]}
        return [fact_of(member, "nccl.verdict", member.line("comm"), fields) for member in elsewhere]
    told = behind or steps
    reason = "behind" if behind else "all"
    return [
        fact_of(member, "nccl.verdict", member.open_line or member.line("network"), {**common, "reason": reason, "stage": STAGES[step]})
        for member, step in told
    ]


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
    return replace(made, rank=rank, host=None, event=f"{made.event}:{rank}")


def _transport(members: Sequence[Member]) -> str | None:
    """The network between these processes by its name."""
    names = sorted({member.network for member in members if member.network})
    return next((name for name in names if name != "Socket"), "Socket" if names else None) if machines(members) > 1 else None


def _way(members: Sequence[Member]) -> str:
    """What the channels between these processes run over: rdma, socket, or local where they are on one machine."""
    if machines(members) < 2:
        return "local"
    return "socket" if _transport(members) == "Socket" else "rdma"
