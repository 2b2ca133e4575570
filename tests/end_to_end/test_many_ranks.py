"""One rank of 64 is at fault and 63 time out: the one is named, however the logs come."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs
from tests.scenarios import ManyRanks, shuffled


def check(report: Report, culprit: int, cause: str = "oom.activations") -> None:
    assert report.root_cause == cause
    root = report.diagnoses[0]
    assert root.ranks == (culprit,)
    timeouts = [diagnosis for diagnosis in report.diagnoses if diagnosis.cause.startswith("hang.")]
    assert timeouts
    assert all(diagnosis.explained_by is not None for diagnosis in timeouts)
    assert max(len(diagnosis.ranks) for diagnosis in timeouts) == 63


@pytest.mark.parametrize("stamps", [True, False], ids=["stamps", "no-stamps"])
@pytest.mark.parametrize("culprit", [7, 0, 63])
def test_in_one_file(tmp_path: Path, stamps: bool, culprit: int) -> None:
    (tmp_path / "train.log").write_text(ManyRanks(stamps=stamps, culprit=culprit).one_file())
    report = diagnose_logs([str(tmp_path / "train.log")])
    check(report, culprit)
    assert report.run.ended == "failed"
    assert report.run.world_size == 64


@pytest.mark.parametrize("stamps", [True, False], ids=["stamps", "no-stamps"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_64_files_in_any_order(tmp_path: Path, stamps: bool, seed: int) -> None:
    files = ManyRanks(stamps=stamps).files()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    check(diagnose_logs([str(tmp_path / name) for name in shuffled(sorted(files), seed)]), 7)


@pytest.mark.parametrize("stamps", [True, False], ids=["stamps", "no-stamps"])
def test_in_a_folder(tmp_path: Path, stamps: bool) -> None:
    for name, text in ManyRanks(stamps=stamps, culprit=12).files().items():
        (tmp_path / name).write_text(text)
    check(diagnose_logs([str(tmp_path)]), 12)


@pytest.mark.parametrize("stamps", [True, False], ids=["stamps", "no-stamps"])
def test_lines_out_of_order_in_one_file(tmp_path: Path, stamps: bool) -> None:
    """stdout and stderr are buffered apart: the time-outs stand before the exception that came ten minutes earlier."""
    job = ManyRanks(stamps=stamps)
    lines = job.lines()
    oom = [job._prefixed(rank, text) for second, rank, text in lines if rank == 7]
    rest = [job._prefixed(rank, text) for second, rank, text in lines if rank != 7]
    (tmp_path / "train.log").write_text("\n".join([*rest[:-1], *oom, rest[-1]]) + "\n")
    check(diagnose_logs([str(tmp_path / "train.log")]), 7)


@pytest.mark.parametrize("stamps", [True, False], ids=["stamps", "no-stamps"])
@pytest.mark.parametrize("split", [False, True], ids=["one-file", "files"])
def test_three_restarts_are_three_incidents(tmp_path: Path, stamps: bool, split: bool) -> None:
    jobs = [
        ManyRanks(stamps=stamps, culprit=7),
        ManyRanks(stamps=stamps, culprit=20, fault="key", start=14 * 3600),
        ManyRanks(stamps=stamps, culprit=33, start=15 * 3600),
    ]
    if split:
        for job in jobs:
            for name, text in job.files().items():
                with (tmp_path / name).open("a") as file:
                    file.write(text)
    else:
        (tmp_path / "train.log").write_text("".join(job.one_file() for job in jobs))
    report = diagnose_logs([str(tmp_path)])
    assert report.run.attempts == 3
    assert [incident.root_cause for incident in report.incidents] == ["oom.activations", "job.code", "oom.activations"]
    assert report.root_cause == "oom.activations"
    assert report.diagnoses[0].ranks == (33,)
    assert report.diagnoses[0].attempt == 3


@pytest.mark.parametrize("order", ["joined", "interleaved"])
def test_the_ranks_of_one_file_without_times_keep_only_their_own_order(tmp_path: Path, order: str) -> None:
    """Every rank prints its steps; the files were joined, or mixed: what other ranks print further down proves nothing about the one that died."""
    ranks: dict[int, list[str]] = {}
    for rank in range(16):
        steps = [f"[rank{rank}]: iter {step} loss {3.0 - step / 100:.4f} lr 0.0003" for step in range(95, 101 if rank == 5 else 103)]
        if rank == 5:
            end = [
                "Traceback (most recent call last):",
                '  File "/workspace/train/loop.py", line 88, in step',
                "    weight = weights[batch['source']]",
                "KeyError: 'web-2024'",
            ]
        else:
            work = "WorkNCCL(SeqNum=48213, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600042 milliseconds before timing out."
            end = [f"[E ProcessGroupNCCL.cpp:474] [Rank {rank}] Watchdog caught collective operation timeout: {work}"]
        ranks[rank] = [*steps, *(f"[rank{rank}]: {line}" for line in end)]
    if order == "joined":
        lines = [line for rank in range(16) for line in ranks[rank]]
    else:
        lines = []
        while any(ranks.values()):
            for rank in sorted(ranks, key=lambda rank: (rank != 5, rank)):
                lines += [ranks[rank].pop(0)] if ranks[rank] else []
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    report = diagnose_logs([str(tmp_path / "train.log")])
    assert (report.root_cause, report.diagnoses[0].ranks) == ("job.code", (5,))
    assert report.run.ended == "failed"
