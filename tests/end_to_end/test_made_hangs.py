"""Watchdog text of many ranks names the one that held up the others: cause, rank and host, in all wordings, prefixes and orders.

A few dozen in every run of the tests, hundreds with ``--slow``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs
from tests.hang_logs import FAULTS, VERSIONS, Hang, make

Judge = Callable[[Hang, Report], bool]


def diagnosed(folder: Path, hang: Hang) -> Report:
    folder.mkdir()
    for name, text in hang.files().items():
        (folder / name).write_text(text)
    return diagnose_logs([str(folder)])


def exact(hang: Hang, report: Report) -> bool:
    root = report.diagnoses[0]
    return report.root_cause in hang.causes and root.ranks == (hang.culprit,) and (hang.host is None or root.hosts == (hang.host,))


def among(hang: Hang, report: Report) -> bool:
    """The culprit is one of those named, and where several are, none of them is called certain."""
    root = report.diagnoses[0]
    return hang.culprit in root.ranks and (
        len(root.ranks) == 1 or root.confidence == "possible" or root.rule in ("hang/late_rank", "hang/odd_one")
    )


def missed(tmp_path: Path, hangs: Iterable[Hang], judge: Judge) -> list[str]:
    found = []
    for number, hang in enumerate(hangs):
        report = diagnosed(tmp_path / str(number), hang)
        if not judge(hang, report):
            found.append(f"{hang}: {report.root_cause} {[(each.rule, each.ranks[:9], each.hosts[:3]) for each in report.diagnoses[:2]]}")
    return found


@pytest.mark.parametrize("group", ["world", "tensor"])
def test_the_one_is_named(tmp_path: Path, group: str) -> None:
    hangs = [make(seed, group=group, most=64) for seed in range(24)]
    assert len({hang.version for hang in hangs}) >= 6
    assert not missed(tmp_path, hangs, exact)


def test_among_a_thousand(tmp_path: Path) -> None:
    hang = Hang(world=1024, culprit=837, version="2.13", fault="dead", prefix="pdsh", shuffled=True)
    report = diagnosed(tmp_path / "job", hang)
    assert exact(hang, report)
    assert report.run.world_size == 1024


@pytest.mark.parametrize("group", ["world", "tensor"])
def test_a_third_of_the_lines_is_missing(tmp_path: Path, group: str) -> None:
    assert not missed(tmp_path, [make(seed, group=group, lost=1 / 3, most=64) for seed in range(200, 212)], among)


def test_the_number_of_ranks_not_seen_is_told(tmp_path: Path) -> None:
    hang = Hang(world=64, culprit=37, version="2.0", lost=0.5, seed=5)
    report = diagnosed(tmp_path / "job", hang)
    root = report.diagnoses[0]
    assert hang.culprit in root.ranks
    assert len(root.ranks) > 1
    assert report.confidence == "possible"
    assert f"{len(root.ranks)} of 64 ranks said nothing of it" in root.message


@pytest.mark.parametrize("prefix", ["none", "srun", "openmpi"])
def test_63_time_out_and_rank_37_is_silent(tmp_path: Path, prefix: str) -> None:
    """Its place on the axes of the job is told, and the launcher's box, which names a victim, is not believed."""
    report = diagnosed(tmp_path / "job", Hang(world=64, culprit=37, version="2.4", prefix=prefix))
    root = report.diagnoses[0]
    assert (report.root_cause, root.ranks) == ("hang.straggler", (37,))
    assert "TP 5, DP 4" in root.message
    assert report.candidates == ("hang.rank_died",)


def test_a_rank_whose_file_is_missing_is_not_called_dead(tmp_path: Path) -> None:
    hang = Hang(world=16, culprit=9, version="2.13", fault="dead", split=True)
    files = hang.files()
    del files["rank_9.log"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    report = diagnose_logs([str(tmp_path)])
    assert report.diagnoses[0].ranks == (9,)
    assert report.confidence == "possible"


def test_two_ranks_in_different_operations(tmp_path: Path) -> None:
    hang = Hang(world=2, culprit=1, version="2.6", fault="operation", tp=1)
    report = diagnosed(tmp_path / "job", hang)
    assert (report.root_cause, report.confidence, report.diagnoses[0].ranks) == ("hang.desync", "likely", (0, 1))
    assert "_ALLGATHER_BASE" in report.diagnoses[0].message


def test_healthy_watchdog_lines_are_no_hang(tmp_path: Path) -> None:
    """What torch and NCCL print with their log levels at INFO while nothing is wrong."""
    lines = []
    for rank in range(8):
        group = f"[rank{rank}]:[I1129 13:00:0{rank}.436076120 ProcessGroupNCCL.cpp:{{}}] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        lines += [
            group.format(978)
            + "ProcessGroupNCCL initialization options: size: 8, global rank: 3, TIMEOUT(ms): 600000, USE_HIGH_PRIORITY_STREAM: 0",
            group.format(987)
            + "ProcessGroupNCCL environments: NCCL version: 2.27.5, TORCH_NCCL_ASYNC_ERROR_HANDLING: 3, TORCH_NCCL_DUMP_ON_TIMEOUT: 1, "
            "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC: 15000, TORCH_NCCL_DESYNC_DEBUG: 0, TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: 480",
            group.format(1500) + "Process group watchdog thread started!",
            f"node-a:{7000 + rank}:{7100 + rank} [{rank}] NCCL INFO ncclCommInitRank comm 0x55d2c{rank} rank {rank} nranks 8 cudaDev {rank} nvmlDev {rank} busId {rank + 1}b000 "
            "commId 0x8ba2d0f7 - Init COMPLETE",
            f"node-a:{7000 + rank}:{7100 + rank} [{rank}] NCCL INFO Channel 00/0 : {rank}[{rank}] -> {(rank + 1) % 8}[{(rank + 1) % 8}] via P2P/CUMEM",
            f"node-a:{7000 + rank}:{7100 + rank} [{rank}] NCCL INFO Connected all rings, use ring PXN 0 GDR 1",
            group.format(1520) + "Process group watchdog thread terminated normally",
            group.format(1300) + "ProcessGroupNCCL watchdog thread joined.",
        ]
    (tmp_path / "train.log").write_text("".join(f"{line}\n" for line in lines))
    report = diagnose_logs([str(tmp_path / "train.log")])
    assert report.root_cause is None
    assert not [each for each in report.diagnoses if each.cause.startswith("hang.")]


@pytest.mark.slow
@pytest.mark.parametrize("group", ["world", "tensor"])
def test_hundreds_are_named(tmp_path: Path, group: str) -> None:
    hangs = [make(seed, group=group, most=1024 if seed % 4 == 0 else 256) for seed in range(1000, 1200)]
    assert {hang.version for hang in hangs} == set(VERSIONS)
    assert {hang.fault for hang in hangs} >= set(FAULTS) - {"dead"}
    assert not missed(tmp_path, hangs, exact)


@pytest.mark.slow
@pytest.mark.parametrize("group", ["world", "tensor"])
def test_hundreds_with_a_third_of_the_lines_missing(tmp_path: Path, group: str) -> None:
    """Where the few lines that would tell it are the ones that are gone, nothing can; that is rare."""
    hangs = [make(seed, group=group, lost=1 / 3, most=256) for seed in range(2000, 2150)]
    assert len(missed(tmp_path, hangs, among)) <= 0.03 * len(hangs)
