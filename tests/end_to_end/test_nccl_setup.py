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


def test_the_set_up_of_a_tensor_parallel_group_that_waits_for_one_process(tmp_path: Path) -> None:
    """The job's own communicator is complete, so all ranks are known; in a later one of the second machine one process does not take part."""
    made = job((2, 24, 3), seed=5, machines=2)
    made.style, made.trains = "plain", False
    lines = [text_of(made)]
    for rank in made.ranks:
        if rank.number == 13:
            continue
        comm = (
            f"{rank.host}:{rank.pid}:{rank.pid + 500} [{rank.local}] NCCL INFO ncclCommSplit comm 0x77{rank.number:03x} rank {rank.local} nranks 8 cudaDev {rank.local} "
            f"nvmlDev {rank.local} busId {rank.bus} parent 0x55d1{rank.number:04x}c0 splitCount 2 color {rank.number // 8} key {rank.local}"
        )
        lines.append(f"{comm}- Init START\n")
        if rank.number < 8:
            lines.append(f"{comm} - Init COMPLETE\n")
    report = _diagnose("".join(lines), tmp_path)
    (found,) = report.diagnoses
    assert (found.rule, found.ranks) == ("hang/setup_stopped", (13,))


def test_ranks_within_parts_of_the_job_are_not_taken_for_its_own(tmp_path: Path) -> None:
    """Only tensor-parallel groups were set up: every machine has its ranks 0 to 7."""
    made = job((2, 24, 3), seed=5, machines=2)
    text = "".join(
        f"{rank.host}:{rank.pid}:{rank.pid + 500} [{rank.local}] NCCL INFO ncclCommInitRankConfig comm 0x77{rank.number:03x} rank {rank.local} nranks 8 "
        f"cudaDev {rank.local} nvmlDev {rank.local} busId {rank.bus} commId 0xaa{rank.number // 8} - Init {word}\n"
        for rank in made.ranks
        for word in ("START", "COMPLETE")
    )
    failure = f"{made.ranks[13].host}:{made.ranks[13].pid}:900 [5] misc/socket.cc:483 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
    report = _diagnose(text + failure, tmp_path)
    assert [found.ranks for found in report.diagnoses] == [()]
