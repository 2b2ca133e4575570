"""Files that were joined one after the other, and what only looks like one."""

from __future__ import annotations

from typing import Any

from memdoctor.derive.joined import begin_of_steps
from memdoctor.model import Fact, Origin


def said(line: int, rank: int | None, kind: str = "watchdog.timeout", **fields: Any) -> Fact:
    return Fact(kind, fields, Origin("log", "f", line), rank, None, None, 1, line)


def test_the_part_of_the_steps_begins_behind_the_deaths_of_other_ranks() -> None:
    facts = [said(1, 4), said(2, 4), said(3, 7), said(20, 5), said(21, 6)]
    assert begin_of_steps(facts, 10, 15) == 4


def test_steps_before_all_deaths_need_no_part() -> None:
    assert begin_of_steps([said(20, 5), said(21, 6)], 10, 15) == 0


def test_a_rank_that_is_heard_of_on_both_sides_wrote_into_one_file_with_the_others() -> None:
    assert begin_of_steps([said(1, 4), said(3, 7), said(20, 5), said(21, 4)], 10, 15) == 0


def test_an_error_among_the_steps_is_none_of_another_part() -> None:
    assert begin_of_steps([said(1, 4), said(3, 7), said(12, 3, "exception"), said(21, 5)], 10, 15) == 0


def test_one_error_at_start_up_is_no_part_of_its_own() -> None:
    begun = said(1, None, "run.world", world_size=4)
    assert begin_of_steps([said(2, 4, "exception"), said(20, 5)], 10, 15) == 3
    assert begin_of_steps([begun, said(2, 4, "exception"), said(20, 5)], 10, 15) == 0


def test_what_a_launcher_says_of_a_rank_is_not_said_by_the_rank() -> None:
    assert begin_of_steps([said(1, 4), said(3, 7), said(20, 5), said(21, 4, "process.exit")], 10, 15) == 4
