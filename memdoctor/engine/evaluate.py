"""Does the ``when`` of one rule hold, for which event facts, how surely, and on the strength of which other facts?"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from memdoctor.engine.facts import FactIndex, moment, passes, value_of
from memdoctor.engine.schema import AllOf, AnyOf, Comparison, Condition, Count, Leaf, NoneOf, Rule, first_part
from memdoctor.errors import MemdoctorError
from memdoctor.model import CONFIDENCES, Confidence, Fact

_LEVELS = {confidence: len(CONFIDENCES) - number for number, confidence in enumerate(CONFIDENCES)}
NO, NEUTRAL = 0, len(CONFIDENCES) + 1  # does not hold; holds and says nothing about confidence
SUPPORT = 64  # facts of one condition that are kept as support
BUDGET = 1_000_000  # comparisons of one rule with fields of the first fact: about a second; only a log made to be slow needs more

Events = dict[int, int]  # place of an event fact -> level


def level_of(confidence: Confidence) -> int:
    return _LEVELS[confidence]


def confidence_of(level: int) -> Confidence:
    return CONFIDENCES[len(CONFIDENCES) - level]


class Evaluation:
    """The evaluation of one rule. ``events`` gives the event facts; ``support`` the facts that its other conditions found for them."""

    def __init__(self, rule: Rule, index: FactIndex) -> None:
        self.rule, self.index = rule, index
        self._own = level_of(rule.confidence)
        self._joined: dict[int, tuple[dict[Any, list[int]], dict[Any, list[int]]]] = {}
        self._bound: dict[tuple[int, Any], list[int]] = {}
        self._equal: dict[tuple[int, int], dict[Any, list[int]]] = {}
        self._lists: list[list[int]] = []
        self._left = BUDGET

    def events(self) -> Events:
        found = self._events(self.rule.when)
        return {place: self._own if level == NEUTRAL else level for place, level in found.items()}

    def support(self, places: Sequence[int]) -> list[int]:
        """What the positive conditions besides the event found, in order, without ``places`` themselves."""
        lists: dict[int, list[int]] = {}
        for place in places:
            for bound in self._support(self.rule.when, place):
                lists[id(bound)] = bound
        return sorted({place for bound in lists.values() for place in bound[:SUPPORT]} - set(places))

    # --- the event ------------------------------------------------------------------------------------------------

    def _events(self, condition: Condition) -> Events:
        if isinstance(condition, Leaf):
            return {place: NEUTRAL for place in self.index.passing(condition) if self._bind(condition, place)}
        if isinstance(condition, NoneOf):
            return {}
        if isinstance(condition, AnyOf):
            best: Events = {}
            for part in condition.parts:
                for place, level in self._events(part).items():
                    best[place] = self._better(best.get(place, NO), self._of_branch(part, level))
            return best
        event = first_part(condition, self.rule.about)
        if event is None:
            return {}
        found = self._events(event)
        for part in condition.parts:
            if part is not event:
                found = {place: min(level, held) for place, level in found.items() if (held := self._holds(part, place))}
        return found

    def _better(self, one: int, other: int) -> int:
        return max(one, other, key=lambda level: self._own if level == NEUTRAL else level)

    @staticmethod
    def _of_branch(part: Condition, level: int) -> int:
        return level_of(part.confidence) if part.confidence is not None and level else level

    # --- the rest, for one event fact -------------------------------------------------------------------------------

    def _holds(self, condition: Condition, place: int) -> int:
        if isinstance(condition, Leaf):
            return NEUTRAL if self._bind(condition, place) else NO
        if isinstance(condition, NoneOf):
            return NO if any(self._holds(part, place) for part in condition.parts) else NEUTRAL
        if isinstance(condition, AnyOf):
            best = NO
            for part in condition.parts:
                best = self._better(best, self._of_branch(part, self._holds(part, place)))
            return best
        level = NEUTRAL
        for part in condition.parts:
            level = min(level, self._holds(part, place))
            if level == NO:
                break
        return level

    def _support(self, condition: Condition, place: int) -> list[list[int]]:
        if isinstance(condition, Leaf):
            return [self._bind(condition, place)]
        if isinstance(condition, NoneOf):
            return []
        lists = []
        for part in condition.parts:
            if isinstance(condition, AllOf) or self._holds(part, place):
                lists += self._support(part, place)
        return lists

    # --- joins --------------------------------------------------------------------------------------------------------

    def _bind(self, leaf: Leaf, place: int) -> list[int]:
        """The facts of ``leaf`` that are joined with the event fact at ``place``; empty where they are too few."""
        first = self.index.facts[place]
        references = [test for test in leaf.where if test.of_first is not None]
        key = (first.attempt, _join(leaf, first), tuple(repr(value_of(first, test.of_first or "")) for test in references))
        bound = self._bound.get((id(leaf), key))
        if bound is None:
            bound = self._candidates(leaf, first)
            if references:
                bound = self._referring(leaf, references, bound, first)
            if leaf.count is not None and not self._enough(leaf.count, bound):
                bound = []
            self._bound[id(leaf), key] = bound
        return bound

    def _candidates(self, leaf: Leaf, first: Fact) -> list[int]:
        joined = self._joined.get(id(leaf))
        if joined is None:
            joined = ({}, {})
            for place in self.index.passing(leaf):
                fact = self.index.facts[place]
                key = _join(leaf, fact)
                joined[0].setdefault((fact.attempt, key), []).append(place)
                joined[1].setdefault(key, []).append(place)
            self._joined[id(leaf)] = joined
        by_attempt, by_key = joined
        key = _join(leaf, first)
        if first.attempt == 0:  # job-wide: it belongs to every attempt
            return by_key.get(key, [])
        own, wide = by_attempt.get((first.attempt, key), []), by_attempt.get((0, key), [])
        return sorted(own + wide) if wide else own

    def _referring(self, leaf: Leaf, references: list[Comparison], places: list[int], first: Fact) -> list[int]:
        """Those of ``places`` that pass the comparisons with ``first``; without a ``count``, no more than are kept as support."""
        equal = next((test for test in references if test.op == "eq" and test.type not in ("version", "any")), None)
        if equal is not None:
            values = self._equal.get((id(leaf), id(places)))
            if values is None:
                values = {}
                for place in places:
                    values.setdefault(value_of(self.index.facts[place], equal.field), []).append(place)
                self._equal[id(leaf), id(places)] = values
                self._lists.append(places)  # keeps the id its own
            places = values.get(value_of(first, equal.of_first or ""), [])
        found: list[int] = []
        for place in places:
            self._left -= 1
            if self._left < 0:
                raise MemdoctorError(f"more than {BUDGET:,} comparisons of facts with the first fact")
            if all(passes(test, self.index.facts[place], first) for test in references):
                found.append(place)
                if leaf.count is None and len(found) == SUPPORT:
                    break
        return found

    def _enough(self, count: Count, places: list[int]) -> bool:
        facts = self.index.facts
        if count.within is None:
            if count.distinct is None:
                return self.index.total(places) >= count.ge
            return len(_values(count.distinct, [facts[place] for place in places])) >= count.ge
        window: deque[tuple[float, str]] = deque()
        values: Counter[str] = Counter()
        for place in places:  # in the order of time
            now = moment(facts[place])
            value = value_of(facts[place], count.distinct) if count.distinct is not None else place
            if now == -math.inf or value is None:
                continue
            window.append((now, repr(value)))
            values[repr(value)] += 1
            while now - window[0][0] > count.within:
                _, old = window.popleft()
                values[old] -= 1
                if not values[old]:
                    del values[old]
            if len(values) >= count.ge:
                return True
        return False


def _values(field: str, facts: list[Fact]) -> set[str]:
    return {repr(value) for fact in facts if (value := value_of(fact, field)) is not None}


def _join(leaf: Leaf, fact: Fact) -> tuple[Any, ...]:
    """What must be equal for two facts to be joined. Where a rank or host is unknown, one stream of one file stands for it."""
    key: list[Any] = []
    if "rank" in leaf.same:
        key.append(fact.rank if fact.rank is not None else (fact.origin.path, fact.fields.get("stream")))
    if "host" in leaf.same:
        key.append(fact.host if fact.host is not None else (fact.origin.path,))
    return tuple(key)
