"""Ranks and stages, straggler reports, spreads without ranks, and DeepSpeed's pipelines, from facts made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from memdoctor.catalog import with_computed
from memdoctor.derive.stages.balance import balance
from memdoctor.derive.stages.grid import Grid, grid_of
from memdoctor.derive.stages.rank_speed import reported
from memdoctor.derive.stages.samples import samples_of
from memdoctor.derive.stages.spread import spread_of, waiting
from memdoctor.model import Fact, Origin


def fact(kind: str, line: int = 1, rank: int | None = None, host: str | None = None, **fields: Any) -> Fact:
    return Fact(kind, with_computed(kind, fields), Origin("log", "train.log", line, "x"), rank, host, seq=line << 8)


class TestGrid:
    def test_the_order_of_megatron(self) -> None:
        grid = Grid(tp=2, pp=4, replicas=3)
        assert [grid.stage(rank) for rank in (0, 5, 6, 12, 23)] == [0, 0, 1, 2, 3]
        assert [grid.replica(rank) for rank in (0, 1, 2, 5, 6)] == [0, 0, 1, 2, 0]
        assert grid.group(5) == (4, 5)

    def test_stages_before_replicas(self) -> None:
        grid = Grid(tp=2, pp=4, replicas=3, stages_first=True)
        assert [grid.stage(rank) for rank in (0, 2, 6, 8)] == [0, 1, 3, 0]
        assert [grid.replica(rank) for rank in (0, 7, 8)] == [0, 0, 1]

    def test_what_lines_say_of_a_rank_counts_more(self) -> None:
        assert Grid(1, 2, 1, told={0: 1, 1: 0}).stage(0) == 1

    def test_deepspeed_names_the_stage_of_its_ranks(self) -> None:
        lines = [fact("rank.parameters", rank, rank, name="deepspeed", stage=rank // 2, layers=3, parameters=10) for rank in (0, 2)]
        grid = grid_of(lines, None)
        assert grid is not None
        assert grid.pp == 2
        assert grid_of([], None) is None


def report(line: int, slow: int, value: float, fast: int = 0, bottom: str = "") -> Fact:
    return fact("rank.speed", line, name="throughput", slow_rank=slow, slow=value, fast_rank=fast, fast=400.0, bottom=bottom)


class TestReports:
    def test_a_rank_that_is_slow_in_most_reports(self) -> None:
        found = reported([report(n, 13 if n != 2 else 4, 280.0) for n in range(5)], None)
        assert found is not None
        assert found.ranks == (13,)
        assert found.over == pytest.approx(400 / 280)

    @pytest.mark.parametrize(
        "reports",
        [
            [report(n, 13, 280.0) for n in range(2)],  # too few
            [report(n, n, 280.0) for n in range(6)],  # another one each time
            [report(n, 13, 385.0) for n in range(6)],  # hardly slower
        ],
        ids=["few", "changing", "small"],
    )
    def test_no_slow_rank(self, reports: list[Fact]) -> None:
        assert reported(reports, None) is None

    def test_in_a_pipeline_the_fastest_rank_of_the_same_stage_tells(self) -> None:
        grid = Grid(1, 2, 4)
        found = reported([report(n, 5, 280.0, fast=6) for n in range(4)], grid)
        assert found is not None
        assert (found.ranks, found.stage) == ((5,), None)

    def test_a_whole_stage_at_the_bottom_is_an_uneven_split(self) -> None:
        grid = Grid(1, 2, 4)
        found = reported([report(n, 5, 280.0, bottom="280.00TF/5, 281.00TF/6, 282.10TF/4,") for n in range(4)], grid)
        assert found is not None
        assert found.stage == 1

    def test_one_far_below_the_rest_of_its_stage_is_slow_itself(self) -> None:
        grid = Grid(1, 2, 4)
        found = reported([report(n, 5, 280.0, bottom="280.00TF/5, 361.00TF/6, 362.10TF/4,") for n in range(4)], grid)
        assert found is not None
        assert (found.ranks, found.stage) == ((5,), None)

    def test_without_a_list_a_pipeline_stays_undecided(self) -> None:
        assert reported([report(n, 5, 280.0) for n in range(4)], Grid(1, 2, 4)) is None

    def test_warnings_of_the_resiliency_extension(self) -> None:
        text = "{StragglerId(rank=13, node='a'), StragglerId(rank=7, node='b')}"
        found = reported([fact("rank.speed", n, name="resiliency", ranks_text=text) for n in range(2)], None)
        assert found is not None
        assert found.ranks == (7, 13)

    def test_the_host_of_a_slow_rank_is_named(self) -> None:
        place = fact("rank.place", 1, host=None, of_rank=13, on_host="gpu-05")
        (found,) = balance(1, [place, *(report(n, 13, 280.0) for n in range(2, 6))])
        assert (found.kind, found.rank, found.host) == ("rank.slow", 13, "gpu-05")


def timers(line: int, forward: tuple[float, float], backward: tuple[float, float]) -> list[Fact]:
    return [
        fact("timer", line, name="forward-compute", low=forward[0], high=forward[1]),
        fact("timer", line + 1, name="backward-compute", low=backward[0], high=backward[1]),
    ]


class TestSpread:
    def spread(self, pairs: list[tuple[tuple[float, float], tuple[float, float]]], pp: int = 4) -> Any:
        facts = [each for number, pair in enumerate(pairs) for each in timers(number * 10, *pair)]
        return spread_of(samples_of(facts), Grid(1, pp, 1), None)

    def test_a_wide_spread_in_every_report(self) -> None:
        found = self.spread([((1.0, 1.6), (2.0, 3.2))] * 4)
        assert found is not None
        assert found.stage is None
        assert found.most == pytest.approx(4.8)

    def test_without_a_pipeline_it_tells_nothing(self) -> None:
        assert self.spread([((1.0, 1.6), (2.0, 3.2))] * 4, pp=1) is None

    def test_a_narrow_one(self) -> None:
        assert self.spread([((1.0, 1.1), (2.0, 2.3))] * 4) is None

    def test_the_warm_up_is_left_out(self) -> None:
        assert self.spread([((1.0, 9.0), (2.0, 9.0)), *[((1.0, 1.1), (2.0, 2.3))] * 3]) is None

    def test_loading_the_batch_is_no_compute(self) -> None:
        lines = [
            fact("timer", 1, name="batch-generator", values={"0": "500.0", "1": "0.5"}),
            fact("timer", 2, name="forward-compute", values={"0": "1500.0", "1": "1000.5"}),
            fact("timer", 3, name="backward-compute", values={"0": "2000.0", "1": "2000.0"}),
        ]
        (sample,) = samples_of(lines)
        assert sample.seconds == {0: pytest.approx(3.0), 1: pytest.approx(3.0)}

    def test_a_report_without_a_backward_pass_is_an_evaluation(self) -> None:
        assert samples_of([fact("timer", 1, name="forward-compute", low=1.0, high=2.0)]) == []


class TestWaiting:
    def facts(self, wait: float) -> list[Fact]:
        result = []
        for step in range(5):
            result.append(fact("pipeline.wait", step * 2, 0, name="wait", recv_grad=wait))
            result.append(fact("pipeline.wait", step * 2 + 1, 0, name="compute", forward=1.0, backward=2.0))
        return result

    def test_more_than_the_bubble(self) -> None:
        found = waiting(self.facts(2.0), Grid(1, 4, 1), 32)
        assert found is not None
        assert "67% of its compute time" in found.text

    def test_the_bubble_itself(self) -> None:
        assert waiting(self.facts(0.3), Grid(1, 4, 1), 32) is None
        assert waiting(self.facts(2.0), Grid(1, 4, 1), 4) is None  # few micro-batches: (p - 1) / m is 3 / 4

    def test_unknown_micro_batches(self) -> None:
        assert waiting(self.facts(2.0), Grid(1, 4, 1), None) is None


def test_an_attempt_without_such_lines_costs_nothing() -> None:
    assert balance(1, [fact("exception", 1, type="ValueError")]) == []
