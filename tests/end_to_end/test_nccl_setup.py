"""NCCL INFO logs made up from a seed: the cause and the ranks of each planted fault, and silence on jobs in good health of every kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs
from tests.nccl_faults import HEALTHY, LOGS
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
