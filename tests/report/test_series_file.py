"""Step lines as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from memdoctor.errors import InputError
from memdoctor.report import series_file


class Two:
    names: tuple[str, ...] = ("attempt", "iteration", "time", "loss")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield (1, 10, "2026-03-01T09:00:00", 2.5)
        yield (1, 20, None, math.nan)

    def column(self, name: str, /) -> Iterator[Any]:
        return (row[self.names.index(name)] for row in self)


def test_csv() -> None:
    read = list(csv.DictReader(io.StringIO("".join(series_file.render(Two(), "a.CSV")))))
    assert read == [
        {"attempt": "1", "iteration": "10", "time": "2026-03-01T09:00:00", "loss": "2.5"},
        {"attempt": "1", "iteration": "20", "time": "", "loss": "nan"},
    ]


def test_json() -> None:
    assert json.loads("".join(series_file.render(Two(), "a.json"))) == {
        "attempt": [1, 1],
        "iteration": [10, 20],
        "time": ["2026-03-01T09:00:00", None],
        "loss": [2.5, None],
    }


def test_another_ending_is_refused() -> None:
    series_file.check("a.csv")
    with pytest.raises(InputError, match=r"\.csv or \.json"):
        series_file.check("a.parquet")
