"""Takes the prefixes off one line, outermost first, until nothing matches: where the message begins, and what stood before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from memdoctor.sources.logs.prefix_table import FAMILIES, NCCL, TAILS, Family

LAYERS = 10  # of prefixes on one line; more is not a log
_BEGINNINGS = 4_096  # kept per table


class CompiledFamily:
    """A family whose pattern is compiled, and its groups listed, when a line is first matched against it."""

    __slots__ = ("family", "groups", "header", "inner", "match", "named", "stamp", "tag")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.match: Callable[[str, int], re.Match[str] | None] = self._first_match
        self.groups: tuple[tuple[str, int], ...] = ()
        self.named: tuple[int, ...] = ()  # the groups that make the tag
        self.tag, self.header, self.inner, self.stamp = family.tag, family.header, family.inner, family.stamp

    def _first_match(self, raw: str, position: int) -> re.Match[str] | None:
        if not self.family.may_match(raw):
            return None
        pattern = re.compile(self.family.pattern, re.A)
        self.groups = tuple((name.rstrip("0123456789"), index) for name, index in pattern.groupindex.items())
        names = {"process": ("host", "pid"), "rankn": ("rank",), "host": ("host", "place")}.get(self.tag, (self.tag,))
        self.named = tuple(index for name, index in sorted(self.groups) if name in names)
        self.match = pattern.match
        return pattern.match(raw, position)


_compiled = lru_cache(maxsize=512)(CompiledFamily)


class Table:
    """Families by the first two characters that a text must have for them."""

    __slots__ = ("_families", "_known")

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families
        self._known: dict[str, tuple[CompiledFamily, ...]] = {}

    def at(self, start: str) -> tuple[CompiledFamily, ...]:
        known = self._known.get(start)
        if known is None:
            if len(self._known) > _BEGINNINGS:
                self._known.clear()
            known = self._known[start] = tuple(_compiled(family) for family in self._families if family.may_begin(start))
        return known


PLAIN = Table(FAMILIES)
_TAILS = Table(TAILS)


class Found:
    """What the prefixes of one line said: the groups of the families, the tags from the outermost in, and the families themselves."""

    __slots__ = ("header", "layers", "tags", "values")

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.tags: list[tuple[str, str]] = []
        self.header = False
        self.layers: list[Family] = []


def _take(match: re.Match[str], compiled: CompiledFamily, found: Found) -> None:
    values = found.values
    for name, index in compiled.groups:
        value = match[index]
        # The outermost time and host are on most lines and so comparable; of the rest the innermost is the most exact.
        if value is not None and not (name in ("time", "host") and name in values):
            values[name] = value
    found.layers.append(compiled.family)
    if compiled.header:
        found.header = True
    if compiled.tag:
        parts = [match[index] for index in compiled.named]
        found.tags.append((compiled.tag, parts[0] or "" if len(parts) == 1 else ":".join(part for part in parts if part)))


def walk(raw: str, position: int, table: Table) -> tuple[int, Found | None]:
    """Where the message of ``raw`` begins, read from ``position``, and what the prefixes before it say (None where there is none)."""
    found: Found | None = None
    nccl = " NCCL " in raw
    for _ in range(LAYERS):
        candidates = table.at(raw[position : position + 2])
        if not candidates and not nccl:
            break
        if nccl:
            compiled = _compiled(NCCL)
            match = compiled.match(raw, position)
            if match is not None:
                found = found or Found()
                _take(match, compiled, found)
                return match.end(), found
        for compiled in candidates:
            if found is not None and ((found.header and not compiled.inner) or (not compiled.stamp and compiled.family in found.layers)):
                continue
            match = compiled.match(raw, position)
            if match is not None:
                break
        else:
            break
        end = match.end()
        if compiled.stamp and not raw[end:].strip():
            break  # a time and nothing else is the message
        found = found or Found()
        _take(match, compiled, found)
        position = _tail(raw, end, found) if compiled.stamp else end
    return position, found


def _tail(raw: str, position: int, found: Found) -> int:
    for compiled in _TAILS.at(raw[position : position + 2]):
        match = compiled.match(raw, position)
        if match is not None:
            _take(match, compiled, found)
            return match.end()
    return position + 1 if raw[position : position + 1] in (" ", "\t") else position


def prefix_end(raw: str, position: int = 0) -> int:
    """Where the message of ``raw`` begins, by the prefixes that need no learning."""
    return walk(raw, position, PLAIN)[0]
