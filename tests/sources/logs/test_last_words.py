"""What is shown of a failure in which no line looks like an error."""

from __future__ import annotations

from pathlib import Path

from memdoctor.pipeline import diagnose_logs

STEPS = "".join(f"step {number} loss 2.{9 - number}000\n" for number in range(1, 9))
END = "srun: error: node-01: task 0: Exited with exit code 3\n"


def shown(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text)
    report = diagnose_logs([str(folder)])
    assert report.root_cause == "job.unexplained"
    return [evidence.text for evidence in report.diagnoses[0].evidence]


def test_the_last_lines_before_the_end_are_shown(tmp_path: Path) -> None:
    said = "opening the store\nthe lease on shard 17 is gone\n"
    assert shown(tmp_path, train=STEPS + said + "\n-----\n" + END) == [END.strip(), *said.splitlines()]


def test_step_lines_are_no_words(tmp_path: Path) -> None:
    assert shown(tmp_path, train=STEPS + END) == [END.strip()]


def test_words_far_before_the_end_are_not_shown(tmp_path: Path) -> None:
    assert shown(tmp_path, train="the lease on shard 17 is gone\n" + 3 * STEPS + END) == [END.strip()]


def test_a_line_that_looks_like_an_error_says_more(tmp_path: Path) -> None:
    evidence = shown(tmp_path, train="opening the store\nerror: the lease is gone\nbye\n" + END)
    assert "bye" not in evidence
    assert "error: the lease is gone" in evidence


def test_the_rank_that_ended_speaks_in_its_own_file(tmp_path: Path) -> None:
    end = "E0314 02:58:48.355000 4242 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 7) local_rank: 1 (pid: 4315) of binary: python\n"
    evidence = shown(tmp_path, rank_0=STEPS, rank_1=STEPS + "the lease on shard 17 is gone\n", launcher=end)
    assert "the lease on shard 17 is gone" in evidence
