"""Cause and consequence among the findings of one attempt."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.engine.cases import Case, missing_ranks
from memdoctor.engine.globs import fits
from memdoctor.engine.links import linked, nearness
from memdoctor.engine.onset import clearly_before, file_order, printed_before, waited_before, within
from memdoctor.records import record


@record
class Edge:
    """``cause`` explains ``effect``; ``named`` where its rule says so, else by tier."""

    cause: Case
    effect: Case
    named: bool


def explain(cases: Sequence[Case]) -> list[Case]:
    """Set ``explained_by`` of the cases of one attempt; returns the errors that nothing explains, the best first.

    Notes neither explain nor are explained. The first one returned is the root cause of the attempt.
    """
    active = [case for case in cases if case.severity != "note"]
    edges = [edge for number, one in enumerate(active) for other in active[number + 1 :] if (edge := decide(one, other)) is not None]
    placed: list[Case] = []
    waiting = sorted(active, key=preference)
    while waiting:
        free = [case for case in waiting if not any(edge.effect is case and edge.cause in waiting for edge in edges)]
        for case in free or waiting[:1]:  # a circle is cut at its best member
            reasons = [edge for edge in edges if edge.effect is case and edge.cause in placed]
            case.explained_by = min(reasons, key=_nearest).cause if reasons else None
        placed += free or waiting[:1]
        waiting = [case for case in waiting if case not in placed]
    heads = [case for case in active if case.severity == "error" and case.explained_by is None]
    return sorted(heads, key=lambda case: (_preceded(case, heads), preference(case)))


def decide(one: Case, other: Case) -> Edge | None:
    """Which of two explains the other, if either does."""
    ending = _ending(one, other) or _ending(other, one)
    if ending is not None:
        return ending
    forth, back = _names(one, other), _names(other, one)
    if forth and back:
        cause, effect = (one, other) if preference(one) <= preference(other) else (other, one)
        return Edge(cause, effect, True)
    for holds, cause, effect in ((forth, one, other), (back, other, one)):
        # Lines of several processes reach one file in no strict order, so only a better tier is taken at less than that.
        if holds and not (cause.tier > effect.tier and file_order(effect.span, cause.span) < 0 and not _both_timed(cause, effect)):
            return Edge(cause, effect, True)
    return _by_tier(one, other)


def preference(case: Case) -> tuple[int, float, int, tuple[int, int, str]]:
    """Sorts the likelier root cause first: severity and tier, onset, then the better supported."""
    epoch, seq = case.order()
    return (case.severity_rank() * 100 + case.tier, epoch, seq, case.strength())


def _names(cause: Case, effect: Case) -> bool:
    """True where an ``explains`` of the cause's rule holds: the cause fits, the link holds and the times do not speak against it."""
    if cause.severity_rank() > effect.severity_rank() or clearly_before(effect.span, cause.span):
        return False
    return any(
        fits(effect.cause, explains.cause)
        and linked(cause.facts, effect.facts, explains.link)
        and within(cause.span, effect.span, explains.before)
        and not (explains.onset and waited_before(effect.span, cause.span))
        for explains in cause.rule.explains
    )


def _by_tier(one: Case, other: Case) -> Edge | None:
    if one.tier == other.tier or one.severity != "error" or other.severity != "error":
        return None
    cause, effect = (one, other) if one.tier < other.tier else (other, one)
    if effect.survived or clearly_before(effect.span, cause.span):
        return None
    return Edge(cause, effect, False)


def _ending(hang: Case, end: Case) -> Edge | None:
    """The edge from a hang (or another error of a worse tier) to the end of a process that only followed it; None where the end came first.

    A process that dies of its own leaves the others waiting; a watchdog that gives up kills its process: only time and place tell one from
    the other.
    """
    tiers = end.tiers
    if end.cause not in tiers.ends or hang.weak or hang.tier <= end.tier or hang.tier == tiers.condition:
        return None
    if {hang.severity, end.severity} != {"error"}:
        return None
    edge = Edge(hang, end, _names(hang, end))
    if printed_before(end.span, hang.span) or clearly_before(end.span, hang.span):
        return None
    if clearly_before(hang.span, end.span):
        return edge
    if end.ranks and hang.ranks:
        if end.ranks <= _never_came(hang) and not _aborted(end):
            return Edge(end, hang, _names(end, hang))  # whom the others waited for had ended
        return edge if end.ranks <= hang.ranks else None
    order = file_order(hang.span, end.span)
    return edge if order < 0 or (order == 0 and end.cause in tiers.aborts) else None


def _never_came(case: Case) -> set[int]:
    return {rank for fact in case.facts for rank in missing_ranks(fact)}


def _aborted(end: Case) -> bool:
    """True for processes that ended with SIGABRT alone, as those do that a watchdog ends."""
    return all(fact.fields.get("exitcode") in (-6, 134) or fact.fields.get("signal") == "SIGABRT" for fact in end.facts)


def _both_timed(one: Case, other: Case) -> bool:
    return one.span.exact and other.span.exact and one.span.zoned is other.span.zoned


def _preceded(case: Case, heads: Sequence[Case]) -> bool:
    """True where the run had clearly failed already: what came later is not its cause, however good the evidence."""
    lasting = case.tiers.condition
    return any(clearly_before(head.span, case.span) for head in heads if head is not case and not head.weak and head.tier != lasting)


def _nearest(edge: Edge) -> tuple[bool, bool, int, int, float]:
    """Sorts the best explainer first: named by its rule, no weak one, close in place, close in kind, close in time."""
    epoch, _ = edge.cause.order()
    return (
        not edge.named,
        edge.cause.weak,
        nearness(edge.cause.facts, edge.effect.facts),
        -edge.cause.tier,
        -epoch if epoch != float("inf") else 0.0,
    )
