"""Prefixes of several kinds on one line, outermost first."""

from __future__ import annotations

from typing import Any

import pytest

from memdoctor.sources.logs.prefixes import Prefixes

C10 = "[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] "
ELASTIC = "E1129 13:09:37.817000 7989 torch/distributed/elastic/multiprocessing/api.py:1002] "
DEEPSPEED = "[2025-01-01 10:00:00,123] [INFO] [logging.py:128:log_dist] [Rank 9] "

ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("[default1]:[rank1]: Traceback (most recent call last):", "Traceback (most recent call last):", {"rank": 1, "local_rank": 1, "stream": "l1"}),
    ("[default1]:[rank1]:     raise ValueError()", "    raise ValueError()", {"stream": "l1"}),
    ("[default1]:[rank9]:" + C10 + "[Rank 9] x", "[Rank 9] x", {"rank": 9, "local_rank": 1, "stream": "l1", "level": "ERROR"}),
    ("[trainer9|1]: [rank9]: x", "x", {"rank": 9, "local_rank": 1, "stream": "r9"}),
    ("[default3]:" + DEEPSPEED + "x", "x", {"rank": 9, "local_rank": 3, "stream": "l3"}),
    ("[default3]:node01:12:13 [3] NCCL INFO x", "NCCL INFO x", {"host": "node01", "pid": 12, "local_rank": 3, "stream": "l3"}),
    ("[default3]:[2026-05-05 06:16:47] node01:12:13 [3] plugin/net.cc:334 NCCL WARN x", "NCCL WARN x", {"stream": "l3", "logger": "plugin/net.cc"}),
    ("[default3]: [2025-01-01 10:00:00.123456] iteration 1/ 10 |", "iteration 1/ 10 |", {"time": "2025-01-01T10:00:00.123456", "stream": "l3"}),
    ("[default3]:WARNING:megatron.core.rerun_state_machine:x", "x", {"level": "WARNING", "stream": "l3"}),
    ("[1,9]<stderr>:[rank9]: x", "x", {"rank": 9, "stream": "r9"}),
    ("[1,9]<stderr>:[rank9]:" + C10 + "x", "x", {"rank": 9, "stream": "r9"}),
    ("[1,9]<stdout>:" + DEEPSPEED + "x", "x", {"rank": 9, "level": "INFO"}),
    ("(WorkerDict pid=4, ip=10.0.0.2) [rank9]: x", "x", {"rank": 9, "pid": 4, "host": "10.0.0.2", "stream": "10.0.0.2:4"}),
    ("(WorkerDict pid=4, ip=10.0.0.2) [rank9]:" + C10 + "x", "x", {"rank": 9, "stream": "10.0.0.2:4"}),
    ("(WorkerDict pid=4) INFO:root:x", "x", {"pid": 4, "logger": "root"}),
    ("(main pid=4) 2024-05-01 10:00:00,123 - INFO - a.b - x", "x", {"pid": 4, "time": "2024-05-01T10:00:00.123", "logger": "a.b"}),
    ("(train, pid=4) " + ELASTIC + "failed", "failed", {"pid": 7989, "stream": "4"}),
    ("[pod/worker-0/pytorch] [default3]:[rank3]: x", "x", {"host": "worker-0", "rank": 3, "local_rank": 3, "stream": "worker-0/l3"}),
    ("[pod/worker-0/pytorch] [rank3]: x", "x", {"stream": "worker-0/r3"}),
    ("[pod/worker-0/pytorch] 2024-05-01T10:00:00Z [rank3]: x", "x", {"time": "2024-05-01T10:00:00Z", "stream": "worker-0/r3"}),
    ("[pod/worker-0/pytorch] node01:1:2 [0] NCCL INFO x", "NCCL INFO x", {"host": "worker-0", "pid": 1, "stream": "worker-0"}),
    ("worker-0 › pytorch [default3]:x", "x", {"host": "worker-0", "stream": "worker-0/l3"}),
    ("2024-05-01T10:00:00.123Z stderr F [default3]:[rank11]:     raise x", "    raise x", {"rank": 11, "time": "2024-05-01T10:00:00.123Z", "stream": "l3"}),
    ("2024-05-01T10:00:00.123Z stderr F [rank11]:" + C10 + "x", "x", {"rank": 11, "level": "ERROR", "time": "2024-05-01T10:00:00.123Z"}),
    ("2024-05-01T10:00:00.123Z stderr F " + ELASTIC + "x", "x", {"level": "ERROR", "pid": 7989}),
    ("2024-05-01T10:00:00.123Z stdout F " + DEEPSPEED + "x", "x", {"rank": 9, "level": "INFO", "time": "2024-05-01T10:00:00.123Z"}),
    ("2024-05-01T10:00:00.123Z stdout F (pid=4) [rank1]: x", "x", {"rank": 1, "pid": 4}),
    ("2024-05-01T10:00:00.123Z 2024-05-01 10:00:00,123 - INFO - a - x", "x", {"level": "INFO", "time": "2024-05-01T10:00:00.123Z"}),
    ("2024-05-01 10:00:00 [rank1]: x", "x", {"rank": 1, "stream": "r1"}),
    ("2024-05-01 10:00:00 [default1]:[rank1]:" + C10 + "x", "x", {"rank": 1, "level": "ERROR"}),
    ("[2024-05-01 10:00:00] [default1]:x", "x", {"local_rank": 1}),
    ("Oct 01 13:00:00 node01 kernel: [12345.678901] NVRM: Xid", "NVRM: Xid", {"host": "node01"}),
    ("Oct 01 13:00:00 node01 python[4]: [rank1]: x", "x", {"rank": 1, "pid": 4, "stream": "node01:4"}),
    ("Oct 01 13:00:00 node01 train.sh[4]: [default1]:[rank1]:   File", "  File", {"rank": 1, "stream": "node01:4/l1"}),
    ("Oct 01 13:00:00 node01 python[4]: 2024-05-01 10:00:00,123 - INFO - a - x", "x", {"level": "INFO", "logger": "a"}),
    ("2024-10-01T13:00:00+0200 node01 python[4]: [rank1]:" + C10 + "x", "x", {"rank": 1, "host": "node01"}),
    ("ERROR:root:[rank3]: x", "x", {"rank": 3, "level": "ERROR"}),
    ("2024-05-01 10:00:00,123 - INFO - a - [rank3]: x", "x", {"rank": 3}),
    ("[rank3]:2024-05-01 10:00:00,123 - INFO - a - x", "x", {"rank": 3, "level": "INFO"}),
    ("[rank0]:[2024-03-01 12:00:00,123] torch._dynamo.convert_frame: [WARNING] x", "x", {"rank": 0, "level": "WARNING"}),
    ("[rank3]: " + C10 + "x", "x", {"rank": 3, "level": "ERROR"}),
]  # fmt: skip

