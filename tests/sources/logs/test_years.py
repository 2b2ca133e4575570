"""Logs whose stamps lack the year, beside logs of the same job that tell it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memdoctor.pipeline import diagnose_logs

STEP = " [{year}-03-14 02:0{minute}:00] iteration {minute:8d}/ 50000 | elapsed time per iteration (ms): 60000.0 | lm loss: 2.5E+00 |\n"
WAITED = (
    "[rank{rank}]:[E314 02:18:22.160000189 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=40, OpType=ALLREDUCE, NumelIn=512, NumelOut=512, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
)
KEY = """[rank3]:[W314 02:00:10.123456789 Utils.hpp:136] Warning: a variable is deprecated
[rank3]: Traceback (most recent call last):
[rank3]:   File "/job/train.py", line 61, in main
[rank3]:     shard = shards[name]
[rank3]: KeyError: 'web-2024'
"""


@pytest.mark.parametrize("year", [2023, 2025])
def test_a_copied_log_is_of_the_year_that_the_others_tell(tmp_path: Path, year: int) -> None:
    steps = "".join(STEP.format(year=year, minute=minute) for minute in range(1, 9))
    (tmp_path / "rank_0.log").write_text(steps + WAITED.format(rank=0))
    for rank in (1, 2):
        (tmp_path / f"rank_{rank}.log").write_text(WAITED.format(rank=rank))
    (tmp_path / "rank_3.log").write_text(KEY)
    report = diagnose_logs([str(tmp_path)])
    assert report.root_cause == "job.code"
    assert report.diagnoses[0].ranks == (3,)
    assert {evidence.time[:4] for each in report.diagnoses for evidence in each.evidence if evidence.time} == {str(year)}


def test_without_any_year_the_last_change_of_the_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "rank_1.log"
    path.write_text(WAITED.format(rank=1))
    changed = time.mktime((2024, 3, 14, 3, 0, 0, 0, 0, 0))
    os.utime(path, (changed, changed))
    report = diagnose_logs([str(path)])
    assert {evidence.time[:4] for each in report.diagnoses for evidence in each.evidence if evidence.time} == {"2024"}
