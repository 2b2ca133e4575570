"""Peers that had gone long before anybody timed out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memdoctor.derive.hangs.waits import TIMED_OUT
from memdoctor.model import Fact

EARLY = 60.0  # seconds before the first time-out: a rank that leaves because of it leaves within seconds of it
STEP = 600.0  # seconds that the others may go on before they miss a rank that has gone: a long step, a checkpoint
GONE = ("closed", "reset", "broken_pipe", "store", "store_server")


def gone_first(facts: Sequence[Fact]) -> list[Fact]:
    """``peer.gone_first`` for each connection that was lost long before the first time-out. ``facts`` are those of one attempt."""
    waits = [fact for fact in facts if fact.kind == "watchdog.timeout" and fact.fields.get("name") in TIMED_OUT]
    timed = [(fact.time.epoch, fact) for fact in waits if fact.time is not None]
    if not timed:
        return []
    first, wait = min(timed, key=lambda pair: pair[0])
    begun = first - (wait.fields.get("ran") or wait.fields.get("limit") or 0.0)
    gone = [
        (fact.time.epoch, fact)
        for fact in facts
        if fact.kind == "peer.gone" and fact.fields.get("name") in GONE and fact.time and begun - STEP <= fact.time.epoch <= first - EARLY
    ]
    store = _known([fact for _, fact in gone if _of_store(fact)])
    if any(
        fact.rank == store.get("peer_rank") and fact.rank is not None and fact.time and fact.time.epoch > first - EARLY for fact in facts
    ):
        gone = [(epoch, fact) for epoch, fact in gone if not _of_store(fact)]  # that rank lives on
    result = []
    for epoch, fact in gone:
        fields = {**_known([fact]), **(store if _of_store(fact) else {})}
        if fact.rank != fields.get("peer_rank"):
            fields["witness"] = -1 if fact.rank is None else fact.rank
        result.append(
            replace(fact, kind="peer.gone_first", rank=fields.get("peer_rank"), host=None, fields={**fields, "before": first - epoch})
        )
    return result


def _known(gone: Sequence[Fact]) -> dict[str, Any]:
    """What the facts say of the other end, together."""
    return {name: fact.fields[name] for fact in reversed(gone) for name in ("peer", "peer_rank") if name in fact.fields}


def _of_store(fact: Fact) -> bool:
    return fact.fields.get("backend") == "tcpstore"
