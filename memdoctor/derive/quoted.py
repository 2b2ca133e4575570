"""Tracebacks that a launcher prints of one of its workers: torchrun in its box, mp.spawn below the number of the process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memdoctor.model import Fact

LINES = 400  # from where the launcher names the worker to the last line of its traceback
SPAWNED = " terminated with the following error:"


def give_to_workers(facts: Sequence[Fact]) -> list[Fact]:
    """``facts``, in reading order, with the rank (or local rank) and host of those that launchers print of a worker."""
    if not any(fact.kind == "exception" for fact in facts):
        return list(facts)
    named: dict[tuple[int, str | None], Fact] = {}
    of: dict[str, Fact] = {}
    for fact in facts:
        stream = fact.seq >> 44, fact.fields.get("stream")
        if _names_a_worker(fact):
            named[stream] = fact
        elif fact.kind == "exception" and fact.rank is None and fact.fields.get("owner") != "launcher":
            worker = named.get(stream)
            if worker is not None and _is_of(fact, worker):
                of[fact.event] = worker
                if worker.kind == "rank.place":
                    del named[stream]
    return [_given(fact, of[fact.event]) if fact.rank is None and fact.event in of else fact for fact in facts]


def _names_a_worker(fact: Fact) -> bool:
    if fact.kind == "process.exit":
        return fact.fields.get("name") == "box" and fact.fields.get("by") == "torchrun"
    return fact.kind == "rank.place" and SPAWNED in fact.origin.excerpt


def _is_of(fact: Fact, worker: Fact) -> bool:
    """In the box a traceback is indented; mp.spawn prints one as it is."""
    if (fact.origin.line or 0) - (worker.origin.line or 0) > LINES:
        return False
    if worker.kind == "rank.place":
        return True
    name = re.escape(str(fact.fields.get("type", "")))
    return re.search(rf"(?:^|[\]:|>] ?) {{2,}}{name}", fact.origin.excerpt) is not None


def _given(fact: Fact, worker: Fact) -> Fact:
    fields = dict(fact.fields)
    for name in ("local", "local_rank"):
        if worker.fields.get(name) is not None:
            fields["local_rank"] = worker.fields[name]
    host = fact.host or worker.fields.get("on_host") or worker.host
    rank = worker.fields.get("of_rank") if worker.kind == "process.exit" else None
    return replace(fact, rank=rank, host=host, fields=fields)
