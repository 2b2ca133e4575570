"""Rules and facts → findings: which rules fire, in which attempt, how surely, and which could not be checked and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from memdoctor import catalog, units
from memdoctor.engine import message, versions
from memdoctor.engine.evaluate import Evaluation, confidence_of, level_of
from memdoctor.engine.facts import Counts, FactIndex, value_of
from memdoctor.engine.schema import Asked, Condition, Leaf, NoneOf, Rule, rule_head
from memdoctor.model import Confidence, Fact, Skip
from memdoctor.records import record
from memdoctor.shelf import Shelf

WEAKENED: Confidence = "likely"  # the most that a rule says whose `none` nobody could look at
# Frameworks that train; a log shows one of them, or none when it is cut: `applies: {deepspeed: "*"}` is quiet only in the log of another.
TRAINERS = ("megatron-lm", "megatron-core", "deepspeed", "transformers", "accelerate", "lightning", "nemo")


@record
class Finding:
    """A rule that fired in one attempt (0 = in none of its own) for one subject (see catalog.Kind), over all ranks.

    ``facts`` are the events, in the order of time; ``support`` are facts that its other conditions found. ``count`` is the exact number
    of events, of which only some are kept.
    """

    rule: Rule
    attempt: int
    confidence: Confidence
    facts: tuple[Fact, ...]
    support: tuple[Fact, ...] = ()
    count: int = 1
    message: str = ""


@record
class Judgement:
    """``not_checked``: (rule id, reason) of each rule that no source could feed, or that failed. All others fired or are quiet."""

    findings: tuple[Finding, ...]
    not_checked: tuple[tuple[str, str], ...] = ()


@record
class _World:
    index: FactIndex
    versions: Mapping[str, str]
    frameworks: frozenset[str]
    unseen: Mapping[str, str] = field(default_factory=dict)  # kind -> why nothing could yield it


def judge(
    rules: Sequence[Rule],
    facts: Sequence[Fact],
    *,
    counts: Counts | None = None,
    versions: Mapping[str, str] | None = None,
    frameworks: Collection[str] = (),
    skips: Sequence[Skip] = (),
    sources: frozenset[str] = frozenset({"log"}),
) -> Judgement:
    """Every rule on its own: a rule that fails is not checked, and the rest goes on. Findings are in the order of ``rules``."""
    index = FactIndex(facts, counts or {})
    names = frozenset("torch" if name == "pytorch" else name for name in frameworks)
    world = _World(index, versions or {}, names, _unseen(index, skips, sources))
    findings: list[Finding] = []
    not_checked: list[tuple[str, str]] = []
    for number, (id_, applies, asked, events) in enumerate(rules.heads if isinstance(rules, Shelf) else map(rule_head, rules)):
        try:
            if not _applies(applies, world):
                continue
            reason = _missing(asked, world.unseen)
            if reason is not None:
                not_checked.append((id_, reason))
            elif any(map(index.has, events)):  # of most rules there is no event: they need not even be made
                findings += _findings(rules[number], world)
        except Exception as error:  # one rule must never cost the answer of the others
            not_checked.append((id_, f"failed: {type(error).__name__}: {error}"))
    return Judgement(tuple(findings), tuple(not_checked))


def _unseen(index: FactIndex, skips: Sequence[Skip], sources: frozenset[str]) -> dict[str, str]:
    unseen = {}
    for kind, about in catalog.KINDS.items():
        if kind not in index.kinds and not sources.intersection(about.sources):
            unseen[kind] = f"no {' or '.join(about.sources)} was {'run' if 'probe' in about.sources else 'read'}"
    for skip in skips:
        for kind in skip.kinds:
            if kind not in index.kinds:
                unseen[kind] = f"{skip.source}: {skip.reason}"
    return unseen


def _applies(applies: Mapping[str, str], world: _World) -> bool:
    for name, range_ in applies.items():
        name = "torch" if name == "pytorch" else name
        if range_.strip() == versions.ANY:
            if name in TRAINERS and name not in world.frameworks and world.frameworks.intersection(TRAINERS):
                return False
        elif versions.fits(world.versions.get(name, ""), range_) is False:
            return False
    return True


def _missing(asked: Asked, unseen: Mapping[str, str]) -> str | None:
    """Why the condition cannot be checked; None where it can."""
    if asked is None or isinstance(asked, str):
        return unseen.get(asked or "")
    how, *parts = asked
    reasons = [_missing(part, unseen) for part in parts]
    if how == "any":
        return reasons[0] if reasons and None not in reasons else None
    return next((reason for reason in reasons if reason is not None), None)


def _excluded(condition: Condition, *, under: bool = False) -> list[Leaf]:
    """The leaves under ``none``."""
    if isinstance(condition, Leaf):
        return [condition] if under else []
    return [leaf for part in condition.parts for leaf in _excluded(part, under=under or isinstance(condition, NoneOf))]


def _findings(rule: Rule, world: _World) -> list[Finding]:
    evaluation = Evaluation(rule, world.index)
    events = evaluation.events()
    unsure = any(leaf.fact in world.unseen for leaf in _excluded(rule.when))
    groups: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for place in sorted(events):
        fact = world.index.facts[place]
        groups.setdefault((fact.attempt, _subject(fact)), []).append(place)
    findings = []
    for (attempt, _), places in sorted(groups.items()):
        level = max(events[place] for place in places)
        if unsure:
            level = min(level, level_of(WEAKENED))
        facts = tuple(world.index.facts[place] for place in places)
        support = tuple(world.index.facts[place] for place in evaluation.support(places))
        count = world.index.total(places)
        findings.append(Finding(rule, attempt, confidence_of(level), facts, support, count, _message(rule, facts, count)))
    return findings


def _subject(fact: Fact) -> tuple[str, ...]:
    """What tells apart the things that facts of one kind are about; empty for most kinds: they are told together."""
    return tuple(str(fact.fields.get(name, "")) for name in catalog.KINDS[fact.kind].subject)


def _message(rule: Rule, facts: tuple[Fact, ...], count: int) -> str:
    """The rule's message with the numbers of its first event that knows them all; of a chain of exceptions with those of its first cause."""
    parts = message.parse(rule.message)
    needed = {name for part in parts if not part.optional for name in part.fields}
    knowing = [fact for fact in facts if all(_show(name, fact, facts, count) is not None for name in needed)] or [facts[0]]
    first = next((fact for fact in knowing if fact.event == knowing[0].event and fact.fields.get("root") is True), knowing[0])
    return message.render(parts, lambda name: _show(name, first, facts, count))


def _show(name: str, fact: Fact, facts: tuple[Fact, ...], count: int) -> str | None:
    match name:
        case "ranks":
            ranks = [other.rank for other in facts if other.rank is not None]
            return units.format_ranks(ranks) if ranks else None
        case "count":
            return units.format_count(count)
        case "gpus":
            gpus = [gpu for other in facts if isinstance(gpu := other.fields.get("gpu"), int)]
            return units.format_ranks(gpus) if gpus else None
        case "rank" | "attempt":
            value = fact.get(name)
            return None if value is None else str(value)
        case _:
            value = value_of(fact, name)
            return None if value in (None, message.UNKNOWN) else message.one_line(catalog.show(fact.kind, name, value))
