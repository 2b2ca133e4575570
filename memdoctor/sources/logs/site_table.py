"""rules/tables/sites.yaml, read once and only when an exception was found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from memdoctor.catalog import SITES
from memdoctor.errors import RuleError
from memdoctor.lazy import lazy
from memdoctor.records import record
from memdoctor.resources import rules_path
from memdoctor.tables import read

_NAME = ("tables", "sites.yaml")
_VARIABLE = lazy(r"\{[^}]*\}|\*+/?|[{}]")  # parts of a glob that stand for different texts
_KEYS = {
    "owners": {"owner", "packages", "checkouts"},
    "sites": {"site", "priority", "file", "function", "source", "owner", "within"},
    "hides": {"file", "function", "hides"},
    "messages": {"site", "priority", "match", "type", "owner"},
}


class Pattern:
    """Globs; ``fits`` asks whether one of them matches the whole text, or of a path the last parts.

    Nearly all are plain: they are compared. One with signs is compiled when a text first holds what it needs.
    """

    __slots__ = ("_begins", "_plain", "_wild")

    def __init__(self, globs: Sequence[str], *, paths: bool) -> None:
        globs = [glob.removeprefix("**/") for glob in globs] if paths else globs
        self._begins = "/" if paths else ""
        self._plain = tuple(self._begins + glob for glob in globs if _is_plain(glob))
        self._wild: list[tuple[str, str | re.Pattern[str]]] = [
            (max(_VARIABLE.split(glob), key=len), glob) for glob in globs if not _is_plain(glob)
        ]

    def fits(self, text: str) -> bool:
        if (self._begins + text).endswith(self._plain) if self._begins else text in self._plain:
            return True
        for place, (need, _) in enumerate(self._wild):  # noqa: SIM110 - asked a thousand times for each exception
            if need in text and self._matches(place, text):
                return True
        return False

    def _matches(self, place: int, text: str) -> bool:
        need, pattern = self._wild[place]
        if isinstance(pattern, str):
            pattern = re.compile(f"{'(?:^|.*/)' if self._begins else '^'}{_translate(pattern)}$")
            self._wild[place] = need, pattern
        return pattern.match(text) is not None


def _is_plain(glob: str) -> bool:
    return "*" not in glob and "{" not in glob


@record
class SiteRule:
    """One line of ``sites`` or ``hides`` (which has ``hides`` and no site)."""

    site: str
    priority: int
    file: Pattern | None
    function: Pattern | None
    source: str | None
    owner: frozenset[str]
    within: int
    hides: frozenset[str]


@record
class Hint:
    """One line of ``messages``."""

    site: str
    priority: int
    type: str | None
    match: str | None
    owner: str


@record
class Table:
    sites: tuple[SiteRule, ...]
    messages: tuple[Hint, ...]
    packages: Mapping[str, str]
    checkouts: tuple[tuple[str, Pattern], ...]
    launcher: Pattern


@lru_cache(maxsize=1)
def load_table() -> Table:
    """The table. Raises RuleError where the file is broken."""
    path = rules_path(*_NAME)
    data = read(path)
    _check(path, data)
    try:
        return _build(data)
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise RuleError(path, None, f"an entry is broken: {error!r}") from error


def _build(data: Mapping[str, Any]) -> Table:
    hides = tuple(_rule({**row, "site": "", "priority": 0}) for row in data["hides"])
    return Table(
        sites=hides + tuple(_rule(row) for row in data["sites"]),
        messages=tuple(
            Hint(row["site"], row["priority"], row.get("type"), row.get("match"), row.get("owner", "")) for row in data["messages"]
        ),
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
        source=row.get("source"),
        owner=frozenset(row.get("owner", ())),
        within=int(row.get("within", 0)),
        hides=frozenset(row.get("hides", ())),
    )


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
