"""Where the next process begins in the file of one rank."""

from __future__ import annotations

from typing import Any

import pytest

from memdoctor.derive.lives import lives
from memdoctor.model import Fact, Origin, Stamp


def word(kind: str, line: int, text: str = "", *, at: float | None = None, after: float | None = None, **fields: Any) -> Fact:
    time, bound = (None if moment is None else Stamp(moment, str(moment)) for moment in (at, after))
    return Fact(kind, fields, Origin("log", "f", line, text), 3, None, time, 1, line << 8, f"0:{line}", bound)


def timeout(line: int, seq: int, **more: Any) -> Fact:
    return word("watchdog.timeout", line, seq=seq, op="ALLREDUCE", **more)


def death(line: int, seq: int) -> list[Fact]:
    """As torch before 2.4 prints it: the time-out, once more, the abort, what it was about."""
    again = word("watchdog.timeout", line + 1, "watchdog thread terminated with exception: ...", seq=seq, op="ALLREDUCE")
    return [timeout(line, seq), again, word("native.crash", line + 2, name="terminate"),
            word("watchdog.timeout", line + 3, "  what():  [Rank 3] ...", seq=seq, op="ALLREDUCE")]  # fmt: skip


def test_one_death_is_one_life() -> None:
    assert lives(death(1, 77), 2) == []


def test_what_stands_behind_an_abort_is_said_by_the_next_process() -> None:
    assert lives([*death(1, 77), *death(5, 77), *death(9, 91)], 2) == [(4 << 8) + 1, (8 << 8) + 1]


@pytest.mark.parametrize(("wanted", "cuts"), [(0, []), (1, [(1 << 8) + 1])])
def test_an_exception_before_a_time_out_ended_its_process_where_the_job_had_as_many_attempts(wanted: int, cuts: list[int]) -> None:
    assert lives([word("exception", 1), *death(2, 77)], wanted) == cuts


def test_times_decide() -> None:
    oom = word("exception", 1, at=0)
    assert lives([oom, timeout(2, 77, at=90)], 1) == []
    assert lives([oom, timeout(2, 77, at=900)], 0) == [(1 << 8) + 1]
    assert lives([oom, timeout(2, 77, after=900)], 0) == [(1 << 8) + 1]


def test_one_process_tells_of_a_time_out_once_in_the_same_words() -> None:
    assert lives([timeout(1, 77), timeout(2, 77), timeout(3, 77)], 2) == [(1 << 8) + 1, (2 << 8) + 1]
    assert lives([timeout(1, 77), word("exception", 2, owner="user"), timeout(3, 77)], 2) == [(1 << 8) + 1, (2 << 8) + 1]
    assert lives([timeout(1, 77), timeout(2, 77)], 0) == []


def test_two_groups_that_time_out_are_one_death_unless_more_is_known() -> None:
    words = [timeout(1, 77), timeout(2, 12), word("native.crash", 3, name="terminate")]
    assert lives(words, 0) == []
