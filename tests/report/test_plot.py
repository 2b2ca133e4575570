"""Curves as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.report.plot import chart


def show(value: float) -> str:
    return f"{value:.3g}"


def test_a_straight_line() -> None:
    lines = chart([(float(i), float(i)) for i in range(100)], width=40, height=5, show=show, braille=False)
    assert lines[0].startswith("99 |")
    assert lines[4].startswith(" 0 |*")
    assert lines[0].rstrip().endswith("*")
    assert lines[5].endswith("iteration 99")
    assert lines[5].startswith("   +0")


def test_braille_stays_within_its_signs() -> None:
    lines = chart([(float(i), math.sin(i / 9)) for i in range(300)], width=60, height=6, show=show, braille=True)
    curve = "".join(line.partition("|")[2] for line in lines[:6])
    assert curve.strip()
    assert all(sign == " " or 0x2800 < ord(sign) <= 0x28FF for sign in curve)
    assert max(map(len, lines)) <= 62


def test_a_wide_range_is_logarithmic() -> None:
    lines = chart([(float(i), 1.0 if i < 90 else 10.0 ** (i - 88)) for i in range(100)], width=60, height=6, show=show, braille=False)
    assert lines[-1].endswith("(log)")


def test_the_mark_points_at_its_iteration() -> None:
    lines = chart([(float(i), float(i % 7)) for i in range(100)], width=60, height=4, show=show, braille=False, mark=50.0)
    assert lines[-1].strip() == "^ 50"
    assert chart([(0.0, 1.0), (1.0, 2.0)], width=60, height=4, show=show, braille=False, mark=7.0)[-1].endswith("iteration 1")


def test_gaps_stay_empty_and_too_little_is_nothing() -> None:
    assert chart([(0.0, 1.0), (1.0, None), (2.0, math.nan)], width=60, height=4, show=show, braille=False) == []
    assert chart([], width=60, height=4, show=show, braille=False) == []
    gap = [(float(i), None if 30 <= i < 70 else 1.0 + i % 2) for i in range(100)]
    rows = chart(gap, width=104, height=2, show=show, braille=False)
    assert rows[0].partition("|")[2][35:65].strip() == ""


@given(
    st.lists(st.tuples(st.floats(0, 1e9), st.none() | st.floats(allow_nan=True)), max_size=60).map(
        lambda points: sorted(points, key=lambda each: each[0])
    ),
    st.integers(0, 200),
    st.booleans(),
)
def test_no_points_break_it(points: list[tuple[float, float | None]], width: int, braille: bool) -> None:
    for line in chart(points, width=width, height=4, show=lambda value: f"{value:.3g}", braille=braille, mark=5.0):
        assert line.isprintable()


def test_values_whose_difference_no_float_holds() -> None:
    rows = chart([(0.0, 1.7e308), (10.0, -1.7e308)], width=40, height=4, show=show, braille=False)
    assert len(rows) == 5
    assert rows[0].partition("|")[2].strip()
    assert rows[3].partition("|")[2].strip()


@pytest.mark.parametrize("value", [5.0, 0.0, -3.0])
def test_a_level_line(value: float) -> None:
    assert len(chart([(0.0, value), (10.0, value)], width=40, height=4, show=show, braille=True)) == 5
