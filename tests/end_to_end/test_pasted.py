"""Logs as people paste them: without the head of a traceback, without its end, with what Python prints of errors that it swallowed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.83 GiB. GPU 0 has a total capacity of 79.15 GiB of which 5.50 GiB is free. "
    "Of the allocated memory 70.36 GiB is allocated by PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated."
)
FRAMES = """\
  File "/job/train.py", line 90, in step
    loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))
  File "/usr/local/lib/python3.10/site-packages/torch/nn/functional.py", line 3029, in cross_entropy
    return torch._C._nn.cross_entropy_loss(input, target, weight, _Reduction.get_enum(reduction), ignore_index, label_smoothing)
"""
DONE = " [2026-11-29 13:30:56.6] iteration       14/      14 | consumed samples: 112 | elapsed time per iteration (ms): 117.6 | lm loss: 6.2E+00 |\n"
DONE += "[after training is done] datetime: 2026-11-29 13:31:00\n"


def diagnose(tmp_path: Path, text: str) -> Report:
    (tmp_path / "train.log").write_text(text)
    return diagnose_logs([str(tmp_path / "train.log")])


@pytest.mark.parametrize("head", ["", "Traceback (most recent call last):\n", "    x = self.block(x)\n"])
def test_frames_above_an_exception_count_without_their_head(tmp_path: Path, head: str) -> None:
    report = diagnose(tmp_path, head + FRAMES + OOM + "\n")
    assert report.root_cause == "oom.logits"


def test_an_oom_line_alone_has_no_place(tmp_path: Path) -> None:
    report = diagnose(tmp_path, OOM + "\n")
    assert (report.root_cause, report.confidence) == ("oom.activations", "possible")


def test_a_message_of_several_lines_without_the_head(tmp_path: Path) -> None:
    text = "RuntimeError: Error(s) in loading state_dict for GPT:\n\tsize mismatch for head.weight: copying a param with shape torch.Size([10, 4]) from checkpoint, "
    report = diagnose(tmp_path, text + "the shape in current model is torch.Size([12, 4]).\n")
    assert report.root_cause == "ckpt.mismatch"
    assert len([diagnosis for diagnosis in report.diagnoses if diagnosis.severity == "error"]) == 1


@pytest.mark.parametrize(
    "head", ["Exception ignored in: <function _Iter.__del__ at 0x7f>", "Exception ignored in atexit callback: <function f at 0x7f>"]
)
def test_what_python_ignored_is_no_failure(tmp_path: Path, head: str) -> None:
    swallowed = f'{head}\nTraceback (most recent call last):\n  File "/job/data.py", line 12, in __del__\n    self.close()\nOSError: [Errno 9] Bad file descriptor\n'
    report = diagnose(tmp_path, DONE + swallowed)
    assert report.root_cause is None
    assert report.run.ended == "completed"


def test_the_same_traceback_that_was_not_ignored_is_one(tmp_path: Path) -> None:
    text = 'Traceback (most recent call last):\n  File "/job/data.py", line 12, in close\n    self.close()\nOSError: [Errno 9] Bad file descriptor\n'
    assert diagnose(tmp_path, DONE + text).root_cause is not None


def test_a_traceback_that_is_cut_off_says_where(tmp_path: Path) -> None:
    report = diagnose(tmp_path, '[rank2]: Traceback (most recent call last):\n[rank2]:   File "a.py", line 3, in f\n[rank2]:     g()\n')
    assert report.root_cause == "job.unexplained"
    assert report.diagnoses[0].ranks == (2,)
    assert "Traceback" in report.diagnoses[0].evidence[0].text or "a.py" in report.diagnoses[0].evidence[0].text


def test_a_step_line_after_an_exception_is_no_part_of_its_message(tmp_path: Path) -> None:
    step = " iteration      300/   50000 | consumed samples: 2400 | elapsed time per iteration (ms): 117.6 | lm loss: 6.2E+00 |\n"
    text = 'Traceback (most recent call last):\n  File "/job/push.py", line 12, in push\n    send()\nConnectionError: pushgateway unreachable\n'
    report = diagnose(tmp_path, text + step)
    assert "iteration" not in report.diagnoses[0].message


def test_a_log_that_ends_in_a_time_out_is_not_of_a_running_job(tmp_path: Path) -> None:
    work = "WorkNCCL(SeqNum=48213, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600042 milliseconds before timing out."
    lines = [DONE.split("\n")[0]] * 3 + [
        f"[rank{r}]:[E1129 13:41:01.1 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation timeout: {work}"
        for r in range(4)
    ]
    report = diagnose(tmp_path, "\n".join(lines) + "\n")
    now = time.time()
    os.utime(tmp_path / "train.log", (now, now))
    assert report.run.ended == "failed"
