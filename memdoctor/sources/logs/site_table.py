"""rules/tables/sites.yaml, read once and only when an exception was found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import regex

from memdoctor.catalog import SITES
from memdoctor.errors import RuleError
from memdoctor.resources import rules_dir

_NAME = "tables/sites.yaml"
_KEYS = {
    "owners": {"owner", "packages", "checkouts"},
    "sites": {"site", "priority", "file", "function", "source", "owner", "within"},
    "hides": {"file", "function", "hides"},
    "messages": {"site", "priority", "match", "type"},
}


class Pattern:
    """Globs; ``fits`` asks whether one of them matches the whole text."""

    __slots__ = ("_fits",)

    def __init__(self, globs: Sequence[str], *, paths: bool) -> None:
        if paths:
            globs = [glob.removeprefix("**/") for glob in globs]
        start = "(?:^|.*/)" if paths else "^"
        self._fits = re.compile(f"{start}(?:{'|'.join(map(_translate, globs))})$").match

    def fits(self, text: str) -> bool:
        return self._fits(text) is not None


@dataclass(frozen=True, slots=True)
class SiteRule:
    """One line of ``sites`` or ``hides`` (which has ``hides`` and no site)."""

    site: str
    priority: int
    file: Pattern | None
    function: Pattern | None
    source: regex.Pattern[str] | None
    owner: frozenset[str]
    within: int
    hides: frozenset[str]


@dataclass(frozen=True, slots=True)
class Hint:
    """One line of ``messages``."""

    site: str
    priority: int
    type: regex.Pattern[str] | None
    match: regex.Pattern[str] | None


@dataclass(frozen=True, slots=True)
class Table:
    sites: tuple[SiteRule, ...]
    messages: tuple[Hint, ...]
    packages: Mapping[str, str]
    checkouts: tuple[tuple[str, Pattern], ...]
    launcher: Pattern


@lru_cache(maxsize=1)
def load_table() -> Table:
    """The table. Raises RuleError where the file is broken."""
    import yaml  # a log without exceptions does without it

    path = rules_dir() / _NAME
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except (OSError, yaml.YAMLError) as error:
        raise RuleError(str(path), None, f"cannot be read: {error}") from error
    _check(str(path), data)
    try:
        return _build(data)
    except (KeyError, TypeError, ValueError, AttributeError, re.error, regex.error) as error:
        raise RuleError(str(path), None, f"an entry is broken: {error!r}") from error


def _build(data: Mapping[str, Any]) -> Table:
    hides = tuple(_rule({**row, "site": "", "priority": 0}) for row in data["hides"])
    return Table(
        sites=hides + tuple(_rule(row) for row in data["sites"]),
        messages=tuple(Hint(row["site"], row["priority"], _search(row.get("type")), _search(row.get("match"))) for row in data["messages"]),
        packages={name: row["owner"] for row in data["owners"] for name in row.get("packages", ())},
        checkouts=tuple((row["owner"], Pattern(row["checkouts"], paths=True)) for row in data["owners"]),
        launcher=Pattern(data["owners"][0]["checkouts"], paths=True),
    )


def _check(path: str, data: Any) -> None:
    if not isinstance(data, Mapping) or set(data) != set(_KEYS):
        raise RuleError(path, None, f"must have the keys {', '.join(_KEYS)}")
    for part, keys in _KEYS.items():
        for number, row in enumerate(data[part], 1):
            unknown = set(row) - keys
            if unknown:
                raise RuleError(path, None, f"{part}, entry {number}: unknown key {sorted(unknown)[0]!r}")
            if row.get("site", SITES[0]) not in SITES:
                raise RuleError(path, None, f"{part}, entry {number}: unknown site {row['site']!r}")
    if data["owners"][0]["owner"] != "launcher":
        raise RuleError(path, None, "owners: the launcher must stand first, as its files lie in other packages")


def _rule(row: Mapping[str, Any]) -> SiteRule:
    return SiteRule(
        site=row["site"],
        priority=int(row["priority"]),
        file=Pattern(row["file"], paths=True) if "file" in row else None,
        function=Pattern(row["function"], paths=False) if "function" in row else None,
        source=_search(row.get("source")),
        owner=frozenset(row.get("owner", ())),
        within=int(row.get("within", 0)),
        hides=frozenset(row.get("hides", ())),
    )


def _search(pattern: str | None) -> regex.Pattern[str] | None:
    return None if pattern is None else regex.compile(pattern)


def _translate(glob: str) -> str:
    """``**/`` any folders, ``**`` anything, ``*`` within a name, ``{a,b}`` alternatives."""
    result, depth, at = "", 0, 0
    while at < len(glob):
        if glob.startswith("**/", at):
            result, at = result + "(?:[^/]+/)*", at + 3
            continue
        if glob.startswith("**", at):
            result, at = result + ".*", at + 2
            continue
        character = glob[at]
        at += 1
        if character == "*":
            result += "[^/]*"
        elif character == "{":
            result, depth = result + "(?:", depth + 1
        elif character == "}" and depth:
            result, depth = result + ")", depth - 1
        elif character == "," and depth:
            result += "|"
        else:
            result += re.escape(character)
    return result
