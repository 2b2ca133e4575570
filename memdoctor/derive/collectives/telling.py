"""Verdicts in words: one fact for each rank at fault, with a line that says what it did and what the others did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from memdoctor.derive.collectives.judging import verdicts
from memdoctor.derive.collectives.meeting import Meeting
from memdoctor.derive.collectives.verdict import Verdict
from memdoctor.derive.collectives.world import World
from memdoctor.model import Call, Fact, Origin, RankDump, Stamp
from memdoctor.units import format_duration, format_ranks

KIND = "collective.verdict"
ABSENT = ("missing", "not_seen")
LONGEST = 60  # characters of a list of ranks


def dump_facts(dumps: Sequence[RankDump], first_seq: int = 0) -> tuple[Fact, ...]:
    """What the dumps of one job show: who holds up whom, the size of the world, the versions. Facts count from ``first_seq``."""
    if not dumps:
        return ()
    world = World(dumps)
    facts = [_fact(world, verdict) for verdict in verdicts(world)]
    facts += [_about_job(world, kind, fields) for kind, fields in _job(world)]
    facts += [_seen(dump) for dump in world.dumps.values()]
    return tuple(
        Fact(
            fact.kind, fact.fields, fact.origin, fact.rank, None, fact.time, fact.attempt, first_seq + number, f"dump:{first_seq + number}"
        )
        for number, fact in enumerate(facts)
    )


def _fact(world: World, verdict: Verdict) -> Fact:
    meeting, rank = verdict.meeting, verdict.rank
    fields: dict[str, Any] = {"name": verdict.name, "of_rank": rank, "waiting_ranks": verdict.waiting, "waiting": len(verdict.waiting)}
    if verdict.name in ABSENT:
        fields["missing_rank"] = rank
    if meeting is None:
        witness = next(iter(world.dumps.values()))
        text = f"{len(world.dumps)} {'dump' if len(world.dumps) == 1 else 'dumps'}: nothing is held up"
        if verdict.name == "undecided":
            text = f"ranks {_ranks(verdict.waiting)} wait in groups of which the dumps do not tell the members"
        return Fact(KIND, _known(fields), Origin("dump", witness.path, None, text))
    own = meeting.calls.get(rank) if rank is not None else None
    fields |= {
        "pg": world.groups[meeting.group].name,
        "pg_desc": world.label(meeting.group),
        "seq": meeting.seq,
        "op": meeting.call.op,
        "expected": (_others(verdict, meeting)[0] or None) if rank is not None else None,
        "got": None if own is None else what(own),
        "others": verdict.others or None,
        "late": verdict.late,
        "limit": meeting.limit,
        "frame": (own.frame if own is not None else _frame_of(world, rank)) or None,
        "place": _place(world, rank) or None,
    }
    path = world.dumps[rank].path if rank in world.dumps else world.dumps[next(iter(meeting.waiting or world.dumps))].path
    # As with a watchdog's line, the time is that of giving up, and the limit leads back to the call that did not return.
    gave_up = None if meeting.since is None else stamp(meeting.since + (meeting.limit or 0.0))
    return Fact(KIND, _known(fields), Origin("dump", path, None, line(world, verdict, meeting)), rank, None, gave_up)


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def line(world: World, verdict: Verdict, meeting: Meeting) -> str:
    """What the rank did against what the others did."""
    rank, others = verdict.rank, [other for other in meeting.waiting if other != verdict.rank]
    where = _meeting(world, meeting)
    waits = f"{_who(others)} in it" + (_at(meeting.call.frame) if others else "")
    more = len(set(verdict.waiting) - set(meeting.waiting) - {rank})
    behind = f", {more} more behind them" if more else ""
    own = meeting.calls.get(rank) if rank is not None else None
    match verdict.name:
        case "missing":
            return f"rank {rank} never called {where}; {_place(world, rank) or 'it had called nothing yet'}; {waits}{behind}"
        case "not_seen":
            return f"rank {rank} wrote no dump; {_who(others)} in {where}{_at(meeting.call.frame)}, which lacks {_lacking(meeting, rank)}{behind}"
        case "late":
            by = "" if verdict.late is None else f" by {format_duration(verdict.late)}"
            return f"rank {rank} held up {where}{by}; {_place(world, rank)}; {waits}"
        case "extra":
            return f"rank {rank} called {where}{_at(own.frame if own else '')}, and nobody else did"
        case "stuck_all":
            half = "ranks " + _ranks(meeting.waiting) if meeting.partial else "all " + f"{len(meeting.waiting)} ranks"
            return f"{half} are in {where} and none of them gets out{_at(meeting.call.frame)}"
        case "not_started":
            return f"rank {rank} called {where}, but its GPU never reached it; {_who(others)} in it on the GPU"
        case "cycle" | "order":
            return _circle(world, verdict, meeting)
    right, doing = _others(verdict, meeting)
    frame = next((meeting.calls[other].frame for other in doing), "")
    number = "" if meeting.pair is not None else f" as number {meeting.seq} of {world.label(meeting.group)}"
    return f"rank {rank}: {what(own) if own else '?'}{number}{_at(own.frame if own else '')}; {_named(doing)}: {right}{_at(frame)}"


def _others(verdict: Verdict, meeting: Meeting) -> tuple[str, list[int]]:
    """What most of the others called (of those not at fault, where there are any), and which of them did."""
    odd = set(verdict.others)
    rest = {rank: text for rank, text in _texts(meeting).items() if rank != verdict.rank}
    sound = [text for rank, text in rest.items() if rank not in odd] or list(rest.values())
    right = Counter(sound).most_common(1)[0][0] if sound else ""
    return right, [rank for rank, text in rest.items() if text == right]


@lru_cache(maxsize=8)
def _texts(meeting: Meeting) -> Mapping[int, str]:
    return {rank: what(call) for rank, call in meeting.calls.items()}


def what(call: Call) -> str:
    """``all_reduce of [4096, 1024] BFloat16``; ``send 0->1 of [2, 4096]``."""
    name = (
        call.op
        if call.pair is None
        else f"send {call.pair[0]}->{call.pair[1]}"
        if call.op == "send"
        else f"recv {call.pair[1]}<-{call.pair[0]}"
    )
    shapes = call.inputs if call.op != "recv" or not call.outputs else call.outputs
    sizes = ", ".join(str(list(shape)) for shape in shapes[:2]) + (f" and {len(shapes) - 2} more" if len(shapes) > 2 else "")
    kinds = "/".join(dict.fromkeys(call.dtypes[:4]))
    return name + (f" of {sizes}" if sizes else "") + (f" {kinds}" if kinds else "")


def stamp(seconds: float) -> Stamp:
    """A recorder's time, which is UTC."""
    try:
        iso = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return Stamp(0.0, "1970-01-01T00:00:00+00:00")
    return Stamp(seconds, iso)


