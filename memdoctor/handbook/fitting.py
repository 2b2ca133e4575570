"""One signal's sample against what a rule asks for: does it fit as it is, or with another word in the place of one that it captures?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from memdoctor import catalog
from memdoctor.engine.facts import passes
from memdoctor.engine.schema import Comparison, Leaf
from memdoctor.model import Fact, Origin, Signal

NUMBERS = ("exitcode",)  # fields whose number may be exchanged: the rest of the line does not speak of it
TIMEOUT = 1  # seconds that a pattern may take on a line of its sample


class Sample:
    """The sample of one signal, its patterns compiled when they are first needed."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal

    @cached_property
    def tells(self) -> frozenset[str]:
        """The fields that the signal's patterns can yield."""
        groups = {name for pattern in [*self._line_patterns, *self._row_patterns] for name in pattern.groupindex}
        known = {*groups, *self.signal.set}
        kind = catalog.KINDS[self.signal.fact]
        return frozenset({*known, *self._fields} & {*kind.fields, *kind.computed})

    def fitted(self, leaf: Leaf, tellable: frozenset[str]) -> str | None:
        """The sample, with other words where the leaf asks for such; None where it speaks against the leaf.

        Only comparisons of fields in ``tellable`` count: the others are for the rest of a log to answer.
        """
        if leaf.fact != self.signal.fact:
            return None
        tests = [test for test in leaf.where if test.of_first is None and test.field.partition(".")[0] in tellable]
        wrong = [test for test in tests if not passes(test, self._fact(self._fields))]
        if not wrong:
            return self.signal.sample
        text = self.signal.sample
        for test in wrong:
            changed = self._with(test, text)
            if changed is None:
                return None
            text = changed
        fact = self._fact(self._read(text))
        return text if all(passes(test, fact) for test in tests) else None

    def _with(self, test: Comparison, text: str) -> str | None:
        """``text`` with what ``test`` asks for in the place of what the patterns capture as that field."""
        if test.op not in ("eq", "in", "has") or (test.type != "str" and test.field not in NUMBERS) or test.field in self.signal.set:
            return None
        wanted = str(test.value[0] if test.op in ("in", "has") else test.value)
        first, *rest = text.split("\n")
        for pattern in self._line_patterns:
            hit = pattern.search(first, timeout=TIMEOUT)
            if hit and test.field in pattern.groupindex and hit[test.field] is not None:
                start, end = hit.span(test.field)
                return "\n".join([first[:start] + wanted + first[end:], *rest])
        return None

    @cached_property
    def _line_patterns(self) -> list[Any]:
        import regex

        return [regex.compile(text) for text in (self.signal.match, *self.signal.more)]

    @cached_property
    def _row_patterns(self) -> list[Any]:
        import regex

        return [regex.compile(text) for text in self.signal.rows]

    @cached_property
    def _fields(self) -> Mapping[str, Any]:
        return self._read(self.signal.sample)

    def _fact(self, fields: Mapping[str, Any]) -> Fact:
        return Fact(self.signal.fact, fields, Origin("log"))

    def _read(self, text: str) -> Mapping[str, Any]:
        """The fields that the patterns find in ``text``; the first value of a field wins, as in the log source."""
        first, *following = text.split("\n")
        found: dict[str, Any] = dict(self.signal.set)
        hits = [pattern.search(first, timeout=TIMEOUT) for pattern in self._line_patterns]
        hits += [pattern.search(line, timeout=TIMEOUT) for line in following for pattern in self._row_patterns]
        for hit in hits:
            for name, value in hit.groupdict().items() if hit else ():
                if value is not None:
                    found.setdefault(name, value)
        kind = self.signal.fact
        known = catalog.KINDS[kind].fields
        return catalog.with_computed(kind, {name: catalog.convert(kind, name, value) for name, value in found.items() if name in known})
