"""A signal's patterns, compiled and tried on its own sample."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memdoctor import catalog
from memdoctor.engine.fields import Faults
from memdoctor.errors import suggest
from memdoctor.model import Signal

WHOSE = ("rank", "host", "local_rank", "pid")  # groups that say whose fact it is; they are no fields of the kind
# A group of one repeated atom that is repeated itself, or two neighbours that both take anything: time grows with a power of the line's length.
_RISKY = re.compile(r"\((?:\?:|\?P<\w+>)?(?:\\.|\[[^\]]*\]|[^\\()\[\]])[+*]\)[+*]|(?<!\\)\.[*+]\??\.[*+]")
TIMEOUT = 1  # seconds that one pattern may take on one line of the sample


def check_patterns(signal: Signal, faults: Faults, lines: Mapping[str, int]) -> None:
    """Every fault of the signal's patterns; ``lines`` are the lines of its keys."""
    _Patterns(signal, faults, lines).check()


class _Patterns:
    def __init__(self, signal: Signal, faults: Faults, lines: Mapping[str, int]) -> None:
        self.signal, self.faults, self.lines = signal, faults, lines
        self.kind = catalog.KINDS[signal.fact]
        self.groups: set[str] = set()

    def fault(self, key: str, problem: str, hint: str = "") -> None:
        self.faults.add(self.lines.get(key, self.signal.line), f"the signal {self.signal.id}: {problem}", hint)

    def check(self) -> None:
        signal = self.signal
        before = len(self.faults.errors)
        match = self.compile("match", signal.match)
        more = [self.compile("more", text) for text in signal.more]
        rows = [self.compile("rows", text) for text in signal.rows]
        until = self.compile("until", signal.until) if signal.until is not None else None
        pairs = self.compile("pairs", signal.pairs) if signal.pairs is not None else None
        if "name" in self.kind.fields and "name" not in signal.set and "name" not in self.groups:
            self.fault("set", f"a fact of the kind {signal.fact} needs a name", "set: {name: <slug>}, so that rules can ask for it")
        if len(self.faults.errors) > before:
            return
        first, *following = signal.sample.split("\n")
        for text in signal.has:
            if text not in first:
                self.fault(
                    "sample", f"the sample does not hold its gate '{text}'", "every text of 'has' must be on the sample's first line"
                )
        found = self.search(match, first)
        if found is None:
            self.fault(
                "match",
                "'match' does not match the sample",
                "it is searched in the sample's first line, without prefixes such as '[rank3]:'",
            )
            return
        captured = [found, *(hit for pattern in more if (hit := self.search(pattern, first)))]
        hits = [hit for line in following for pattern in rows if (hit := self.search(pattern, line))]
        entries = [line for line in following if pairs is not None and self.search(pairs, line)]
        if following and not signal.block:
            self.fault("sample", "the sample has several lines but the signal reads one", "give until, rows or pairs, or cut the sample")
        if signal.rows and not hits:
            self.fault(
                "rows", "no pattern of 'rows' matches a following line of the sample", "the sample must hold the lines that follow, too"
            )
        if pairs is not None and not entries:
            self.fault("pairs", "'pairs' matches no following line of the sample", "the sample must hold the lines that follow, too")
        if until is not None and not signal.rows and pairs is None and not following:
            self.fault(
                "sample", "the sample ends on its first line but 'until' is given", "the sample must hold the lines that follow, too"
            )
        ends = [hit for line in following if until is not None and (hit := self.search(until, line))]
        for hit in captured + hits + ends[:1]:
            for name, text in hit.groupdict().items():
                if text is not None and name not in WHOSE and catalog.convert(signal.fact, name, text) is None:
                    self.fault("sample", f"the group '{name}' captures '{text}', which is no {self.kind.fields[name]}", "")

    def search(self, pattern: Any, text: str) -> Any:
        try:
            return pattern.search(text, timeout=TIMEOUT)
        except TimeoutError:
            self.fault("sample", f"a pattern takes longer than {TIMEOUT} s on the sample: {pattern.pattern!r}", "no repeat of a repeat")
            return None

    def compile(self, key: str, text: str) -> Any:
        import regex

        try:
            pattern = regex.compile(text)
        except regex.error as error:
            self.fault(key, f"'{key}' is no pattern: {error}", "in YAML put patterns in single quotes")
            return None
        if key != "until" and pattern.search("") is not None:
            self.fault(key, f"'{key}' matches the empty line: {text!r}", "")
        if _RISKY.search(text):
            self.fault(key, f"'{key}' may take very long on a long line: {text!r}", "no repeat of a repeat, no '.*' right after '.*'")
        if key == "pairs":
            if set(pattern.groupindex) != {"key", "value"} or "values" not in self.kind.fields:
                self.fault(key, "'pairs' must have the groups key and value, for a kind with the field 'values'", "")
            return pattern
        for name in pattern.groupindex:
            if name not in self.kind.fields and name not in WHOSE:
                self.fault(
                    key, f"the group '{name}' of '{key}' is no field of {self.signal.fact}", suggest(name, self.kind.fields, list_up_to=30)
                )
        self.groups.update(pattern.groupindex)
        return pattern
