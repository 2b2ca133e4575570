"""All facts in the order of time, looked up by kind and by the value of a field; and the comparisons of ``where``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.engine import versions
from memdoctor.engine.schema import Comparison, Event, Leaf, first_text_test
from memdoctor.model import Fact

Counts = Mapping[tuple[str, str, int | None, int], int]


def moment(fact: Fact) -> float:
    """Epoch seconds: its own stamp, else the last one before it; before all others where its file had shown none yet."""
    stamp = fact.time or fact.after
    return -math.inf if stamp is None else stamp.epoch


class FactIndex:
    """``facts`` sorted by time, then reading order. A fact is named by its place in that list."""

    def __init__(self, facts: Sequence[Fact], counts: Counts) -> None:
        self.facts = sorted(facts, key=lambda fact: (moment(fact), fact.seq))
        self.counts = counts
        self.kinds: dict[str, list[int]] = {}
        for place, fact in enumerate(self.facts):
            self.kinds.setdefault(fact.kind, []).append(place)
        self._values: dict[tuple[str, str], dict[Any, list[int]]] = {}
        self._kept: dict[str, Counter[tuple[str, str, int | None, int]]] = {}

    def passing(self, leaf: Leaf) -> list[int]:
        """The facts of the leaf's kind that pass all its comparisons with constants."""
        tests = [test for test in leaf.where if test.of_first is None]
        places = self.kinds.get(leaf.fact, [])
        text = first_text_test(leaf)
        if places and text is not None:
            values = self._by_value(leaf.fact, text.field)
            wanted = text.value if text.op == "in" else (text.value,)
            lists = [values[value] for value in dict.fromkeys(wanted) if value in values]
            places = lists[0] if len(lists) == 1 else sorted(place for some in lists for place in some)
            tests.remove(text)
        return [place for place in places if all(passes(test, self.facts[place]) for test in tests)]

    def has(self, event: Event) -> bool:
        """Whether there is a fact that may be ``event``."""
        if event[0] not in self.kinds:
            return False
        return len(event) == 1 or not self._by_value(event[0], event[1]).keys().isdisjoint(event[2])

    def total(self, places: Sequence[int]) -> int:
        """How many facts ``places`` stand for: of each key, all that were counted where all that were kept are among them.

        Facts are kept only from both ends of each (kind, name, rank, attempt); those in between are taken to be like their ends.
        """
        among = Counter(self._key(self.facts[place]) for place in places)
        total = 0
        for key, number in among.items():
            kept = self._kept.get(key[0])
            if kept is None:
                kept = self._kept[key[0]] = Counter(self._key(self.facts[place]) for place in self.kinds[key[0]])
            total += max(number, self.counts.get(key, 0)) if kept[key] == number else number
        return total

    def _by_value(self, kind: str, field: str) -> dict[Any, list[int]]:
        values = self._values.get((kind, field))
        if values is None:
            values = self._values[kind, field] = {}
            for place in self.kinds[kind]:
                value = self.facts[place].get(field)
                if isinstance(value, str):
                    values.setdefault(value, []).append(place)
        return values

    @staticmethod
    def _key(fact: Fact) -> tuple[str, str, int | None, int]:
        return fact.kind, str(fact.fields.get("name", "")), fact.rank, fact.attempt


def value_of(fact: Fact, field: str) -> Any:
    """A field, or one entry of a map (``values.fp16``); None where it is unknown."""
    value = fact.get(field)
    if value is None and "." in field:
        outer, _, key = field.partition(".")
        entries = fact.get(outer)
        return entries.get(key) if isinstance(entries, Mapping) else None
    return value


def passes(test: Comparison, fact: Fact, first: Fact | None = None) -> bool:
    """Does ``fact`` pass ``test``? An unknown value passes only ``exists: false`` and ``ne``."""
    value = value_of(fact, test.field)
    if test.op == "exists":
        return (value is not None) == bool(test.value)
    other = test.value
    if test.of_first is not None:
        other = None if first is None else value_of(first, test.of_first)
    if value is None or other is None:
        return test.op == "ne"
    match test.op:
        case "in":
            return any(_order(test.type, value, one) == 0 for one in other)
        case "has":
            return all(_holds(value, one) for one in other)
    order = _order(test.type, value, other)
    match test.op:
        case "eq":
            return order == 0
        case "ne":
            return order != 0
        case "lt":
            return order is not None and order < 0
        case "le":
            return order is not None and order <= 0
        case "gt":
            return order is not None and order > 0
        case "ge":
            return order is not None and order >= 0
    raise ValueError(f"no comparison is called {test.op!r}")


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    if isinstance(value, Mapping):
        return text in value
    if isinstance(value, (list, tuple)):
        return text in [str(part) for part in value]
    return text in str(value)


def _order(type_: str, value: Any, other: Any) -> int | None:
    """Below, equal, above: -1, 0, 1; None where the two cannot be compared."""
    if type_ == "version":
        order = versions.compare(str(value), str(other))
        return order if order is not None else (0 if value == other else None)
    if type_ == "any":  # entries of a dumped map are text, or what JSON made of it
        try:
            value, other = float(value), float(other)
        except (TypeError, ValueError):
            value, other = str(value).lower(), str(other).lower()
            return 0 if value == other else None
    if value == other:
        return 0
    try:
        return -1 if value < other else 1 if value > other else None
    except TypeError:
        return None
