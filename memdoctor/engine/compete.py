"""Competition: findings about one event are hypotheses, and one of them takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memdoctor.engine.cases import Case, specificity
from memdoctor.engine.globs import fits
from memdoctor.model import CONFIDENCES, Fact


def compete(cases: Sequence[Case], *, choose: Callable[[Sequence[Case]], list[Case]] | None = None) -> list[Case]:
    """The cases that keep a fact. A loser that keeps none is dropped; it is noted with its winners, which it might be in place of.

    ``choose`` says which of those that claim one event may keep it; without it that is the ``winner`` alone.
    """
    claims: dict[tuple[int, str], list[Case]] = {}
    for case in cases:
        for key in {event_of(case, fact) for fact in case.facts}:
            claims.setdefault(key, []).append(case)
    lost: dict[Case, list[Case]] = {}
    taken: dict[Case, set[tuple[int, str]]] = {}
    for key in sorted(claims):
        contenders = claims[key]
        keep = choose(contenders) if choose is not None else [winner(contenders)]
        for case in contenders:
            if case not in keep:
                lost.setdefault(case, []).append(keep[0])
                taken.setdefault(case, set()).add(key)
    kept = []
    for case in cases:
        left = [fact for fact in case.facts if event_of(case, fact) not in taken.get(case, ())]
        case.count = max(len(left), case.count - (len(case.facts) - len(left)))
        case.facts = left
        if left or case not in lost:
            kept.append(case)
    for case, winners in lost.items():
        if case.facts:
            continue
        for best in winners:
            if case.cause != best.cause and case.cause not in best.rivals:
                best.rivals.append(case.cause)
    return kept


def event_of(case: Case, fact: Fact) -> tuple[int, str]:
    """What is equal for facts of one event; a derived fact without an event is one by itself."""
    return (case.attempt, fact.event or f"\0{fact.kind}\0{fact.origin.path}\0{fact.seq}\0{fact.rank}")


def winner(contenders: Sequence[Case]) -> Case:
    """Better confidence, then ``over``, then the more specific, then a cause proper; a solid error yields to nothing of less weight.

    "Nothing else is known" yields to any error that knows something.
    """
    left = not_overruled(contenders)
    if any(case.severity == "error" and not _residual(case) for case in left):
        left = [case for case in left if not _residual(case)]
    if any(_solid(case) for case in left):
        left = [case for case in left if case.severity == "error" and not case.weak]
    best = min(CONFIDENCES.index(case.finding.confidence) for case in left)
    left = [case for case in left if CONFIDENCES.index(case.finding.confidence) == best]
    return min(left, key=_preference)


def _residual(case: Case) -> bool:
    return case.cause in case.tiers.residual


def _solid(case: Case) -> bool:
    return case.severity == "error" and not case.weak and case.finding.confidence != "possible"


def _preference(case: Case) -> tuple[int, int, int, str]:
    return (-specificity(case.rule.when), case.tiers.weakness(case.cause), case.severity_rank(), case.rule.id)


def not_overruled(contenders: Sequence[Case]) -> list[Case]:
    """Without those that another one names in ``over``; all of them where the names go in a circle.

    It must be at least as sure as they are, unless they mean "no better cause".
    """

    def beats(one: Case, other: Case) -> bool:
        unsure = CONFIDENCES.index(one.finding.confidence) > CONFIDENCES.index(other.finding.confidence)
        if unsure and (one.weak or not other.weak):  # "no better cause" yields to a better one, however unsure that is
            return False
        return one is not other and any(fits(other.rule.id, name) for name in one.rule.over)

    left = [case for case in contenders if not any(beats(other, case) for other in contenders)]
    return left or list(contenders)
