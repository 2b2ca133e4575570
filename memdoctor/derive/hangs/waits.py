"""What each rank says of the collective that did not end: its own time-outs joined with the lines about their group, and the ranks that
only saw others time out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from memdoctor.model import Fact
from memdoctor.records import entity

TIMED_OUT = ("timeout", "blocking_wait")
GAVE_UP = ("dump_own", "dump_sent")  # lines that only a rank prints whose own collective timed out
SAW = ("dump_signal", "dump_observed")
# A number with a send or a receive counts apart on each pair, so such calls are compared with nothing.
PAIRWISE = ("SEND", "RECV", "COALESCED")
DEFAULT = "0"  # key of the group of all ranks


@entity
class Wait:
    """One collective in which ``rank`` timed out. ``group`` is the key of its group, None where no line tells it; ``place`` the rank in it.

    ``op`` is empty where the line that tells it is not there; ``size`` are elements in and out. ``began`` is in epoch seconds.
    """

    rank: int
    fact: Fact
    group: str | None = None
    desc: str = ""
    place: int | None = None
    seq: int | None = None
    op: str = ""
    size: tuple[int | None, int | None] = (None, None)
    enqueued: int | None = None
    completed: int | None = None
    began: float | None = None
    limit: float | None = None

    @property
    def pairwise(self) -> bool:
        return self.op in PAIRWISE


@entity
class Spoken:
    """``waits`` are of the ranks that timed out. ``saw``: the ranks that were alive to see it; by group, how many calls each had made and how many
    of them had ended."""

    waits: list[Wait] = field(default_factory=list)
    saw: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)
    descs: dict[str, str] = field(default_factory=dict)

    @property
    def ranks(self) -> frozenset[int]:
        """All that timed out."""
        return frozenset(wait.rank for wait in self.waits)


def spoken(facts: Sequence[Fact]) -> Spoken:
    """From the facts of one attempt, with their global ranks filled in; lines of a rank that nothing names are left out."""
    own: dict[int, list[Fact]] = {}
    result = Spoken()
    if not any(fact.kind == "watchdog.timeout" and fact.fields.get("name") in TIMED_OUT for fact in facts):
        return result
    for fact in facts:
        if fact.kind in ("watchdog.timeout", "watchdog.taken_down") and fact.rank is not None:
            own.setdefault(fact.rank, []).append(fact)
    for rank, lines in own.items():
        for line in lines:
            if line.fields.get("pg") is not None and line.fields.get("pg_desc"):
                result.descs.setdefault(key_of(line.fields) or "", str(line.fields["pg_desc"]))
        waits = _waits(rank, lines)
        result.waits += waits
        if not waits and any(line.fields.get("name") in SAW for line in lines):
            result.saw[rank] = _enqueued(lines)
    named = {line.fields["from_rank"]: line for lines in own.values() for line in lines if line.fields.get("from_rank") is not None}
    for first in named.keys() - result.ranks:  # the first to time out, whose own lines are missing
        result.waits.append(Wait(first, named[first]))
        result.saw.pop(first, None)
    return result


def key_of(fields: Mapping[str, object]) -> str | None:
    """One text for one group: the group of all ranks is ``0`` whatever its name."""
    if fields.get("pg_desc") == "default_pg":
        return DEFAULT
    name = fields.get("pg")
    return None if name is None else str(name)


def _waits(rank: int, lines: Sequence[Fact]) -> list[Wait]:
    found: dict[tuple[int | None, str, str | None], Wait] = {}
    for line in lines:
        if line.fields.get("name") in TIMED_OUT:
            _take(found, _wait(rank, line))
    told = [line for line in lines if line.fields.get("name") == "exception" and line.fields.get("seq") is not None]
    for line in told:
        _join(found, rank, line)
    groups = {key: line for line in lines if line.fields.get("name") == "dump_sent" and (key := key_of(line.fields)) is not None}
    for wait in found.values():
        if wait.group is None and len(groups) == 1:
            wait.group = next(iter(groups))
    if not found:
        gave_up = next((line for line in lines if line.fields.get("name") in GAVE_UP or line.kind == "watchdog.taken_down"), None)
        if gave_up is not None:
            return [Wait(rank, gave_up, group=key_of(gave_up.fields) if gave_up.fields["name"] == "dump_sent" else None)]
    return list(found.values())


def _wait(rank: int, line: Fact) -> Wait:
    fields = line.fields
    ran, limit = fields.get("ran"), fields.get("limit")
    lasted = ran if ran is not None else limit
    return Wait(
        rank, line, key_of(fields), str(fields.get("pg_desc") or ""), fields.get("pg_rank"), fields.get("seq"), str(fields.get("op") or ""),
        (fields.get("numel_in", _elements(fields.get("shape"))), fields.get("numel_out")),
        began=line.time.epoch - lasted if line.time is not None and lasted is not None else None, limit=limit,
    )  # fmt: skip


def _take(found: dict[tuple[int | None, str, str | None], Wait], wait: Wait) -> None:
    """A rank repeats its time-out in the end of its watchdog thread, and there names the group."""
    for key in ((wait.seq, wait.op, wait.group), (wait.seq, wait.op, None)):
        known = found.get(key)
        if known is not None:
            if known.group is None and wait.group is not None:
                known.group, known.desc, known.place = wait.group, wait.desc, wait.place
                found[wait.seq, wait.op, wait.group] = found.pop(key)
            known.began = known.began if wait.began is None else min(wait.began, known.began or wait.began)
            return
    named = [one for (seq, op, group), one in found.items() if group is not None and (seq, op) == (wait.seq, wait.op)]
    if wait.group is None and named:
        return
    found[wait.seq, wait.op, wait.group] = wait


def _join(found: dict[tuple[int | None, str, str | None], Wait], rank: int, line: Fact) -> None:
    """Add what the status line tells: the group, and how many calls the rank had made in it."""
    fields = line.fields
    key = key_of(fields)
    fitting = [wait for wait in found.values() if wait.seq == fields["seq"] and wait.group in (None, key)]
    if not fitting:
        fitting = [Wait(rank, line, seq=fields["seq"])]
        found[fields["seq"], "", key] = fitting[0]
    for wait in fitting:
        if key is not None:
            wait.group, wait.desc = key, str(fields.get("pg_desc") or wait.desc)
        wait.place = fields.get("pg_rank", wait.place) if key is not None or wait.place is None else wait.place
        wait.enqueued, wait.completed = fields.get("last_enqueued"), fields.get("last_completed")


def _enqueued(lines: Sequence[Fact]) -> dict[str, tuple[int, int]]:
    """By key of the group, how many calls the rank had made and ended; of a group that is not told, under the empty text."""
    found: dict[str, tuple[int, int]] = {}
    for line in lines:
        number = line.fields.get("last_enqueued")
        if number is not None:
            key = key_of(line.fields) or ""
            found[key] = max((number, line.fields.get("last_completed") or 0), found.get(key, (number, 0)))
    return found


def _elements(shape: object) -> int | None:
    """``4, 1024`` → 4096; torch before 2.0 printed the shape."""
    if not isinstance(shape, str):
        return None
    sizes = [int(part) for part in shape.split(",") if part.strip()]
    return math.prod(sizes)
