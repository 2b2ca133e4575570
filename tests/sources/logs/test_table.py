"""Tables of numbers: rows in, columns out, and how little memory they take."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.packed import NAN, Packed
from memdoctor.sources.logs.table import BATCH, Table

COLUMNS = {"a": "d", "b": "d", "c": "d"}


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(width=32) | st.sampled_from([0.0, 1.0]), max_size=3), max_size=50))
def test_what_goes_in_comes_out(rows: list[dict[str, float]]) -> None:
    table = Table(COLUMNS)
    for number, row in enumerate(rows):
        table.add(number, NAN, row)
    assert len(table) == len(rows)
    for name in COLUMNS:
        column = table.column(name).slice(0, len(rows))
        for number, row in enumerate(rows):
            assert table.is_absent(number, name) is (name not in row)
            assert column[number] == pytest.approx(row.get(name, NAN), nan_ok=True)
    assert set(table.spoken) == {name for row in rows for name in row}


def test_a_constant_takes_no_memory_until_it_changes() -> None:
    table = Table(COLUMNS)
    for number in range(3 * BATCH):
        table.add(number, NAN, {"a": 1.0, "b": float(number)})
    table.pack()
    assert table.column("a").data is None
    assert table.column("c").data is None
    assert table.column("b").data is not None
    table.add(0, NAN, {"a": 2.0, "b": 0.0})
    assert table.column("a")[-1] == 2.0
    assert table.column("a")[0] == 1.0


def test_the_latest_value() -> None:
    table = Table(COLUMNS)
    assert math.isnan(table.latest("a"))
    table.add(1, NAN, {"a": 3.0})
    assert table.latest("a") == 3.0
    table.pack()
    assert table.latest("a") == 3.0
    table.add(2, NAN, {"b": 3.0})
    assert math.isnan(table.latest("a"))


def test_every_second_row_is_left_of_a_table_that_is_halved() -> None:
    table = Table(COLUMNS)
    for number in range(7):
        table.add(number, float(number), {"a": float(number), "b": 1.0})
    table.halve()
    assert len(table) == 4
    assert list(table.column("a").slice(0, 4)) == [0, 2, 4, 6]
    assert list(table.column("b").slice(0, 4)) == [1, 1, 1, 1]
    assert list(table.line.slice(0, 4)) == [0, 2, 4, 6]


def test_a_place_outside_is_an_error() -> None:
    packed = Packed("d", 1.0, 3)
    assert packed[2] == 1.0
    with pytest.raises(IndexError):
        packed[3]


def test_a_line_beyond_four_bytes_is_cut() -> None:
    table = Table(COLUMNS)
    table.add(2**40, NAN, {"a": 1.0})
    table.pack()
    assert table.line[0] == 2**32 - 1


def test_whole_numbers_are_exact_however_great() -> None:
    packed = Packed("i")
    packed.extend([1.0, 2.0, 2.0**24])
    assert packed.data is not None
    assert packed.data.itemsize == 4
    packed.extend([2.0**24 + 1, 10.0**12 + 1])
    packed.fill(7.0, 2)
    assert list(packed.slice(0, 7)) == [1, 2, 2**24, 2**24 + 1, 10**12 + 1, 7, 7]
    alone = Packed("i")
    alone.fill(10.0**12 + 1, 2)
    assert list(alone.slice(0, 2)) == [10**12 + 1] * 2
