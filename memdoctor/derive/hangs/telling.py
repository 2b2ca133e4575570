"""Suspects in words: one fact for each, with the line of a time-out that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memdoctor.derive.hangs.axes import Axes
from memdoctor.derive.hangs.clues import Clues
from memdoctor.derive.hangs.hosts import Hosts
from memdoctor.derive.hangs.picture import Picture
from memdoctor.derive.hangs.suspects import Suspect
from memdoctor.derive.hangs.waits import Wait
from memdoctor.model import Fact

KIND = "watchdog.verdict"
UNKNOWN = -1  # the rank that printed a line which tells of another one
ODD = ("odd", "extra")
OWN = ("odd", "mixed", "stuck", "untold", "extra")  # whose own time-out shows it


def tell(shown: Picture, found: Sequence[Suspect], axes: Axes, hosts: Hosts, clues: Clues) -> list[Fact]:
    """``collective.odd`` for a rank that did something else than the majority, ``watchdog.verdict`` for all others."""
    waits: dict[int, list[Wait]] = {}
    for wait in shown.waits:
        waits.setdefault(wait.rank, []).append(wait)
    return [_fact(shown, suspect, waits, axes, hosts, clues) for suspect in found]


def _fact(shown: Picture, suspect: Suspect, waits: Mapping[int, list[Wait]], axes: Axes, hosts: Hosts, clues: Clues) -> Fact:
    rank, meeting = suspect.rank, suspect.meeting
    first = min(
        (wait for waiter in suspect.waiting or shown.timed_out for wait in waits.get(waiter, ()) if _in(wait, suspect)),
        key=_moment,
        default=min((wait for own in waits.values() for wait in own), key=_moment),
    )
    own = next((wait for wait in waits.get(rank, ()) if _in(wait, suspect)), None)
    right = _usual(shown, suspect)
    call = own if own is not None and own.op and suspect.name in OWN else right or first
    base = own.fact if own is not None and suspect.name in OWN else first.fact
    desc = "" if meeting is None else shown.world.label(meeting.group)
    fields: dict[str, Any] = {
        "name": suspect.name,
        "seq": own.seq if suspect.counts and own is not None else meeting.seq if meeting is not None else first.seq,
        "op": call.op or None,
        "pg_desc": desc if meeting is not None and suspect.sure else None,
        "difference": _difference(suspect, own, right, pair=len(shown.timed_out) == 2),
        "sure": suspect.sure,
        "missing_rank": rank if suspect.name in ("silent", "behind") else None,
        "waiting": len(suspect.waiting) or None,
        "suspects": len(suspect.others) + 1,
        "alone": not suspect.others,
        "members": suspect.members or (len(meeting.members) if meeting is not None else None),
        "last_enqueued": _enqueued(shown, suspect),
        "late": suspect.late,
        "limit": first.limit,
        "place": axes.place(rank) if not suspect.others else None,
        "phase": first.fact.fields.get("phase"),
        "not_seen": clues.not_seen or None,
        "world": axes.world,
        "known": len(meeting.members)
        if suspect.name == "stuck" and meeting is not None and not shown.groups[meeting.group].whole
        else None,
        **clues.about(rank),
    }
    known = {name: value for name, value in fields.items() if value is not None}
    if base.rank != rank:
        known["witness"] = UNKNOWN if base.rank is None else base.rank
    if suspect.name in ODD:
        kept = ("seq", "op", "pg_desc", "difference", "sure", "place")
        return replace(
            base,
            kind="collective.odd",
            rank=rank,
            host=base.host or hosts.of(rank),
            fields={name: known[name] for name in kept if name in known},
        )
    if suspect.name in OWN:
        return replace(base, kind=KIND, rank=rank, host=base.host or hosts.of(rank), fields=known)
    # It began with the first of the time-outs, wherever in the file that stands.
    seq = min(wait.fact.seq for own in waits.values() for wait in own if wait.fact.origin.path == base.origin.path)
    return replace(base, kind=KIND, rank=rank, host=hosts.of(rank), fields=known, seq=seq, event=f"hang:{base.attempt}:{rank}")


def _in(wait: Wait, suspect: Suspect) -> bool:
    meeting = suspect.meeting
    return meeting is None or (wait.group == meeting.group and (suspect.counts or wait.seq is None or wait.seq == meeting.seq))


def _moment(wait: Wait) -> tuple[bool, float, int]:
    time = wait.fact.time
    return (time is None, time.epoch if time is not None else 0.0, wait.fact.seq)


def _usual(shown: Picture, suspect: Suspect) -> Wait | None:
    """What most of the others of the meeting were in."""
    odd = {suspect.rank, *suspect.others}
    inside = [wait for wait in shown.waits if suspect.meeting is not None and _in(wait, suspect) and wait.op and wait.rank != suspect.rank]
    sound = [wait for wait in inside if wait.rank not in odd]
    if not sound and suspect.name == "mixed":
        own = next((wait for wait in shown.waits if wait.rank == suspect.rank and _in(wait, suspect) and wait.op), None)
        sound = [wait for wait in inside if own is None or (wait.op, wait.size) != (own.op, own.size)]
    sound = sound or inside
    if not sound:
        return None
    most = Counter((wait.op, wait.size) for wait in sound).most_common(1)[0][0]
    return next(wait for wait in sound if (wait.op, wait.size) == most)


def _difference(suspect: Suspect, own: Wait | None, right: Wait | None, *, pair: bool) -> str | None:
    if own is None or suspect.name not in (*ODD, "mixed"):
        return None
    if suspect.name == "extra":
        return f"{_told(own)}, which nobody else had called"
    if right is None or (own.op, own.size, own.seq) == (right.op, right.size, right.seq):
        return None
    number = f"number {right.seq}, " if suspect.counts else ""
    rest = "the other was" if pair else "the others were" if suspect.name == "odd" else "some others were"
    return f"{_told(own)}, where {rest} in {number}{_told(right)}"


def _told(wait: Wait) -> str:
    inside, _ = wait.size
    if not wait.op:
        return "a call that no line tells"
    return wait.op if inside is None else f"{wait.op} of {inside} elements"


def _enqueued(shown: Picture, suspect: Suspect) -> int | None:
    if suspect.name != "behind" or suspect.meeting is None or suspect.rank not in shown.world.dumps:
        return None
    return shown.world.enqueued(suspect.rank, suspect.meeting.group)
