"""What an exception complains of, in the words that libraries use: rules/tables/complaints.yaml, read only when one was raised."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from memdoctor.errors import RuleError
from memdoctor.lazy import lazy
from memdoctor.records import record
from memdoctor.resources import rules_path
from memdoctor.sources.logs.tracebacks.raised import Frame
from memdoctor.tables import read

_NAME = ("tables", "complaints.yaml")
_KEYS = {"libraries", "reads", "complaints"}
_TOLD = ("", "anywhere", "options")
_ROW = {"says", "told", "has", "match", "and", "unless"}
_SECOND_HAND = (
    "CalledProcessError",
    "ChildFailedError",
    "ProcessRaisedException",
    "ProcessExitedException",
    "SystemExit",
    "KeyboardInterrupt",
)
_BEGINNING = 600  # characters: what a message is about it says first
_SPACES = lazy(r"\s+")
_BETWEEN = lazy(r"^<|/python3?\.?\d{0,3}/(?!.*(?:site|dist)-packages/)|/pydantic\w*/")  # what stands between a check and its exception


@record
class Complaint:
    """One row of the table."""

    says: str
    told: str
    has: tuple[str, ...]
    match: re.Pattern[str]
    also: re.Pattern[str] | None
    unless: re.Pattern[str] | None

    def fits(self, text: str) -> bool:
        return (
            any(part in text for part in self.has)
            and (self.also is None or self.also.search(text) is not None)
            and self.match.search(text) is not None
            and (self.unless is None or self.unless.search(text) is None)
        )


@record
class Table:
    """The table; ``libraries`` fits paths of libraries, ``reads`` those of their files that do something else than check options."""

    rows: tuple[Complaint, ...]
    libraries: re.Pattern[str]
    reads: re.Pattern[str]


def complaint_of(type_: str, message: str, frames: Sequence[Frame]) -> str | None:
    """The word for what an exception complains of, or None. ``frames``: the outermost first."""
    if type_.endswith(_SECOND_HAND):
        return None
    text = _SPACES.sub(" ", message[: 2 * _BEGINNING]).strip().lower()[:_BEGINNING]
    file = next((frame.file for frame in reversed(frames) if not _BETWEEN.search(frame.file)), "")
    return _complaint(text, file)


@lru_cache(maxsize=1_024)
def _complaint(text: str, file: str) -> str | None:
    table = load_table()
    path = "/" + file.replace("\\", "/")
    library = not file or table.libraries.search(path) is not None
    told = _TOLD[: 1 if not library else 2 if table.reads.search(path) is not None else 3]
    return next((row.says for row in table.rows if row.told in told and row.fits(text)), None)


@lru_cache(maxsize=1)
def load_table() -> Table:
    path = rules_path(*_NAME)
    data = read(path)
    if not isinstance(data, Mapping) or set(data) != _KEYS:
        raise RuleError(path, None, f"must have the keys {', '.join(sorted(_KEYS))}")
    for number, row in enumerate(data["complaints"], 1):
        unknown = set(row) - _ROW
        if unknown:
            raise RuleError(path, None, f"complaints, entry {number}: unknown key {sorted(unknown)[0]!r}")
        if row.get("told", "") not in _TOLD:
            raise RuleError(path, None, f"complaints, entry {number}: told is one of {', '.join(_TOLD[1:])}")
    try:
        names = "|".join(re.escape(name) for name in data["libraries"])
        return Table(tuple(_row(row) for row in data["complaints"]), lazy(f"/(?:{names})(?:/|$)"), lazy(data["reads"]))
    except (KeyError, TypeError) as error:
        raise RuleError(path, None, f"an entry is broken: {error!r}") from error


def _row(row: Mapping[str, Any]) -> Complaint:
    also, unless = row.get("and"), row.get("unless")
    return Complaint(
        says=row["says"],
        told=row.get("told", ""),
        has=tuple(row["has"]),
        match=_any(row["match"]),
        also=_any(also) if also else None,
        unless=_any(unless) if unless else None,
    )


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return lazy("|".join(patterns))
