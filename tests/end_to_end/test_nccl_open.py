"""NCCL INFO logs that end inside the set-up: with networks that differ, or of a job in good health that was only cut off there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs
from tests.nccl_faults import nobody_meets, rank_missing
from tests.nccl_logs import VERSIONS, Fault, job, make, text_of
from tests.nccl_mixed import MIXED, odd_in_finish

PLANTED = [(fault, version, machines) for fault, logs in MIXED for version, machines in logs]


def _name(value: object) -> str:
    return getattr(value, "__name__", None) or (".".join(map(str, value)) if isinstance(value, tuple) else str(value))


def _diagnose(text: str, folder: Path, age: float = 0.0) -> Report:
    path = folder / "train.log"
    path.write_text(text)
    os.utime(path, (time.time() - age,) * 2)
    return diagnose_logs([str(path)])


def _above_notes(report: Report) -> list[tuple[str, str]]:
    return [(found.rule, found.message) for found in report.diagnoses if found.severity != "note"]


@pytest.mark.parametrize(("fault", "version", "machines"), PLANTED, ids=_name)
def test_the_ranks_on_another_network_are_named(fault: Fault, version: tuple[int, int, int], machines: int, tmp_path: Path) -> None:
    made = make(fault, version, seed=machines * 1000 + version[1], machines=machines)
    report = _diagnose(made.text, tmp_path, age=1e7)
    root = report.diagnoses[0]
    assert report.root_cause in made.causes
    assert root.ranks == made.ranks
    assert root.severity == "error"
    assert [found.rule for found in report.diagnoses[1:] if found.severity == "error" and found.explained_by is None] == []


def test_a_time_out_of_the_first_collective_is_a_consequence_of_networks_that_differ(tmp_path: Path) -> None:
    """Nothing of the set-up is open: the edges of NCCL 2.22 and later are not told at this level."""
    made = job((2, 27, 5), seed=11, machines=2)
    for rank in made.on(1):
        rank.network, rank.cards = "Socket", 0
    made.trains, made.style = False, "plain"
    for rank in made.ranks:
        rank.stops = "complete"
    made.end = tuple(
        f"[rank{rank}]:[E314 02:41:00.{rank:06d} ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600011 milliseconds before timing out."
        for rank in range(16)
    )
    report = _diagnose(text_of(made), tmp_path)
    assert (report.root_cause, report.diagnoses[0].ranks) == ("net.fallback", tuple(range(8, 16)))
    assert {found.explained_by for found in report.diagnoses[1:] if found.severity == "error"} <= {"d1"}


@pytest.mark.parametrize("version", VERSIONS, ids=_name)
@pytest.mark.parametrize("machines", [1, 3])
def test_a_healthy_log_that_is_cut_off_in_the_set_up_is_left_in_peace(version: tuple[int, int, int], machines: int, tmp_path: Path) -> None:
    made = job(version, seed=machines * 100 + version[1], machines=machines)
    made.trains = False
    lines = text_of(made).splitlines(keepends=True)
    for kept in range(3, len(lines), max(1, len(lines) // 12)):
        report = _diagnose("".join(lines[:kept]), tmp_path)
        assert _above_notes(report) == [], kept
        assert report.root_cause is None


def test_a_log_that_was_cut_within_a_line_is_left_in_peace_however_old_it_is(tmp_path: Path) -> None:
    made = job((2, 21, 5), seed=3, machines=2)
    text = text_of(made)
    report = _diagnose(text[: text.index("Init COMPLETE") - 40], tmp_path, age=1e7)
    assert report.run.ended == "cut"
    assert _above_notes(report) == []


@pytest.mark.parametrize("fault", [rank_missing, nobody_meets, odd_in_finish], ids=_name)
@pytest.mark.parametrize(("age", "told"), [(60.0, False), (600.0, False), (7200.0, True)])
def test_the_age_of_the_file_shows_that_it_stands_still(fault: Fault, age: float, told: bool, tmp_path: Path) -> None:
    made = job((2, 24, 3), seed=5, machines=2)
    causes, _ = fault(made)
    made.end = ()
    report = _diagnose(text_of(made), tmp_path, age)
    assert ("error" in {found.severity for found in report.diagnoses}) is told
    if told:
        assert {report.root_cause} == causes


@pytest.mark.parametrize(("minutes", "told"), [(2, False), (25, True)])
def test_times_that_go_on_long_after_show_that_it_stands_still(minutes: int, told: bool, tmp_path: Path) -> None:
    """Something else in the file goes on printing, such as a monitor of the node."""
    made = job((2, 24, 3), seed=5, machines=2)
    made.style, made.trains = "plain", False
    causes, ranks = nobody_meets(made)
    made.end = ()
    lines = [f"2026-03-14T02:31:00Z {line}" for line in text_of(made).splitlines()]
    lines += [f"2026-03-14T02:{31 + minute:02d}:00Z gpu-monitor: all temperatures below 60 C" for minute in range(1, minutes + 1)]
    report = _diagnose("\n".join(lines) + "\n", tmp_path)
    assert [(found.cause, list(found.ranks)) for found in report.diagnoses if found.severity != "note"] == (
        [(*causes, ranks)] if told else []
    )


def test_where_the_log_ends_in_a_set_up_a_note_says_who_is_behind(tmp_path: Path) -> None:
    made = job((2, 24, 3), seed=5, machines=2)
    rank_missing(made)
    made.end = ()
    (found,) = _diagnose(text_of(made), tmp_path).diagnoses
    assert (found.rule, found.severity, found.ranks) == ("hang/setup_unfinished", "note", (6,))
