"""All step lines of a run as a file for other programs: CSV, or JSON with one list a column."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from memdoctor.errors import InputError

ENDINGS = (".csv", ".json")


class Rows(Protocol):
    """What is written: rows of values in the order of ``names``; None is unknown."""

    names: tuple[str, ...]

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...


def check(path: str) -> None:
    """Refuse an ending that names no form that is known here. Raises InputError."""
    if not path.lower().endswith(ENDINGS):
        raise InputError(f"--series {path}: the ending tells the form; use {' or '.join(ENDINGS)}")


def render(rows: Rows, path: str) -> str:
    """The text of the file that ``path`` asks for by its ending. In CSV unknown is empty and NaN ``nan``; in JSON both are null."""
    return _json(rows) if path.lower().endswith(".json") else _csv(rows)


def _csv(rows: Rows) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows.names)
    writer.writerows(rows)
    return text.getvalue()


def _json(rows: Rows) -> str:
    columns: list[list[Any]] = [[] for _ in rows.names]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(None if isinstance(value, float) and not math.isfinite(value) else value)
    parts = (f"{json.dumps(name)}: {_list(column)}" for name, column in zip(rows.names, columns, strict=True))
    return "{" + ",\n ".join(parts) + "}\n"


def _list(values: Sequence[Any]) -> str:
    return json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
