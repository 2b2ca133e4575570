"""What a rule file holds once it is read: plain frozen data. How the files look is in rules/README.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from memdoctor.errors import RuleError
from memdoctor.model import Confidence, Fix, Severity, Signal, Value
from memdoctor.records import record

STATUSES = ("draft", "stable")
ACTIONS = ("restart", "fix-config", "fix-code", "exclude-hosts", "call-hardware", "none")
RISKS = ("safe", "costly", "changes-results")
LINKS = ("job", "host", "rank", "group", "device")
ONSETS = ("first",)
JOINS = ("rank", "host", "attempt")
OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge", "in", "has", "exists")


@record
class Comparison:
    """One comparison of ``where``: the fact's ``field`` with a constant, or with the field ``of_first`` of the first fact.

    ``value`` is in the units of facts (bytes, seconds); a tuple for ``in`` (any of them) and ``has`` (all of them). ``type`` is the field's
    type in the catalogue; ``any`` for an entry of a map (``values.fp16``), which is text or a number.
    """

    field: str
    op: str
    value: Value = None
    of_first: str | None = None
    type: str = "str"


@record
class Count:
    """At least ``ge`` facts; with ``distinct``, that many values of a field; with ``within`` (seconds), in that span of time."""

    ge: int
    distinct: str | None = None
    within: float | None = None


@record
class Leaf:
    """A fact of one kind that passes all of ``where``; ``same`` says by what it is joined with the first fact.

    ``confidence`` stands only on the branches of an ``any`` (here and in the other conditions); None means the rule's own.
    """

    fact: str
    where: tuple[Comparison, ...] = ()
    same: tuple[str, ...] = ()
    count: Count | None = None
    confidence: Confidence | None = None


@record
class AllOf:
    parts: tuple[Condition, ...]
    confidence: Confidence | None = None


@record
class AnyOf:
    parts: tuple[Condition, ...]
    confidence: Confidence | None = None


@record
class NoneOf:
    """``none:`` holds where no part does."""

    parts: tuple[Condition, ...]
    confidence: Confidence | None = None


Condition = Leaf | AllOf | AnyOf | NoneOf


@record
class Explains:
    """Causes (a glob) that are only consequences, over which link, and up to how many seconds after. ``onset``: where that is "first", a wait
    that had begun before is none."""

    cause: str
    link: str
    before: float | None = None
    onset: str = ""


@record
class Rule:
    """One rule. ``path`` is the file it was read from, as errors show it; ``applies`` maps a framework to a version range."""

    id: str
    cause: str
    title: str
    status: str
    severity: Severity
    confidence: Confidence
    when: Condition
    message: str
    why: str
    action: str
    not_this: str = ""
    applies: Mapping[str, str] = field(default_factory=dict)
    about: str | None = None
    over: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    explains: tuple[Explains, ...] = ()
    refs: tuple[str, ...] = ()
    path: str = ""


@record
class Base:
    """What one or several folders hold. ``errors`` is empty where all of it is sound; ``causes`` are those that rules may name."""

    signals: Sequence[Signal] = ()
    rules: Sequence[Rule] = ()
    causes: frozenset[str] = frozenset()
    errors: tuple[RuleError, ...] = ()


# The kinds of facts without which a condition cannot be checked: one; ["all", ...]; ["any", ...], of which one is enough; None: it always can be.
Asked = str | list[Any] | None


# A kind of fact and, where a text field of it must have one of some values, the field and the values.
Event = Sequence[Any]


def rule_head(rule: Rule) -> tuple[str, Mapping[str, str], Asked, Sequence[Event]]:
    """What judging needs to know of every rule: its id, ``applies``, the kinds of facts asked for, and of what there must be one as its event."""
    events = []
    for leaf in first_leaves(rule.when, rule.about):
        test = first_text_test(leaf)
        events.append((leaf.fact,) if test is None else (leaf.fact, test.field, test.value if test.op == "in" else (test.value,)))
    return rule.id, rule.applies, asked(rule.when), tuple(events)


def first_text_test(leaf: Leaf) -> Comparison | None:
    """The first comparison of a text with constants, if there is any: facts that pass it can be looked up."""
    return next(
        (test for test in leaf.where if test.of_first is None and test.type == "str" and test.op in ("eq", "in") and "." not in test.field),
        None,
    )


def asked(condition: Condition) -> Asked:
    if isinstance(condition, Leaf):
        return condition.fact
    if isinstance(condition, NoneOf):
        return None
    return ["any" if isinstance(condition, AnyOf) else "all", *map(asked, condition.parts)]


def leaves(condition: Condition) -> list[Leaf]:
    """The leaves that are not under ``none``, in the order of the file."""
    if isinstance(condition, Leaf):
        return [condition]
    if isinstance(condition, NoneOf):
        return []
    return [leaf for part in condition.parts for leaf in leaves(part)]


def first_leaves(condition: Condition, about: str | None = None) -> list[Leaf]:
    """The leaves whose facts are the event that the rule explains: one, or one for each branch of an ``any`` that holds it."""
    if isinstance(condition, Leaf):
        return [condition]
    if isinstance(condition, NoneOf):
        return []
    if isinstance(condition, AnyOf):
        return [leaf for part in condition.parts for leaf in first_leaves(part, about)]
    part = first_part(condition, about)
    return [] if part is None else first_leaves(part, about)


def first_part(condition: AllOf, about: str | None) -> Condition | None:
    """The part of an ``all`` that holds the event: the first with a leaf of the kind ``about``, else the first with any leaf."""
    holding = [part for part in condition.parts if leaves(part)]
    for part in holding:
        if about is not None and any(leaf.fact == about for leaf in leaves(part)):
            return part
    return holding[0] if holding else None
