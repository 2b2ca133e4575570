"""All step lines of a run as a file for other programs: CSV, or JSON with one list a column."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from memdoctor.errors import InputError

ENDINGS = (".csv", ".json")
PIECE = 5_000  # lines that are made into text at a time


class Rows(Protocol):
    """What is written: rows of values in the order of ``names``; None is unknown."""

    names: tuple[str, ...]

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...
    def column(self, name: str, /) -> Iterator[Any]: ...


def check(path: str) -> None:
    """Refuse an ending that names no form that is known here. Raises InputError."""
    if not path.lower().endswith(ENDINGS):
        raise InputError(f"--series {path}: the ending tells the form; use {' or '.join(ENDINGS)}")


def render(rows: Rows, path: str) -> Iterator[str]:
    """The text of the file that ``path`` asks for by its ending, in pieces: a run of millions of steps is never held as text.

    In CSV unknown is empty and NaN ``nan``; in JSON both are null.
    """
    return _json(rows) if path.lower().endswith(".json") else _csv(rows)


def _csv(rows: Rows) -> Iterator[str]:
    each = iter(rows)
    piece: Sequence[Sequence[Any]] = [rows.names]
    while piece:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(piece)
        yield text.getvalue()
        piece = list(islice(each, PIECE))


def _json(rows: Rows) -> Iterator[str]:
    before = "{"
    for name in rows.names:
        yield f"{before}{json.dumps(name)}: ["
        before = ",\n "
        values, comma = iter(rows.column(name)), ""
        while piece := [None if isinstance(value, float) and not math.isfinite(value) else value for value in islice(values, PIECE)]:
            yield comma + json.dumps(piece, allow_nan=False, ensure_ascii=False, separators=(",", ":"))[1:-1]
            comma = ","
        yield "]"
    yield "}\n" if rows.names else "{}\n"
