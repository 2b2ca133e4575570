"""What a rule looks for, as it looks in a log: samples of the signals that yield its facts, else lines made from its conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memdoctor.engine.schema import Comparison, Leaf, Rule, first_leaves, leaves
from memdoctor.handbook.entries import Excerpt
from memdoctor.handbook.fitting import Sample
from memdoctor.model import Signal

MOST = 3  # excerpts of one rule
LONGEST = 12  # lines of one excerpt
BESIDE = ("run.",)  # kinds that say what runs, not what is wrong


class Samples:
    """The samples of all signals, looked up by the kind of fact that they make."""

    def __init__(self, signals: Sequence[Signal]) -> None:
        self._by_kind: dict[str, list[Sample]] = {}
        for signal in signals:
            self._by_kind.setdefault(signal.fact, []).append(Sample(signal))
        self._told: dict[str, frozenset[str]] = {}

    def of(self, rule: Rule) -> tuple[Excerpt, ...]:
        """What makes the rule fire, the event first; empty where its facts are computed from many lines."""
        events = first_leaves(rule.when, rule.about)
        beside = [leaf for leaf in leaves(rule.when) if leaf not in events and not leaf.fact.startswith(BESIDE)]
        found: dict[tuple[str, ...], Excerpt] = {}
        for leaf in [*events, *beside]:
            for excerpt in self._of_leaf(leaf):
                found.setdefault(excerpt.lines, excerpt)
                break
        for leaf in events:  # other wordings of the event
            for excerpt in self._of_leaf(leaf) if len(found) < MOST else ():
                found.setdefault(excerpt.lines, excerpt)
        return tuple(found.values())[:MOST]

    def makers(self, rule: Rule) -> tuple[Signal, ...]:
        """The signals whose facts the rule asks for, in the order of its conditions."""
        found: dict[str, Signal] = {}
        for leaf in leaves(rule.when):
            for sample in self._by_kind.get(leaf.fact, ()):
                if sample.fitted(leaf, self._tellable(leaf.fact)) is not None:
                    found.setdefault(sample.signal.id, sample.signal)
        return tuple(found.values())

    def _of_leaf(self, leaf: Leaf) -> Iterator[Excerpt]:
        if leaf.fact == "exception":
            yield from _exception(leaf)
        changed: list[Excerpt] = []
        fits = False
        for sample in self._by_kind.get(leaf.fact, ()):
            text = sample.fitted(leaf, self._tellable(leaf.fact))
            if text is None:
                continue
            excerpt = Excerpt(tuple(text.split("\n")[:LONGEST]), sample.signal.id, sample.signal.seen, _sites(leaf))
            if text == sample.signal.sample:
                fits = True
                yield excerpt
            else:
                changed.append(excerpt)
        yield from () if fits else changed[:1]

    def _tellable(self, kind: str) -> frozenset[str]:
        """The fields that lines of the kind tell; the others are filled in by what the rest of a log says, and rule out no sample."""
        if kind not in self._told:
            self._told[kind] = frozenset(field for sample in self._by_kind.get(kind, ()) for field in sample.tells)
        return self._told[kind]


def _exception(leaf: Leaf) -> Iterator[Excerpt]:
    """The last line of a traceback that the leaf asks for."""
    types = [one for test in leaf.where if test.field == "type" for one in _texts(test)]
    messages = [one for test in leaf.where if test.field == "message" for one in _texts(test)]
    if types or messages:
        parts = any(test.field == "message" and test.op == "has" for test in leaf.where)
        said = " … ".join(["", *messages, ""] if parts else messages).strip()
        yield Excerpt((f"{types[0] if types else '<exception>'}{': ' if said else ''}{said}",), sites=_sites(leaf))


def _sites(leaf: Leaf) -> tuple[str, ...]:
    """Where the traceback must end, as far as the leaf asks for it."""
    for test in leaf.where:
        if test.field == "site" and test.op in ("eq", "in"):
            return tuple(test.value) if test.op == "in" else (test.value,)
    return ()


def _texts(test: Comparison) -> list[str]:
    if test.op == "eq":
        return [str(test.value)]
    if test.op == "in":
        return [str(test.value[0])]
    return [str(one) for one in test.value] if test.op == "has" else []
