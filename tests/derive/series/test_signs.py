"""What showed a divergence first, and losses that are none: a mean over skipped steps, a bar that is drawn again."""

from __future__ import annotations

import math
from typing import Any

import pytest

from memdoctor.derive.numerics import numerics
from memdoctor.derive.series import tell_series
from memdoctor.derive.series.loss import divergence, losses_of
from memdoctor.derive.series.naming import name_of_beat
from memdoctor.derive.series.pace import beat, pace_of
from memdoctor.model import Fact, Origin
from tests.derive.series.test_findings import GIB, near, rows, steps, whole


def climb(place: int) -> float:
    return near(2.0) * (1 + max(0, place - 120) / 20)


def sign(**columns: Any) -> tuple[str | None, float | None]:
    found = divergence(losses_of(whole(rows(160, 10, loss=climb, **columns))))
    assert found is not None
    assert abs(found.onset - 1210) <= 30
    return found.signs.first, found.signs.onset


def test_a_norm_that_climbs_slowly_is_dated_where_it_begins() -> None:
    first, since = sign(grad_norm=lambda place: near(0.5, 0.1) * (1 + max(0, place - 100) / 4))
    assert first == "gradient norm rose"
    assert since is not None
    assert abs(since - 1010) <= 30


def test_a_learning_rate_that_leaps_is_the_cause_where_the_norm_rises_too() -> None:
    first, since = sign(grad_norm=lambda place: near(0.5, 0.1) * (1 + max(0, place - 118)), lr=lambda place: 1e-3 if place >= 117 else 1e-4)
    assert (first, since) == ("learning rate rose", 1180)


def test_a_loss_scale_that_falls_again_and_again() -> None:
    assert sign(scale=lambda place: 65536 / 2 ** max(0, min(5, (place - 104) // 3))) == ("loss scale fell", 1080)
    assert sign(scale=lambda place: 65536 if place < 110 else 32768) == (None, None), "once is nothing"
    assert sign(scale=65536.0) == (None, None)


def test_the_search_for_a_scale_is_no_sign() -> None:
    """A run that diverges right after its start."""
    table = rows(
        60, loss=lambda place: near(2.0) * (1 + max(0, place - 20) / 10), scale=lambda place: 65536 / 2 ** min(place, 12),
        skipped=lambda place: float(place < 13),
    )  # fmt: skip
    found = divergence(losses_of(whole(table)))
    assert found is not None
    assert found.signs.first is None


def test_a_loss_of_0_in_lines_of_skipped_steps_is_none() -> None:
    def skipped(place: int) -> float:
        return float(place % 40 == 39)

    table = rows(160, 10, loss=lambda place: 0.0 if skipped(place) else climb(place), skipped=skipped, grad_norm=1.0)
    found = divergence(losses_of(whole(table)))
    assert found is not None
    assert abs(found.onset - 1210) <= 30
    fact = numerics(1, steps(table), finished=False)
    assert fact.fields["zero_loss_steps"] == 0
    assert fact.fields["min_loss"] > 1.5


def test_a_bar_that_is_drawn_again_is_one_step_and_a_resume_is_not() -> None:
    again = steps([{"iteration": 10.0, "loss": 2.0}, {"iteration": 10.0, "loss": 2.0}, {"iteration": 10.0, "loss": 3.0}], "bar")
    assert list(again.column("loss")) == [2.0, 3.0]


def test_experts_that_are_uneven_all_the_time() -> None:
    (fact,) = tell_series({1: [steps(rows(100, loss=lambda place: near(2.0), aux=lambda place: near(4.0)))]}, []).facts
    assert (fact.kind, fact.fields["name"]) == ("series.experts", "level")
    two_each = rows(100, loss=lambda place: near(2.0), aux=lambda place: near(2.05 + math.exp(-place / 10)))
    assert tell_series({1: [steps(two_each)]}, []).facts == []


def test_what_a_machine_holds_in_all_is_told_by_its_share() -> None:
    table = steps(rows(60, 10, loss=lambda place: near(2.0)))
    for line in range(1, 61):
        text = b"CPU Virtual Memory:  used = %.2f GB, percent = %.1f%%" % (50 + 3 * line, (50 + 3 * line) / 5.12)
        assert table.series.beside.read(text, line, lambda text: math.nan, lambda: b"")
    (fact,) = tell_series({1: [table]}, []).facts
    assert fact.fields["name"] == "host"
    assert fact.fields["capacity"] == pytest.approx(512 * GIB, rel=0.01)
    assert fact.fields["full_iteration"] == pytest.approx(1540, abs=30)


def test_a_beat_of_which_two_things_are_told() -> None:
    segment = whole(rows(400, ms=lambda place: near(1000) + (9000 if place % 50 == 49 else 0)))
    pace = pace_of(segment)
    assert pace is not None
    found = beat(pace)
    assert found is not None
    phases = [
        Fact("run.phase", {"name": name, "iteration": 50 * number}, Origin("log"))
        for number in range(1, 5)
        for name in ("evaluation", "save")
    ]
    assert name_of_beat(found, segment, phases) == "evaluation and checkpoint"


def test_a_slow_step_by_chance_does_not_hide_a_beat() -> None:
    pace = pace_of(whole(rows(80, ms=lambda place: near(1000) + (9000 if place % 20 == 19 or place == 22 else 0))))
    assert pace is not None
    found = beat(pace)
    assert found is not None
    assert found.period == 20
