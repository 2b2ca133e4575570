"""NCCL INFO logs made up from a seed: the cause and the ranks of each planted fault, and silence on jobs in good health of every kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs
from tests.nccl_faults import HEALTHY, LOGS, connect_pair, duplicate_gpu, gdr_off_on_one, protocol_on_one, rank_missing, split_machine
from tests.nccl_logs import Fault, Job, job, make, text_of

PLANTED = [(fault, version, machines) for fault, logs in LOGS for version, machines in logs]
GOOD = [(change, version, machines) for change, logs in HEALTHY for version, machines in logs]


def _name(value: object) -> str:
    return getattr(value, "__name__", None) or (".".join(map(str, value)) if isinstance(value, tuple) else str(value))


def _diagnose(text: str, folder: Path) -> Report:
    path = folder / "train.log"
    path.write_text(text)
    os.utime(path, (1e9, 1e9))  # of a job that is long over
    return diagnose_logs([str(path)])


def test_there_are_enough_of_them() -> None:
    assert len(PLANTED) >= 40
    assert len(GOOD) >= 40
    assert {version for _, version, _ in PLANTED} | {version for _, version, _ in GOOD} >= {(2, 4, 8), (2, 30, 4)}


@pytest.mark.parametrize(("fault", "version", "machines"), PLANTED, ids=_name)
def test_a_planted_fault_is_named_with_its_ranks(fault: Fault, version: tuple[int, int, int], machines: int, tmp_path: Path) -> None:
    made = make(fault, version, seed=machines * 1000 + version[1], machines=machines)
    report = _diagnose(made.text, tmp_path)
    assert report.root_cause in made.causes
    root = next(diagnosis for diagnosis in report.diagnoses if diagnosis.cause == report.root_cause)
    assert root.ranks == made.ranks
    assert [d.rule for d in report.diagnoses if d is not root and d.severity != "note" and d.explained_by is None] == []


@pytest.mark.parametrize(("change", "version", "machines"), GOOD, ids=_name)
def test_a_job_in_good_health_is_left_in_peace(
    change: Callable[[Job], None], version: tuple[int, int, int], machines: int, tmp_path: Path
) -> None:
    made = job(version, seed=machines * 1000 + version[1], machines=machines)
    change(made)
    report = _diagnose(text_of(made), tmp_path)
    assert [(d.rule, d.message) for d in report.diagnoses if d.severity != "note"] == []
    assert report.root_cause is None


@pytest.mark.parametrize("name", ["{host}.log", "rank_{rank}.log", "nccl.{host}.{pid}"])
@pytest.mark.parametrize("fault", [gdr_off_on_one, split_machine, rank_missing, connect_pair, duplicate_gpu, protocol_on_one], ids=_name)
def test_it_does_not_matter_how_the_lines_are_spread_over_files(fault: Fault, name: str, tmp_path: Path) -> None:
    made = job((2, 21, 5), seed=79, machines=2)
    made.style = "plain"
    causes, ranks = fault(made)
    owner = {(rank.host, str(rank.pid)): rank for rank in made.ranks}
    for line in text_of(made).splitlines(keepends=True):
        head = line.split(":", 2)
        rank = owner.get((head[0], head[1]) if len(head) == 3 else ("", ""), made.ranks[0])
        with open(tmp_path / name.format(host=rank.host, rank=rank.number, pid=rank.pid), "a") as file:
            file.write(line)
    report = diagnose_logs([str(tmp_path)])
    root = next(diagnosis for diagnosis in report.diagnoses if diagnosis.cause == report.root_cause)
    assert ({root.cause}, root.ranks) == (causes, tuple(sorted(ranks)))