LABELLED: list[tuple[str, str, dict[str, Any]]] = [
    ("12: [rank12]: x", "x", {"rank": 12, "stream": "r12"}),
    (" 3: [rank3]:     raise x", "    raise x", {"rank": 3, "stream": "r3"}),
    (" 3: plain", "plain", {"rank": 3, "stream": "r3"}),
    (" 3:      0: Linear", "     0: Linear", {"rank": 3}),
    ("12: [rank12]:" + C10 + "[Rank 12] x", "[Rank 12] x", {"rank": 12, "stream": "r12", "level": "ERROR"}),
    ("12: node01:12:13 [4] NCCL INFO x", "NCCL INFO x", {"rank": 12, "host": "node01", "stream": "r12"}),
    (" 9: " + DEEPSPEED + "x", "x", {"rank": 9, "level": "INFO"}),
    (" 0:  [2025-01-01 10:00:00.1] iteration 1/ 10 |", "iteration 1/ 10 |", {"rank": 0, "time": "2025-01-01T10:00:00.1"}),
]


def check(prefixes: Prefixes, raw: str, text: str, expected: dict[str, Any]) -> None:
    line = prefixes.strip(raw)
    assert line.text == text
    for name, value in expected.items():
        got = getattr(line, name)
        assert (got.iso if name == "time" and got is not None else got) == value, name


@pytest.mark.parametrize(("raw", "text", "expected"), ROWS, ids=[raw[:60] for raw, _, _ in ROWS])
def test_stacked(raw: str, text: str, expected: dict[str, Any]) -> None:
    check(Prefixes(year_hint=2026), raw, text, expected)


@pytest.mark.parametrize(("raw", "text", "expected"), LABELLED, ids=[raw[:60] for raw, _, _ in LABELLED])
def test_under_srun_labels(raw: str, text: str, expected: dict[str, Any]) -> None:
    prefixes = Prefixes(year_hint=2026)
    prefixes.learn([f"{task % 16:2d}: line" for task in (0, 3, 1, 1, 12, 15, 0)])
    check(prefixes, raw, text, expected)


def test_prints_and_traceback_of_one_process_share_a_stream() -> None:
    """Genuine lines of torchrun's tee: only the traceback carries [rank1] as well."""
    prefixes = Prefixes()
    lines = [
        "[default1]:rank 1 allreduce ok [2.0, 2.0, 2.0, 2.0]",
        "[default1]:[rank1]: Traceback (most recent call last):",
        '[default1]:[rank1]:   File "/home/user/work/die_exc.py", line 8, in <module>',
        "[default1]:[rank1]: ValueError: loss is NaN at iteration 7 on rank 1",
    ]
    assert {prefixes.strip(raw).stream for raw in lines} == {"l1"}


def test_lines_that_follow_a_header_share_its_stream() -> None:
    prefixes = Prefixes(year_hint=2026)
    for head in ("[rank3]:" + C10, C10, DEEPSPEED, ELASTIC, "ERROR:root:"):
        streams = [prefixes.strip(raw).stream for raw in (head + "Stack trace of the failed collective:", "#0 all_reduce from c10d.py:83")]
        assert streams == ["", ""]
