"""Robust statistics against plain references, and the finding of rises and spikes."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.derive.series.levels import MOST, rise_to_the_end
from memdoctor.derive.series.robust import best_hinge, best_kink, best_step, blocks, line, median, noise, running_median, spread
from memdoctor.derive.series.spikes import spikes

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)


@given(NUMBERS)
def test_median(values: list[float]) -> None:
    assert median(values) == pytest.approx(statistics.median(values))


@given(NUMBERS, st.sampled_from([1, 3, 5, 9]))
def test_running_median_is_that_of_each_window(values: list[float], width: int) -> None:
    half = width // 2
    expected = [statistics.median(values[max(0, place - half) : place + half + 1]) for place in range(len(values))]
    assert running_median(values, width) == pytest.approx(expected)


@given(st.integers(0, 500), st.integers(1, 50))
def test_blocks_cover_all_once(count: int, most: int) -> None:
    cut = blocks(count, most)
    assert len(cut) <= most
    assert [place for first, last in cut for place in range(first, last)] == list(range(count))


def test_noise_is_not_moved_by_wild_values() -> None:
    rng = random.Random(1)
    values = [10 + 0.01 * place + rng.gauss(0, 0.5) for place in range(400)]
    assert noise(values) == pytest.approx(0.5, rel=0.2)
    values[100:110] = [1e9] * 10
    assert noise(values) == pytest.approx(0.5, rel=0.2)
    assert spread([1.0] * 5) == 0
    assert noise([1.0]) == 0


@given(NUMBERS)
def test_best_step_is_the_best_of_all_cuts(values: list[float]) -> None:
    found = best_step(values)
    if len(values) < 4:
        assert found is None
        return
    errors = [
        sum((value - statistics.fmean(part)) ** 2 for part in (values[:cut], values[cut:]) for value in part)
        for cut in range(2, len(values) - 1)
    ]
    assert found is not None
    assert found.error == pytest.approx(min(errors), rel=1e-3, abs=1e-2 * (1 + max(map(abs, values))) ** 2 * 1e-6)


def test_best_hinge_finds_where_a_rise_begins() -> None:
    times = [float(place) for place in range(100)]
    values = [5.0 + max(0.0, time - 40) * 0.25 for time in times]
    found = best_hinge(times, values, 5.0)
    assert found is not None
    assert abs(found.place - 40) <= 1
    assert found.after == pytest.approx(0.25, rel=0.02)
    assert best_hinge(times[:2], values[:2], 5.0) is None


def test_best_kink_finds_where_a_fall_turns() -> None:
    times = [1000.0 + 10 * place for place in range(120)]
    values = [9.0 - 0.02 * place + 0.07 * max(0, place - 50) for place in range(120)]
    found = best_kink(times, values)
    assert found is not None
    assert abs(found.place - 50) <= 1
    assert (found.before, found.after) == pytest.approx((-0.002, 0.005), rel=0.02)
    assert best_kink(times[:5], values[:5]) is None
    assert best_kink([3.0] * 20, values[:20]) is None


def test_line() -> None:
    start, slope, left = line([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])
    assert (start, slope, left) == pytest.approx((1.0, 2.0, 0.0))


# --- rises -------------------------------------------------------------------------------------------------------------


def noisy(values: list[float], sigma: float = 0.02, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [value * math.exp(sigma * rng.gauss(0, 1)) for value in values]


def times(count: int, interval: int = 1) -> list[float]:
    return [float((place + 1) * interval) for place in range(count)]


def test_a_leap_that_stays() -> None:
    values = noisy([2.0] * 120 + [3.2] * 80)
    found = rise_to_the_end(times(200, 10), values, ratio=0.2)
    assert found is not None
    assert found.place == 120
    assert abs(found.onset - 1201) <= 10
    assert found.ramp == 0
    assert found.before == pytest.approx(2.0, rel=0.05)


def test_a_ramp() -> None:
    values = noisy([2.0] * 100 + [2.0 + 0.05 * step for step in range(60)] + [5.0] * 40)
    found = rise_to_the_end(times(200), values, ratio=0.2)
    assert found is not None
    assert abs(found.onset - 101) <= 6
    assert found.ramp > 30


def test_a_long_ramp_out_of_a_falling_curve() -> None:
    base = [2.0 + 6.0 / (1 + place / 10) for place in range(300)]
    values = noisy([value * (1 + max(0, place - 120) / 180) for place, value in enumerate(base)])
    found = rise_to_the_end(times(300), values, ratio=0.15)
    assert found is not None
    assert abs(found.onset - 121) <= 18


def test_a_rise_that_comes_back_is_none() -> None:
    assert rise_to_the_end(times(200), noisy([2.0] * 80 + [4.0] * 40 + [2.0] * 80), ratio=0.2) is None


def test_falling_flat_and_noisy_values_do_not_rise() -> None:
    falling = [2.0 + 8 / (1 + place / 5) for place in range(300)]
    assert rise_to_the_end(times(300), noisy(falling), ratio=0.2) is None
    assert rise_to_the_end(times(300), noisy([2.0] * 300, sigma=0.3), ratio=0.2) is None
    assert rise_to_the_end(times(3), [1.0, 2.0, 3.0], ratio=0.2) is None


def test_very_many_values_are_dated_to_the_line() -> None:
    count = 20 * MOST
    at = count * 2 // 3 + 123
    values = noisy([2.0] * at + [3.5] * (count - at), sigma=0.05)
    found = rise_to_the_end(times(count), values, ratio=0.2)
    assert found is not None
    assert abs(found.onset - (at + 1)) <= 2


# --- spikes ------------------------------------------------------------------------------------------------------------


def test_a_spike() -> None:
    values = noisy([2.0] * 200)
    values[100:104] = [3.5, 3.8, 3.0, 2.6]
    (found,) = spikes(values)
    assert found.place == 100
    assert found.peak == 3.8
    assert 2 <= found.length <= 5


def test_no_spike_in_noise_or_where_it_stays_up() -> None:
    assert spikes(noisy([2.0] * 500, sigma=0.1)) == []
    assert spikes(noisy([2.0] * 100 + [4.0] * 100)) == []
    assert spikes([1.0, 2.0]) == []


def test_spikes_among_very_many_values() -> None:
    values = noisy([2.0] * (5 * MOST), sigma=0.05)
    for place in (7_000, 21_000):
        values[place : place + 3] = [6.0, 5.0, 4.0]
    assert [found.place for found in spikes(values)] == [7_000, 21_000]


def test_a_few_steps_that_rise_evenly_prove_nothing() -> None:
    """The differences between them are all that is known of their noise."""
    losses = [2.0 + step / 10 for step in range(1, 9)]
    assert rise_to_the_end(list(range(8)), losses, ratio=1.2) is None
