"""A rank that goes on with work of its own while the others time out, from facts made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from memdoctor.derive.hangs import hang_facts
from memdoctor.model import Fact, FileRead, Origin, Stamp, StepMark

LIMIT = 600.0


def fact(kind: str, rank: int | None, line: int, at: float | None = None, path: str = "f", **fields: Any) -> Fact:
    number = 0 if path == "f" else 1
    time = None if at is None else Stamp(at, str(at))
    return Fact(kind, fields, Origin("log", path, line), rank, None, time, 1, (number << 44) | (line << 8), f"{kind}:{rank}:{line}")


def waits(*ranks: int, at: float | None = None, gone: bool = True, world: int = 4) -> list[Fact]:
    """Time-outs in lines 100, 110, … of the ranks."""
    facts = [fact("run.world", None, 1, world_size=world)]
    for number, rank in enumerate(ranks):
        line = 100 + 10 * number
        facts.append(
            fact(
                "watchdog.timeout",
                rank,
                line,
                at,
                name="timeout",
                seq=700,
                op="ALLREDUCE",
                ran=LIMIT,
                limit=LIMIT,
                pg="0",
                pg_desc="default_pg",
            )
        )
        if gone:
            facts.append(fact("watchdog.taken_down", rank, line + 1, at, name="taken_down"))
    return facts


def bar(rank: int | None, line: int, done: int, text: str = "Evaluating", path: str = "f", at: float | None = None) -> Fact:
    return fact("run.bar", rank, line, at, path, name="bar", text=text, done=done, total=1000)


def working(facts: list[Fact], **more: Any) -> list[tuple[int | None, int, int]]:
    return [
        (one.rank, one.fields["begun"], one.fields["done"]) for one in hang_facts(facts, facts, **more) if one.kind == "watchdog.working"
    ]


def names(facts: list[Fact]) -> set[str]:
    return {str(one.fields.get("name")) for one in hang_facts(facts, facts) if one.kind.startswith("watchdog.")}


@pytest.mark.parametrize("rank", [0, None], ids=["says_its_rank", "says_none"])
def test_its_bar_goes_on_between_and_after_the_time_outs(rank: int | None) -> None:
    facts = [*waits(1, 2, 3), bar(rank, 90, 40), bar(rank, 105, 41), bar(rank, 150, 55)]
    assert working(facts) == [(0, 41, 55)]
    assert names(facts) == {"working"}  # it is not called silent, too


def test_one_of_several_that_are_silent_shows_that_it_is_the_one() -> None:
    facts = [*waits(2, 3, 4, 5, world=6), bar(0, 90, 40), bar(0, 105, 41), bar(0, 150, 55)]
    assert working(facts) == [(0, 41, 55)]
    assert names(facts) == {"working"}


@pytest.mark.parametrize(
    ("why", "facts"),
    [
        ("it ended before", [*waits(1, 2, 3), bar(0, 80, 40), bar(0, 90, 55)]),
        ("one line alone", [*waits(1, 2, 3), bar(0, 90, 40), bar(0, 150, 55)]),
        ("it stands", [*waits(1, 2, 3), bar(0, 120, 55), bar(0, 150, 55)]),
        ("it began anew", [*waits(1, 2, 3), bar(0, 90, 400), bar(0, 120, 10), bar(0, 150, 55)]),
        ("two bars", [*waits(1, 2, 3), bar(0, 120, 10, "Training"), bar(0, 150, 55)]),
        ("a rank that timed out got over it", [*waits(1, 2, 3), bar(2, 140, 10), bar(2, 150, 55)]),
        ("nobody was taken down", [*waits(1, 2, 3, gone=False), bar(0, 120, 10), bar(0, 150, 55)]),
        ("any of two may have drawn it", [*waits(2, 3, 4, 5, world=6), bar(None, 120, 10), bar(None, 150, 55)]),
        ("another file, without times", [*waits(1, 2, 3), bar(0, 120, 10, path="g"), bar(0, 150, 55, path="g")]),
        ("another file, before", [*waits(1, 2, 3, at=5000.0), bar(0, 120, 10, path="g", at=4900.0), bar(0, 150, 55, path="g", at=4990.0)]),
    ],
)
def test_it_does_not_show_that_it_works(why: str, facts: list[Fact]) -> None:
    assert working(facts) == [], why


def test_another_file_whose_times_go_on() -> None:
    facts = [*waits(1, 2, 3, at=5000.0), bar(0, 1, 10, path="g", at=5100.0), bar(0, 2, 55, path="g", at=5200.0)]
    assert working(facts) == [(0, 10, 55)]


def _file(main: str) -> FileRead:
    return FileRead("f", 0, None, None, None, None, 1, 200, False, False, None, frozenset(), SimpleNamespace(main=main))


def test_steps_without_a_time_count_in_bars_alone() -> None:
    """A print of a loop goes through a buffer, and what stands in that comes out last; a bar does not."""
    marks = [StepMark(line << 8, "f", 0, line, None) for line in (50, 60, 120, 150)]
    assert working(waits(1, 2, 3), files=[_file("bar")], marks=marks) == [(0, 120, 150)]
    assert working(waits(1, 2, 3), files=[_file("print")], marks=marks) == []


def test_steps_with_a_time_count() -> None:
    marks = [StepMark(line << 8, "f", 0, line, 5000.0 + line) for line in (120, 150)]
    facts = waits(1, 2, 3, at=5000.0)
    assert working(facts, files=[_file("megatron")], marks=marks) == [(0, 120, 150)]
    early = [replace(mark, epoch=4000.0) for mark in marks]
    assert working(facts, files=[_file("megatron")], marks=early) == []
