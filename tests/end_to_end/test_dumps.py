"""Flight-recorder dumps through the command: alone, beside logs, damaged, hostile."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memdoctor.cli import main
from memdoctor.errors import InputError
from memdoctor.pipeline import diagnose_logs
from tests.flight.small import Small, warm

TIMEOUT = (
    "[E1129 13:20:05.110000000 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
    "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n"
)
LOG = "step 1 of 5\nstep 2 of 5\n"


def never() -> Small:
    return warm(Small()).call((0, 1, 3), "0", state="started", at=5, line=40)


class Harm:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (open, (str(self.mark), "w"))


def test_a_folder_of_dumps_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    never().write(tmp_path)
    assert main(["logs", str(tmp_path), "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["root_cause"], report["confidence"], report["action"]) == ("hang.straggler", "likely", "fix-code")
    assert report["diagnoses"][0]["ranks"] == [2]
    (evidence,) = report["diagnoses"][0]["evidence"]
    assert evidence["path"].endswith("nccl_trace_rank_2")
    assert "never called all_reduce" in evidence["text"]
    assert report["run"]["world_size"] == report["run"]["ranks_seen"] == 4
    assert report["run"]["versions"] == {"nccl": "2.27.5"}
    assert report["run"]["frameworks"] == ["torch", "nccl"]
    assert [file["lines"] for file in report["inputs"]] == [0, 0, 0, 0]
    assert all(file["bytes"] > 0 for file in report["inputs"])


def test_dumps_named_one_by_one(tmp_path: Path) -> None:
    never().write(tmp_path)
    report = diagnose_logs([str(path) for path in sorted(tmp_path.iterdir())])
    assert report.root_cause == "hang.straggler"
    assert diagnose_logs([str(tmp_path / "nccl_trace_rank_*")]).root_cause == "hang.straggler"


def test_the_terminal_names_rank_and_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    never().write(tmp_path)
    main(["logs", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "hang.straggler" in shown
    assert "rank 2" in shown
    assert "/workspace/train/loop.py:" in shown
    assert "Read 4 files (" in shown
    assert "0 lines" not in shown


def test_dumps_in_which_nothing_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    warm(Small()).write(tmp_path)
    assert main(["logs", str(tmp_path)]) == 0
    assert "Nothing found" in capsys.readouterr().out


def test_logs_and_dumps_in_one_folder(tmp_path: Path) -> None:
    never().write(tmp_path / "dumps")
    (tmp_path / "rank_0.log").write_text(LOG)
    (tmp_path / "rank_2.log").write_text(
        'Traceback (most recent call last):\n  File "/workspace/train/loop.py", line 9, in step\n    x = rows[3]\nIndexError: list index out of range\n'
    )
    report = diagnose_logs([str(tmp_path)])
    assert report.root_cause == "job.code"
    assert report.diagnoses[0].ranks == (2,)
    rules = {diagnosis.id: diagnosis.rule for diagnosis in report.diagnoses}
    explained = {diagnosis.rule: rules.get(diagnosis.explained_by or "") for diagnosis in report.diagnoses}
    assert explained == {"job/code": None, "hang/dump_missing": "job/code"}


def test_dumps_tell_of_the_last_attempt(tmp_path: Path) -> None:
    never().write(tmp_path / "dumps")
    fails = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nKeyError: 1\n'
    for attempt in (0, 1):
        folder = tmp_path / "run" / f"attempt_{attempt}" / "0"
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(fails if attempt == 0 else TIMEOUT)
    report = diagnose_logs([str(tmp_path)])
    attempts = {diagnosis.rule: diagnosis.attempt for diagnosis in report.diagnoses}
    assert attempts == {"job/code": 1, "hang/dump_missing": 2, "hang/timeout": 2}
    assert report.root_cause == "hang.straggler"


def test_the_host_of_a_rank_out_of_the_log(tmp_path: Path) -> None:
    never().write(tmp_path / "dumps")
    (tmp_path / "job.log").write_text(
        "node-07:4711:4711 [2] NCCL INFO ncclCommInitRankConfig comm 0x5 rank 2 nranks 4 cudaDev 2 nvmlDev 2 busId 3b000 commId 0x1 - Init START\n"
    )
    report = diagnose_logs([str(tmp_path)])
    assert report.diagnoses[0].ranks == (2,)
    assert report.diagnoses[0].hosts == ("node-07",)


def test_a_dump_that_would_run_code_is_refused_beside_good_ones(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    folder = never().write(tmp_path / "dumps")
    (folder / "nccl_trace_rank_3").write_bytes(pickle.dumps({"version": "2.10", "entries": [Harm(mark)]}, 2))
    report = diagnose_logs([str(folder)])
    assert not mark.exists()
    assert report.root_cause == "hang.straggler"
    assert report.diagnoses[0].ranks == (2,)
    (skip,) = report.skips
    assert skip.source.endswith("nccl_trace_rank_3")
    assert "refused" in skip.reason
    assert "'io.open'" in skip.reason


def test_a_dump_that_would_run_code_alone_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = tmp_path / "ran"
    dump = tmp_path / "nccl_trace_rank_0"
    dump.write_bytes(pickle.dumps(Harm(mark), 2))
    assert main(["logs", str(dump)]) == 2
    assert not mark.exists()
    said = capsys.readouterr()
    assert said.out == ""
    assert "refused" in said.err
    with pytest.raises(InputError, match="refused"):
        diagnose_logs([str(dump)])


def test_truncated_dumps_hide_nothing_of_the_rest(tmp_path: Path) -> None:
    folder = never().write(tmp_path)
    whole = (folder / "nccl_trace_rank_0").read_bytes()
    (folder / "nccl_trace_rank_0").write_bytes(whole[:-100])
    report = diagnose_logs([str(folder)])
    assert report.root_cause == "hang.straggler"
    assert report.diagnoses[0].ranks == (2,)
    assert [skip.source.rpartition("/")[2] for skip in report.skips] == ["nccl_trace_rank_0"]


def test_control_characters_in_a_dump_never_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups = {"0": ("de\x1b[31mfault\x07", (0, 1, 2))}
    Small(groups).call((0, 1, 2), "0").call((0, 1), "0", "all\x1b]0;x\x07_reduce", state="started", at=5).write(tmp_path)
    assert main(["logs", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert not {"\x1b", "\x07"} & set(said.out + said.err)


def test_rules_on_dumps_are_not_checked_without_any(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(LOG)
    reasons = {reason for rule, reason in diagnose_logs([str(log)]).not_checked if rule.startswith("hang/dump_")}
    assert reasons == {"no dump was read"}
    never().write(tmp_path / "dumps")
    assert not [rule for rule, _ in diagnose_logs([str(tmp_path)]).not_checked if rule.startswith("hang/dump_")]


def test_dumps_need_neither_torch_nor_numpy(tmp_path: Path) -> None:
    never().write(tmp_path)
    code = f"from memdoctor.cli import main\nassert main(['logs', {str(tmp_path)!r}]) == 1\nimport sys\nassert not {{'torch', 'numpy'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120, cwd=Path(__file__).parent.parent.parent)
