"""Jobs of up to 512 ranks, each with one planted fault: the ranks at fault and the cause must be exact.

A reduced number in the fast tier; with ``--slow`` 300 of them, from files on disk to the root cause of the report.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.derive.collectives.judging import verdicts
from memdoctor.derive.collectives.world import World
from memdoctor.model import RankDump
from memdoctor.pipeline import diagnose_logs
from memdoctor.sources.dumps.recorder import rank_dump
from tests.flight.faults import FAULTS, SHAPES, Planted, plant

SMALL = [shape for shape in SHAPES if shape[0] * shape[1] * shape[2] <= 64]
SHARE = 0.98  # of the planted faults that must be found exactly


def read(planted: Planted) -> list[RankDump]:
    known: dict[str, tuple[int, ...] | None] = {}
    recording = planted.recording
    return [rank_dump(recording.dump(rank), f"nccl_trace_rank_{rank}", rank, 0, known) for rank in planted.present()]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seed", range(5))
def test_a_planted_fault(fault: str, seed: int) -> None:
    planted = plant(10_000 + 97 * seed + len(fault), fault, SMALL[(3 * seed + len(fault)) % len(SMALL)])
    found = verdicts(World(read(planted)))
    assert {verdict.rank for verdict in found} - {None} == planted.ranks, str(planted)
    assert {verdict.name for verdict in found} <= planted.names, str(planted)


@pytest.mark.parametrize("seed", range(20))
def test_a_job_in_which_all_goes_well(seed: int) -> None:
    planted = plant(20_000 + seed, "stall", SMALL[seed % len(SMALL)])
    run = planted.recording.run
    for meeting in run.meetings.values():
        meeting.broken = False
    fine = type(run)(planted.job, run.rng)
    planted.recording.run = fine
    assert [verdict.name for verdict in verdicts(World(read(planted)))] == ["ok"], str(planted)


@pytest.mark.slow
def test_three_hundred_planted_faults_from_files_to_root_cause(tmp_path: Path) -> None:
    wrong = []
    for seed in range(300):
        planted = plant(seed)
        folder = tmp_path / str(seed)
        paths = planted.write(folder)
        report = diagnose_logs([str(folder)])
        root = next((each for each in report.diagnoses if each.cause == report.root_cause), None)
        ranks = set() if root is None else set(root.ranks)
        cause = report.root_cause or ""
        if ranks != planted.ranks or cause != planted.cause or report.run.world_size != planted.job.world:
            wrong.append(f"{planted}: {sorted(planted.ranks)[:5]} {planted.cause}, found {sorted(ranks)[:5]} {cause}")
        for path in paths:
            path.unlink()
    assert len(wrong) <= 300 * (1 - SHARE), "\n".join(wrong)
