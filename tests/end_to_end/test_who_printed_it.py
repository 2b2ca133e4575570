"""A line of evidence is labelled with the rank that printed it, whomever it tells of; and messages fit a job of two ranks."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from memdoctor.engine.load import load
from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs
from memdoctor.resources import rules_dir
from tests.hang_logs import Hang
from tests.nccl_faults import rank_missing
from tests.nccl_logs import job, text_of


def _diagnosed(folder: Path, files: dict[str, str]) -> Report:
    for name, text in files.items():
        (folder / name).write_text(text)
    return diagnose_logs([str(folder)])


@pytest.mark.parametrize("world", [2, 16])
@pytest.mark.parametrize("split", [False, True], ids=["one_file", "a_file_each"])
@pytest.mark.parametrize(("fault", "version"), [("silent", "2.0"), ("silent", "2.4"), ("dead", "2.13"), ("late", "2.4"), ("late", "2.13")])
def test_the_line_of_a_rank_that_waited_is_its_own(fault: str, version: str, split: bool, world: int, tmp_path: Path) -> None:
    hang = Hang(world=world, culprit=1, version=version, fault=fault, tp=1, split=split)
    root = _diagnosed(tmp_path, hang.files()).diagnoses[0]
    assert root.ranks == (1,)
    shown = [(line.rank, re.search(r"\[Rank (\d+)\]", line.text)) for line in root.evidence]
    assert shown
    assert all(said is not None and rank == int(said[1]) for rank, said in shown)


def test_a_rank_that_called_something_else_shows_it_by_its_own_line(tmp_path: Path) -> None:
    """The near miss: here the line is that of the rank at fault."""
    hang = Hang(world=16, culprit=5, version="2.6", fault="operation", tp=1)
    root = _diagnosed(tmp_path, hang.files()).diagnoses[0]
    assert (root.ranks, root.evidence[0].rank) == ((5,), 5)
    assert "[Rank 5]" in root.evidence[0].text


def test_whom_the_set_up_waits_for_has_printed_nothing(tmp_path: Path) -> None:
    made = job((2, 24, 3), seed=5, machines=2)
    rank_missing(made)
    path = tmp_path / "train.log"
    path.write_text(text_of(made))
    os.utime(path, (1e9, 1e9))
    root = diagnose_logs([str(path)]).diagnoses[0]
    assert root.ranks == (6,)
    assert all(line.rank != 6 for line in root.evidence)


@pytest.mark.parametrize("fault", ["silent", "dead", "late", "operation", "size", "fewer", "more"])
@pytest.mark.parametrize("version", ["2.4", "2.13"])
def test_a_job_of_two_ranks_has_no_others(fault: str, version: str, tmp_path: Path) -> None:
    report = _diagnosed(tmp_path, Hang(world=2, culprit=1, version=version, fault=fault, tp=1).files())
    said = report.diagnoses[0].message
    assert not re.search(r"\bthe others\b|\bsome others\b|\b1 (?:others|ranks)\b|\branks \d+ ", said), said


def test_no_message_calls_the_rest_the_others_or_ends_on_a_number_that_reads_as_a_rank() -> None:
    """In a job of two ranks there is one other. A number of ranks stands before what it counts."""
    rules = [rule for rule in load([rules_dir()]).rules if rule.id.startswith(("hang/", "net/"))]
    texts = {rule.id: str(rule.message) for rule in rules}
    assert texts
    assert [name for name, text in texts.items() if re.search(r"\bthe others\b|ranks?[^{}\[\]]*: \{waiting\}", text)] == []
