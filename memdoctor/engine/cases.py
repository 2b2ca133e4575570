"""A finding while it is being related: which of its facts are left to it, and what became of it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from memdoctor.engine.onset import Span, onset_key, span_of
from memdoctor.engine.schema import AllOf, AnyOf, Condition, Leaf, NoneOf, Rule
from memdoctor.engine.tiers import Tiers
from memdoctor.model import CONFIDENCES, SEVERITIES, Fact, Severity
from memdoctor.records import entity

if TYPE_CHECKING:
    from memdoctor.engine.judge import Finding


@entity
class Case:
    """One finding. ``facts`` are the events that competition left to it and that the run did not get over; the rest is ``support``.

    ``attempt`` is where it is told: that of the finding, or for an error that belongs to none the one that failed.
    """

    finding: Finding
    tiers: Tiers
    attempt: int
    facts: list[Fact] = field(default_factory=list)
    support: list[Fact] = field(default_factory=list)
    count: int = 0
    rivals: list[str] = field(default_factory=list)  # causes of hypotheses that lost to this one
    recovered: bool = False
    survived: bool = False  # the run went on after it, yet it is a state that progress does not end
    explained_by: Case | None = None
    span: Span = field(default_factory=lambda: span_of(()))

    @property
    def rule(self) -> Rule:
        return self.finding.rule

    @property
    def cause(self) -> str:
        return self.finding.rule.cause

    @property
    def severity(self) -> Severity:
        return "note" if self.recovered else self.finding.rule.severity

    @property
    def weak(self) -> bool:
        return self.tiers.weakness(self.cause) > 0

    @property
    def tier(self) -> int:
        return max(self.tiers.of(self.cause), self.tiers.condition) if self.survived else self.tiers.of(self.cause)

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks it is about: those that a line says are missing, else those whose lines they are."""
        missing = {rank for fact in self.facts for rank in missing_ranks(fact)}
        return frozenset(missing or (rank for rank in (rank_of(fact) for fact in self.facts) if rank is not None))

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(fact.host for fact in self.facts if fact.host)

    def settle(self) -> None:
        """Bring facts into the order of their onsets, once it is known which are left."""
        self.facts.sort(key=onset_key)
        self.span = span_of(self.facts)

    def order(self) -> tuple[float, int]:
        """When it began, for sorting within an attempt."""
        return onset_key(self.facts[0]) if self.facts else (float("inf"), 0)

    def strength(self) -> tuple[int, int, str]:
        """Sorts the better-supported one first, where nothing else decides: confidence, specificity, then the name."""
        return (CONFIDENCES.index(self.finding.confidence), -specificity(self.rule.when), self.rule.id)

    def severity_rank(self) -> int:
        return SEVERITIES.index(self.severity)


def rank_of(fact: Fact) -> int | None:
    """The rank that the fact is about: a launcher's line names another one than the process that prints it."""
    named = fact.fields.get("of_rank")
    return named if isinstance(named, int) else fact.rank


def missing_ranks(fact: Fact) -> list[int]:
    """Ranks that the fact's line says never came."""
    values = fact.fields.get("missing_ranks")
    listed = list(values) if isinstance(values, (list, tuple)) else []
    return [
        int(value)
        for value in [*listed, fact.fields.get("missing_rank")]
        if isinstance(value, int) or (isinstance(value, str) and value.isdigit())
    ]


def specificity(condition: Condition) -> int:
    """How many conditions a rule sets: facts, and comparisons of their fields."""
    match condition:
        case Leaf():
            return 1 + len(condition.where) + (condition.count is not None)
        case AnyOf():  # one branch is enough, so only the smallest counts
            return min((specificity(part) for part in condition.parts), default=0)
        case AllOf() | NoneOf():
            return sum(specificity(part) for part in condition.parts)