def _circle(world: World, verdict: Verdict, meeting: Meeting) -> str:
    rank = verdict.rank
    later = f", and {world.label(meeting.group)} comes first there" if verdict.name == "order" else ""
    lacking = [other for other in meeting.absent if other in verdict.waiting or other in verdict.others] or list(meeting.absent)
    others = (
        f"for {_named(lacking)}, which in turn {'wait' if len(lacking) != 1 else 'waits'} for it"
        if lacking
        else f"with {_named(verdict.waiting)}"
    )
    return f"rank {rank} waits in {_meeting(world, meeting)}{_at(_own_frame(meeting, rank))}{later} {others}"


def _lacking(meeting: Meeting, rank: int | None) -> str:
    others = [other for other in meeting.unseen if other != rank]
    return f"{_named(others)}, too" if others else "nobody else"


def _own_frame(meeting: Meeting, rank: int | None) -> str:
    call = meeting.calls.get(rank) if rank is not None else None
    return call.frame if call is not None else ""


def _meeting(world: World, meeting: Meeting) -> str:
    if meeting.pair is not None:
        return f"the message from rank {meeting.pair[0]} to rank {meeting.pair[1]} ({what(meeting.call)}, {world.label(meeting.group)})"
    return f"{what(meeting.call)}, number {meeting.seq} of {world.label(meeting.group)}"


def _place(world: World, rank: int | None) -> str:
    """What the rank called last."""
    if rank is None or rank not in world.dumps or not world.calls_of[rank]:
        return ""
    call = world.calls_of[rank][-1]
    part = call.parts[0] if call.parts else call
    number = "" if call.p2p else f", number {call.seq}"
    state = "which had ended" if call.done else "which had not ended"
    return f"its last call was {what(part)}{number} of {world.label(call.group)}{_at(call.frame)}, {state}"


def _frame_of(world: World, rank: int | None) -> str:
    calls = world.calls_of.get(rank, ()) if rank is not None else ()
    return calls[-1].frame if calls else ""


def _ranks(ranks: Sequence[int]) -> str:
    written = format_ranks(list(ranks))
    return written if len(written) <= LONGEST else f"{min(ranks)} to {max(ranks)} ({len(ranks)} of them)"


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {_ranks(ranks)}" if ranks else "nobody"


def _who(ranks: Sequence[int]) -> str:
    return f"{_named(ranks)} {'waits' if len(ranks) == 1 else 'wait'}"


def _at(frame: str) -> str:
    return f" at {frame}" if frame else ""


def _job(world: World) -> list[tuple[str, dict[str, Any]]]:
    """Facts about the job itself."""
    told: list[tuple[str, dict[str, Any]]] = []
    if world.size is not None:
        told.append(("run.world", {"world_size": world.size}))
    backends = {dump.backend for dump in world.dumps.values()}
    if backends:
        told.append(("run.version", {"name": "torch"}))
    if "nccl" in backends:
        library = next((dump.library for dump in world.dumps.values() if dump.library), "")
        told.append(("run.version", {"name": "nccl", **({"version": library} if library else {})}))
    return told


def _about_job(world: World, kind: str, fields: dict[str, Any]) -> Fact:
    return Fact(kind, fields, Origin("dump", next(iter(world.dumps.values())).path))


def _seen(dump: RankDump) -> Fact:
    """That the rank was alive to write its dump."""
    still = sum(not call.done for call in dump.calls)
    return Fact("collective.dump", {"entries": dump.entries, "open": still, "backend": dump.backend}, Origin("dump", dump.path), dump.rank)
