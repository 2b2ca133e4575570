"""What looks like a prefix and is a part of the message."""

from __future__ import annotations

import pytest

from memdoctor.sources.logs.prefixes import Prefixes

STAY = [
    "",
    " ",
    "loss: 3.2",
    "12: not a task",
    "[3] not a rank",
    "3| not a task",
    "node01: not known to be a host",
    "worker-0 pytorch not known to be a pod",
    "[epoch1]: loss 3",
    "[Rank 3] Watchdog caught collective operation timeout",
    "[Rank 0]: Ranks 1 failed to pass monitoredBarrier in 5000 ms",
    "[PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog",
    "[PG ID 0 PG GUID 0(default_pg) Rank 1] ProcessGroupNCCL destructor entered.",
    "[c10d] The client socket has timed out",
    "[0]:",
    "[rank]: x",
    "[ranking0]: x",
    "[rank0",
    "[rank0]x",
    "[default]:x",
    "[default0] x",
    "[1, 3]<stdout>:x",
    "[1,3] x",
    "[1,3]<stdlog>:x",
    "(min, max) time across ranks (ms):",
    "(pid: 4711) x",
    "(pid=x) y",
    "(TP, PP) mismatch after resume",
    "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer",
    "NCCL version 2.27.5+cuda12.9",
    "node-1:4711 [0] NCCL INFO too few numbers",
    "ncclInternalError: Internal check failed.",
    "/opt/a.py:12: UserWarning: x",
    "  warnings.warn(",
    '  File "/opt/a.py", line 83, in wrapper',
    "RuntimeError: [E1023 not a header",
    "WARNING: one_logger package is required",
    "INFO megatron",
    "ERROR: x",
    "Error:foo:bar",
    "[INFO] x",
    "1773499685 tokens",
    "03/14 of the data",
    "3/14/2026 is the deadline",
    "(2 of 4) x",
    "<class 'int'> x",
    "time=5.2 loss=3",
    "Mar 14, 2026 is the deadline",
    "train - 5 - INFO - x",
    "[trainer1]: x",
    "user  : root",
    "[WARNING]  async_io requires the dev libaio .so object",
    "[NeMo] x",
    "[INFO|trainer.py] x",
    "[E] x",
    "[W kernel] x",
    "E1023 meters",
    "[E1023 02:44 x.cpp:1] y",
    "[12.5] seconds",
    "[1.0, 2.0] x",
    "[2025] x",
    "[2025-01-01] x",
    "[after dataloaders are built] datetime: 2026-11-29 13:24:52.508928 ",
    "2024",
    "2024-05-01",
    "2024-05-01 is the day",
    "2024-05-01 10:00:00",
    "10:00:00 is the time",
    "3:02:01 elapsed",
    "100%|██████████| 10/10 [00:10<00:00,  1.0it/s]",
    "{'loss': 3.2, 'epoch': 1.0}",
    "Oct 01 was a day",
    "October 01 13:00:00 x",
    "Monday: x",
    " iteration        1/      10 | consumed samples:            8 |",
    "    name ...........: (1.0, 2.0)",
    "     0: Linear",
    "  time      : 2026-11-29_13:09:27",
    "srun: error: node01: task 3: Exited with exit code 1",
    "slurmstepd: error: *** STEP 123.0 ON node01 CANCELLED AT 2025-01-01T10:00:00 DUE TO TIME LIMIT ***",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f)",
    "CPU Virtual Memory:  used = 1.96 GB, percent = 8.3%",
    "<no kernel> x",
    "<34> x",
    "> setting random seeds to 1234 ...",
    "****",
    "\x00\x01",
    "ünïcödé: x",
]


@pytest.mark.parametrize("raw", STAY)
def test_stays(raw: str) -> None:
    line = Prefixes(year_hint=2026).strip(raw)
    assert line.text == raw
    assert (line.rank, line.local_rank, line.host, line.level, line.stream) == (None, None, None, None, "")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("[rank0]: [rank1]: x", "[rank1]: x"),
        ("INFO:a:INFO:b:x", "INFO:b:x"),
        # Behind a header the message begins, and may begin like a wrapper.
        ("INFO:root:(pid=4) x", "(pid=4) x"),
        ("INFO:root:[1,3]<stdout>:x", "[1,3]<stdout>:x"),
    ],
)
def test_what_follows_stays(raw: str, text: str) -> None:
    assert Prefixes().strip(raw).text == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("[2024-13-01 10:00:00] x", "x"),
        ("[E9999 99:99:99.999999999 a.cpp:1] x", "x"),
        ("[2024-02-30 10:00:00,123] [INFO] [a.py:1:f] x", "x"),
        ("Oct 99 25:61:61 node01 kernel: x", "x"),
    ],
)
def test_nonsense_times_are_none(raw: str, text: str) -> None:
    line = Prefixes(year_hint=2026).strip(raw)
    assert line.text == text
    assert line.time is None
