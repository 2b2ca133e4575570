"""Kinds of evidence, the best first: the table rules/tables/tiers.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from memdoctor.engine.globs import fits
from memdoctor.errors import RuleError
from memdoctor.records import record
from memdoctor.resources import rules_path
from memdoctor.tables import read

CONDITION = "condition"  # the tier of what a run outlives


@record
class Tiers:
    """The table as read. ``names`` and ``causes`` (ids and globs) go tier by tier; the other fields are the lists of the same name."""

    names: tuple[str, ...]
    causes: tuple[tuple[str, ...], ...]
    weak: tuple[str, ...] = ()
    residual: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    aborts: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()

    def of(self, cause: str) -> int:
        """The tier of a cause, 0 the best; an id by itself beats a glob. A cause that the table does not know stands with the conditions."""
        for number, causes in enumerate(self.causes):
            if cause in causes:
                return number
        for number, causes in enumerate(self.causes):
            if matches(cause, causes):
                return number
        return self.condition

    @property
    def condition(self) -> int:
        return self.names.index(CONDITION)

    def weakness(self, cause: str) -> int:
        """0 for a cause proper; the higher, the weaker."""
        return self.weak.index(cause) + 1 if cause in self.weak else 0


def matches(cause: str, globs: Sequence[str]) -> bool:
    """True where ``cause`` is one of ``globs`` or fits one of them."""
    return any(fits(cause, glob) for glob in globs)


@cache
def load_tiers(path: str | None = None) -> Tiers:
    """The built-in table, or the one at ``path``. Raises RuleError where it is no such table."""
    path = path or rules_path("tables", "tiers.yaml")
    try:
        table: Any = read(path, texts=True)
        tiers = Tiers(
            tuple(tier["name"] for tier in table["tiers"]),
            tuple(tuple(tier["causes"]) for tier in table["tiers"]),
            **{name: tuple(table.get(name, ())) for name in ("weak", "residual", "ends", "aborts", "states", "harmless", "silent")},
        )
        if CONDITION not in tiers.names:
            raise KeyError(CONDITION)
    except (RuleError, LookupError, TypeError, AttributeError) as error:
        raise RuleError(
            path, None, f"not a table of tiers: {type(error).__name__}: {error}", "take the one that came with memdoctor"
        ) from error
    return tiers
