"""What time-outs tell together: which rank was in another collective than the rest, and whether a peer had gone long before."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memdoctor.derive.collectives.comparing import minority
from memdoctor.model import Fact

EARLY = 60.0  # seconds before the first time-out: a rank that leaves because of it leaves within seconds of it
STEP = 600.0  # seconds that the others may go on before they miss a rank that has gone: a long step, a checkpoint
TOGETHER = 60.0  # seconds within which ranks of one collective give up; they began to wait when the last but one of them came
LEAST = 3  # ranks of which one can be the odd one
COUNTED = 16  # calls after which two groups hardly ever stand at the same number by chance; at the start of a run they all do
GONE = ("closed", "reset", "broken_pipe", "store", "store_server")
TIMED_OUT = ("timeout", "blocking_wait")
# Operations with the same number of elements on every rank; point-to-point calls are numbered apart on each pair.
EVEN = ("ALLREDUCE", "BROADCAST", "REDUCE", "ALLGATHER", "_ALLGATHER_BASE", "REDUCE_SCATTER", "_REDUCE_SCATTER_BASE")
PAIRWISE = ("SEND", "RECV", "COALESCED")


def hang_facts(facts: Sequence[Fact]) -> list[Fact]:
    """``facts`` are those of one attempt. Yields ``collective.odd`` for each rank that differs from the majority, and ``peer.gone_first``
    for each connection that was lost long before anybody timed out."""
    waits = [fact for fact in facts if fact.kind == "watchdog.timeout" and fact.fields.get("name") in TIMED_OUT]
    return [*_odd_ones(waits), *_gone_first(facts, waits)] if waits else []


# --- the odd one ------------------------------------------------------------------------------------------------------------


def _odd_ones(waits: Sequence[Fact]) -> list[Fact]:
    groups: dict[tuple[str | None, int], dict[int, Fact]] = {}
    mixed: set[tuple[str | None, int]] = set()  # one rank waits in two collectives of that number: they are of different groups
    for fact in waits:
        seq, op, pg = fact.fields.get("seq"), fact.fields.get("op"), fact.fields.get("pg")
        if fact.rank is None or seq is None or op is None or op in PAIRWISE:
            continue
        known = groups.setdefault((pg, seq), {}).setdefault(fact.rank, fact)
        if _call(known) != _call(fact):
            mixed.add((pg, seq))
    result: list[Fact] = []
    for key, calls in groups.items():
        if key in mixed or len(calls) < LEAST or (key[0] is None and not (key[1] >= COUNTED and _together(calls, waits))):
            continue
        odd = _differing(calls)
        if 0 < 2 * len(odd) < len(calls):
            others = next(fact for rank, fact in calls.items() if rank not in odd)
            result += [_odd(calls[rank], others, sure=key[0] is not None) for rank in odd]
    return result


def _differing(calls: Mapping[int, Fact]) -> tuple[int, ...]:
    ops: dict[int, Hashable] = {rank: fact.fields["op"] for rank, fact in calls.items()}
    odd = minority(ops)
    if odd or next(iter(ops.values())) not in EVEN:
        return odd
    sizes = {rank: fact.fields.get("numel_in") for rank, fact in calls.items()}
    return minority({rank: size for rank, size in sizes.items() if size is not None})


def _together(calls: Mapping[int, Fact], waits: Sequence[Fact]) -> bool:
    """Whether ranks whose group no line names can be of one: all that timed out did so at the same number and at the same moment."""
    numbers = {fact.fields.get("seq") for fact in waits}
    times = [fact.time.epoch for fact in calls.values() if fact.time is not None]
    return len(numbers) == 1 and len(times) == len(calls) and max(times) - min(times) <= TOGETHER


def _call(fact: Fact) -> tuple[Any, Any]:
    return fact.fields.get("op"), fact.fields.get("numel_in")


def _told(fact: Fact) -> str:
    op, size = _call(fact)
    return str(op) if size is None else f"{op} of {size} elements"


def _odd(fact: Fact, others: Fact, *, sure: bool) -> Fact:
    difference = f"{_told(fact)}, where the others were in {_told(others)}"
    fields = {"seq": fact.fields["seq"], "op": fact.fields["op"], "difference": difference, "sure": sure}
    if fact.fields.get("pg_desc"):
        fields["pg_desc"] = fact.fields["pg_desc"]
    return replace(fact, kind="collective.odd", fields=fields)


# --- gone before ------------------------------------------------------------------------------------------------------------


def _gone_first(facts: Sequence[Fact], waits: Sequence[Fact]) -> list[Fact]:
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
        result.append(
            replace(fact, kind="peer.gone_first", rank=fields.get("peer_rank"), host=None, fields={**fields, "before": first - epoch})
        )
    return result


def _known(gone: Sequence[Fact]) -> dict[str, Any]:
    """What the facts say of the other end, together."""
    return {name: fact.fields[name] for fact in reversed(gone) for name in ("peer", "peer_rank") if name in fact.fields}


def _of_store(fact: Fact) -> bool:
    return fact.fields.get("backend") == "tcpstore"
