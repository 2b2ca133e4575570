"""Findings in single series: pace, memory, segments, resumes, plateaus, collapse, and the rows that go into files."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memdoctor.derive.series import tell_series
from memdoctor.derive.series.collapse import collapse
from memdoctor.derive.series.growth import CARDS, growth
from memdoctor.derive.series.loss import losses_of, plateau
from memdoctor.derive.series.naming import name_of_beat
from memdoctor.derive.series.pace import beat, pace_of, slowdown
from memdoctor.derive.series.resume import jump
from memdoctor.derive.series.segments import Segment, segments_of
from memdoctor.derive.steps import Steps
from memdoctor.model import Fact, FileRead, Origin
from memdoctor.sources.logs.steps import Series

GIB = 1024**3
RNG = random.Random(5)


def steps(rows: Sequence[Mapping[str, float]], shape: str = "megatron", file: int = 0, rank: int | None = None) -> Steps:
    series = Series("train.log")
    for number, row in enumerate(rows, 1):
        series.add(shape, dict(row), number << 8, number, b"line %d" % number, lambda minute: None)
    return Steps(FileRead("train.log", file, rank, None, None, None, 1, len(rows), False, False, None, frozenset(), series), 0, len(series))


def whole(rows: Sequence[Mapping[str, float]], shape: str = "megatron") -> Segment:
    (segment,) = segments_of(steps(rows, shape))
    return segment


def rows(count: int, interval: int = 1, **columns: Any) -> list[dict[str, float]]:
    """Rows whose columns are numbers, or functions of the place."""
    return [
        {
            "iteration": float((place + 1) * interval),
            **{name: value(place) if callable(value) else value for name, value in columns.items()},
        }
        for place in range(count)
    ]


def near(value: float, sigma: float = 0.01) -> float:
    return value * math.exp(sigma * RNG.gauss(0, 1))


# --- segments -----------------------------------------------------------------------------------------------------------


def test_a_fall_of_the_iteration_begins_a_segment() -> None:
    found = segments_of(steps([*rows(50, loss=2.0), *({"iteration": float(i), "loss": 2.0} for i in range(41, 80))]))
    assert [len(segment) for segment in found] == [50, 39]


def test_epochs_that_count_anew_are_one_segment() -> None:
    epoch = rows(40, 10, loss=lambda place: 2.0 - place / 100)
    (segment,) = segments_of(steps([*epoch, *epoch, *epoch], "print"))
    assert len(segment) == 120
    assert list(segment.times) == sorted(segment.times)
    assert segment.printed(40) == 10


def test_very_many_short_epochs_are_one_segment() -> None:
    """Each is looked at once: with 5,000 of them, what looks at all before it again would take minutes."""
    epoch = [{"iteration": float(number), "loss": 2.0} for number in range(1, 9)]
    (segment,) = segments_of(steps(epoch * 5_000, "print"))
    assert list(segment.times) == list(range(1, 40_001))


def test_two_short_epochs_are_compared_by_the_lines_of_both() -> None:
    found = segments_of(steps([{"iteration": 1.0, "loss": 2.0}, {"iteration": 2.0, "loss": 2.0}, {"iteration": 1.0, "loss": 9.0}], "print"))
    assert [len(segment) for segment in found] == [2, 1]


def test_epochs_that_count_anew_and_tell_few_of_their_lines_are_counted_through() -> None:
    told = [(epoch, iteration) for count in range(1000, 30000, 1000) for epoch, iteration in [divmod(count, 544)]]
    segment = whole(
        [{"iteration": float(iteration), "in_epoch": epoch + 1.0, "of": 544.0, "loss": 2.0} for epoch, iteration in told], "print"
    )
    assert list(segment.times) == [float(count - 544) for count in range(1000, 30000, 1000)]  # from the first epoch seen
    assert segment.printed(1) == 368


def test_epochs_beside_iterations_that_go_on_change_nothing() -> None:
    segment = whole(
        [{"iteration": place * 100.0, "in_epoch": place // 5 + 1.0, "of": 3000.0, "loss": 2.0} for place in range(1, 30)], "print"
    )
    assert list(segment.times) == [place * 100.0 for place in range(1, 30)]


def test_several_ranks_that_count_each_epoch_anew_are_put_together() -> None:
    crowd = [
        {"iteration": float(i), "in_epoch": float(epoch), "of": 20.0, "loss": 2.0}
        for epoch in (0, 1)
        for i in range(1, 21)
        for _rank in range(3)
    ]
    assert list(whole(crowd, "print").times) == [float(i) for i in range(1, 41)]


def test_a_new_start_with_a_loss_far_above_is_no_epoch() -> None:
    first = rows(40, loss=lambda place: 10 - place / 5)
    assert len(segments_of(steps([*first, *first], "print"))) == 2


def test_lines_of_several_ranks_are_put_together() -> None:
    crowd = [{"iteration": float(i), "loss": 2.0 + rank / 10} for i in range(1, 30) for rank in range(3)]
    segment = whole(crowd, "print")
    assert len(segment) == 29
    assert list(segment.values("loss")) == pytest.approx([2.1] * 29)


# --- pace -----------------------------------------------------------------------------------------------------------------


def test_slower_from_a_step_on() -> None:
    segment = whole(rows(120, 10, ms=lambda place: near(1300 if place >= 80 else 1000)))
    pace = pace_of(segment)
    assert pace is not None
    found = slowdown(pace)
    assert found is not None
    assert found.name == "step"
    assert abs(found.onset - 801) <= 10
    assert found.after / found.before == pytest.approx(1.3, rel=0.03)


def test_a_drift() -> None:
    pace = pace_of(whole(rows(150, ms=lambda place: near(1000 + 6 * max(0, place - 50)))))
    assert pace is not None
    found = slowdown(pace)
    assert found is not None
    assert found.name == "drift"
    assert abs(found.onset - 51) <= 10


@pytest.mark.parametrize(
    "columns",
    [
        {"ms": lambda place: near(1000, 0.05)},
        {"ms": lambda place: 5000 if place % 37 == 0 else near(1000)},
        {"ms": lambda place: near(1000) * (1 if place < 60 else 2), "batch": lambda place: 64 if place < 60 else 128},
        {"ms": lambda place: near(1000) * (1 if place < 60 else 4), "seqlen": lambda place: 1024 if place < 60 else 4096},
        {"ms": lambda place: near(1000) * (0.5 if place < 60 else 1), "skipped": lambda place: 1 if place < 60 else 0},
    ],
)
def test_no_slowdown(columns: dict[str, Any]) -> None:
    pace = pace_of(whole(rows(120, **columns)))
    assert pace is not None
    assert slowdown(pace) is None


def test_throughput_tells_the_pace_where_no_time_is_printed() -> None:
    pace = pace_of(whole(rows(100, tokens=lambda place: near(5000 if place < 70 else 2500)), "print"))
    assert pace is not None
    assert pace.unit == "tokens"
    found = slowdown(pace)
    assert found is not None
    assert found.after / found.before == pytest.approx(2, rel=0.05)


def test_a_beat_of_slow_steps_and_its_name() -> None:
    segment = whole(rows(300, ms=lambda place: near(1000) + (9000 if (place + 1) % 50 == 0 else 0)))
    pace = pace_of(segment)
    assert pace is not None
    assert slowdown(pace) is None
    found = beat(pace)
    assert found is not None
    assert (found.period, found.first) == (50, 50)
    assert found.extra == pytest.approx(9, rel=0.05)
    dump = Fact("run.args", {"name": "megatron-lm", "values": {"eval_interval": "1000", "save_interval": "50"}}, Origin("log"))
    assert name_of_beat(found, segment, [dump]) == "checkpoint"
    phases = [Fact("run.phase", {"name": "evaluation", "iteration": 100 * number}, Origin("log")) for number in (1, 2)]
    assert name_of_beat(found, segment, phases) == "evaluation"
    assert name_of_beat(found, segment, []) == ""


def test_slow_steps_without_a_beat() -> None:
    slow = {13, 57, 58, 101, 163, 222, 259}
    pace = pace_of(whole(rows(300, ms=lambda place: near(1000) + (9000 if place in slow else 0))))
    assert pace is not None
    assert beat(pace) is None


# --- memory ---------------------------------------------------------------------------------------------------------------


def test_growth_and_when_memory_is_full() -> None:
    values = [near(40 * GIB, 0.001) + max(0, place - 20) * 0.1 * GIB for place in range(200)]
    found = growth([float(10 * place) for place in range(200)], values, 80 * GIB)
    assert found is not None
    assert abs(found.onset - 200) <= 100
    assert found.per_step == pytest.approx(0.01 * GIB, rel=0.05)
    assert found.full == pytest.approx(1990 + 22.1 / 0.01, rel=0.03)
    assert not found.assumed
    assert growth([float(place) for place in range(200)], values, None) is not None


def test_the_card_is_guessed_where_nothing_tells() -> None:
    found = growth([float(place) for place in range(100)], [20 * GIB + place * 0.1 * GIB for place in range(100)], None)
    assert found is not None
    assert found.assumed
    assert found.capacity == 32 * GIB in CARDS


def test_the_peak_of_a_step_says_when_a_card_is_full() -> None:
    times, values = [float(place) for place in range(100)], [38 * GIB + place * 0.1 * GIB for place in range(100)]
    peaks = [value + 10 * GIB for value in values]
    found = growth(times, values, None, max(values), peaks, 60 * GIB)
    assert found is not None
    assert found.capacity == 64 * GIB
    assert found.peak == pytest.approx(57.8 * GIB, rel=0.01)
    assert found.full == pytest.approx(99 + (64 - 57.9) / 0.1)
    exact = growth(times, values, 60 * GIB, max(values), peaks, 60 * GIB)
    assert exact is not None
    assert exact.full == pytest.approx(99 + (60 - 57.9) / 0.1)


def test_a_peak_of_long_ago_bounds_the_card_alone() -> None:
    """A load or the first step once took more; the steps that grow now stay below that."""
    values = [38 * GIB + place * 0.1 * GIB for place in range(100)]
    found = growth([float(place) for place in range(100)], values, None, max(values), [70 * GIB] * 100, 70 * GIB)
    assert found is not None
    assert found.peak is None
    assert found.capacity == 80 * GIB
    assert found.full == pytest.approx(99 + (80 - 47.9) / 0.1)


def test_a_card_that_is_in_use_to_the_brim_is_no_larger_one() -> None:
    values = [38 * GIB + place * 0.1 * GIB for place in range(100)]
    found = growth([float(place) for place in range(100)], values, None, max(values), [value + GIB for value in values], 79.2 * GIB)
    assert found is not None
    assert found.capacity == 80 * GIB


@pytest.mark.parametrize(
    "shape",
    [
        lambda place: near(40, 0.02),
        lambda place: 40 + 10 * (1 - math.exp(-place / 15)),  # a cache that fills up
        lambda place: 40 if place < 90 else 48,  # one jump
        lambda place: 60 - 0.1 * place,
    ],
)
def test_no_growth(shape: Any) -> None:
    assert growth([float(place) for place in range(150)], [shape(place) * GIB for place in range(150)], None) is None


# --- losses ---------------------------------------------------------------------------------------------------------------


def test_a_jump_at_a_resume() -> None:
    before, same, far = (
        losses_of(whole(rows(100, loss=lambda place: near(3 - place / 100)))),
        losses_of(whole([{"iteration": 91.0 + place, "loss": near(2.1)} for place in range(40)])),
        losses_of(whole([{"iteration": 91.0 + place, "loss": near(2.1 + 2 * math.exp(-place / 10))} for place in range(60)])),
    )
    assert jump(before, same) is None
    found = jump(before, far)
    assert found is not None
    assert found.onset == 91
    assert found.before == pytest.approx(2.1, rel=0.03)
    assert found.over
    fresh = losses_of(whole(rows(40, loss=lambda place: near(9 - place / 10))))
    assert jump(before, fresh) is None, "from the beginning again"


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"loss": lambda place: near(10.9, 0.003), "lr": 0.0}, "lr_zero"),
        ({"loss": 10.9, "lr": 1e-4}, "constant"),
        ({"loss": lambda place: near(7.4 + 3.5 * math.exp(-place / 5), 0.003), "lr": 1e-4}, "high"),
        ({"loss": lambda place: near(1.9), "lr": 1e-4}, None),
        ({"loss": lambda place: near(1.9), "lr": 0.0}, None),  # printed with too few digits
        ({"loss": lambda place: near(2 + 9 / (1 + place / 3)), "lr": 1e-4}, None),
    ],
)
def test_plateaus(columns: dict[str, Any], name: str | None) -> None:
    found = plateau(losses_of(whole(rows(100, 10, **columns))))
    assert (found.name if found is not None else None) == name


def test_a_collapse_is_told_from_the_search_for_a_scale() -> None:
    search = [{"scale": 2.0 ** max(15, 32 - place), "skipped": float(place < 17), "loss": 5.0} for place in range(60)]
    ends = [*search, *({"scale": 2.0 ** max(0, 15 - place), "skipped": 1.0, "loss": 5.0} for place in range(30))]
    number = [{"iteration": float(place + 1), **row} for place, row in enumerate(ends)]
    assert collapse(whole(number[:60])) is None
    assert collapse(whole(number[:12])) is None
    found = collapse(whole(number))
    assert found is not None
    assert found.onset == 61
    assert (found.before, found.after, found.skipped) == (2.0**15, 1.0, 30)


# --- all together -----------------------------------------------------------------------------------------------------------


def test_rows_and_their_sample() -> None:
    table = rows(2_000, 10, loss=lambda place: 9.0 if place == 777 else near(2.0), ms=1000.0)
    table[1500]["loss"] = math.nan
    told = tell_series({1: [steps(table)]}, [])
    assert told.failed is None
    assert len(told.rows) == 2_000
    assert told.rows.names == ("attempt", "iteration", "loss", "step_time", "line")
    every = list(told.rows)
    assert every[777][:4] == (1, 7780, 9.0, 1.0)
    assert math.isnan(every[1500][2])
    sample = told.rows.sample()
    assert {len(column) for column in sample.values()} == {len(sample["line"])}
    assert 200 <= len(sample["line"]) <= 500
    assert max(value for value in sample["loss"] if value == value) == 9.0
    assert sample["iteration"][0] == 10


def test_files_that_follow_each_other_are_one_run_and_files_of_ranks_are_one_series() -> None:
    first = rows(100, 10, loss=lambda place: near(2.0))
    again = [{"iteration": 910.0 + 10 * place, "loss": near(2.0) + 2 * math.exp(-place / 20)} for place in range(80)]
    told = tell_series({1: [steps(again, file=0), steps(first, file=1)]}, [])
    assert [fact.kind for fact in told.facts] == ["series.resume_jump"]
    assert told.facts[0].fields["iteration"] == 910
    assert len(told.rows) == 180
    ranks = tell_series({1: [steps(first, file=rank, rank=rank) for rank in range(8)]}, [])
    assert ranks.facts == []
    assert len(ranks.rows) == 100


def test_load_on_experts_that_becomes_uneven() -> None:
    even = tell_series({1: [steps(rows(100, loss=lambda place: near(2.0), aux=lambda place: near(1.02)))]}, [])
    assert even.facts == []
    uneven = rows(100, loss=lambda place: near(2.0), aux=lambda place: near(1.02 if place < 50 else 2.4))
    (fact,) = tell_series({1: [steps(uneven)]}, []).facts
    assert fact.kind == "series.experts"
    assert fact.fields["iteration"] == 51
    assert fact.fields["last"] == pytest.approx(2.4, rel=0.02)


def test_what_a_step_waits_for() -> None:
    table = steps(rows(40, 10, loss=lambda place: near(2.0), ms=lambda place: near(1000)))
    for name, low, high in (("batch-generator", 10, 400), ("forward-backward", 900, 950)):
        for line in range(1, 41):
            raw = b"    %s ....: (%d.0, %d.0)" % (name.encode(), low, high)
            assert table.series.beside.read(raw, line, lambda text: math.nan, lambda: b"")
    (fact,) = tell_series({1: [table]}, []).facts
    assert fact.kind == "series.bound"
    assert (fact.fields["name"], fact.fields["timer"]) == ("data", "batch-generator")
    assert fact.fields["share"] == pytest.approx(0.4, rel=0.02)


def test_what_profilers_sum_up() -> None:
    table = steps([{**row, "iteration": row["iteration"]} for row in rows(40, loss=lambda place: near(2.0))])
    summary = b"step latency:    60.0 ms\niter latency:    100.0 ms\n"
    assert table.series.beside.read(b"Profile Summary at step 3:", 5, lambda text: math.nan, lambda: summary)
    config = Fact("run.config", {"name": "deepspeed", "values": {"device": '"cpu"'}}, Origin("log"), attempt=1)
    assert tell_series({1: [table]}, []).facts == [], "without offloading a long step says nothing"
    (fact,) = tell_series({1: [table]}, [config]).facts
    assert (fact.kind, fact.fields["name"], fact.fields["share"]) == ("series.bound", "offload", 0.6)


def test_nothing_to_tell() -> None:
    told = tell_series({}, [])
    assert (told.facts, len(told.rows), told.rows.sample()) == ([], 0, {})


WILD = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-30, 1e30, 3e38, 2.5, 2.6, 2.4])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.fixed_dictionaries(
            {"iteration": st.integers(0, 40).map(float), "loss": WILD},
            optional=dict.fromkeys(
                ("grad_norm", "lr", "scale", "skipped", "ms", "batch", "seqlen", "tokens", "memory", "data", "aux"), WILD
            ),
        ),
        max_size=60,
    ),
    st.sampled_from(["megatron", "print", "dict", "bar"]),
)
def test_no_numbers_break_it(table: list[dict[str, float]], shape: str) -> None:
    if not table:
        return
    told = tell_series({1: [steps(table, shape)]}, [])
    assert told.failed is None
    assert len(list(told.rows)) <= len(table)
    told.rows.sample(20)
