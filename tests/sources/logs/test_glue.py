"""Lines that two ranks glued together, and lines that only look so. A ``¦`` marks where a line is to be cut."""

from __future__ import annotations

import pytest

from memdoctor.sources.logs.glue import split_glued
from memdoctor.sources.logs.prefixes import Prefixes

CUT = [
    "ProcessGroup init complete¦[rank1] RuntimeError: Connection reset by peer",
    "init complete¦[rank1] torch.distributed.DistBackendError: NCCL error",
    "allreduce ok¦[rank3]: Traceback (most recent call last):",
    "loss 3.21¦[rank3]:     raise ValueError()",
    "done.¦[rank3]: ",
    "done¦[rank3]:[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] [Rank 3] x",
    "done¦[default2]:[rank2]: x",
    "done¦[default2]:x",
    "[default0]:[rank0]:     work.wait()¦[default1]:[rank1]: Traceback (most recent call last):",
    "[default0]:rank 0 ok¦[default1]:rank 1 ok¦[default2]:rank 2 ok",
    "[rank0]: ValueError: a¦[rank1]: ValueError: b",
    "MA 0.39 GB         CA 0.39 GB         Max_CA 0 GB ¦[rank1]: Traceback (most recent call last):",
    "Max_CA 0 GB ¦[default1]:[rank1]: x",
    "xyz¦[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] x",
    "xyz ¦[W1129 13:11:50.436076120 socket.cpp:469] [c10d] x",
    "xyz¦[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout",
    "xyz¦W1129 13:09:23.793000 7378 torch/distributed/run.py:874] x",
    "lm loss: 1.0 | grad norm: 2.0 |¦[2026-05-05 06:16:47] node01:1:2 [0] plugin/net.cc:334 NCCL WARN x",
    "lm loss: 1.0 | grad norm: 2.0 |¦[2026-05-05 06:16:47] node01:1:2 [0] plugin/net.cc:334 (recvProxy) NCCL WARN x",
    "grad norm: 2.0 |¦node01:1:2 [0] NCCL INFO x",
    "grad norm: 2.0 | ¦node01:1:2 [0] misc/socket.cc:4 NCCL WARN x",
    "node01:1:2 [0] NCCL INFO a.¦[2026-05-05 06:16:47] node02:3:4 [1] a.cc:1 NCCL WARN b",
    "saving¦ [2025-01-01 10:00:00.123456] iteration        1/      10 | consumed samples:",
    "saving¦  [2025-01-01 10:00:00.123456] successfully saved checkpoint from iteration 5",
    "saving¦[2025-01-01 10:00:00.123456] saving checkpoint at iteration 5",
    "[rank1]: ValueError: x¦ [2025-01-01 10:00:00] iteration        1/      10 |",
    "text¦[2025-01-01 10:00:00,123] [INFO] [logging.py:128:log_dist] [Rank 0] x",
    "text ¦[2025-01-01 10:00:00,123] [WARNING] [lr_schedules.py:759:get_lr] x",
    "[2025-01-01 10:00:00,123] [INFO] [a.py:1:f] x¦[2025-01-01 10:00:00,124] [INFO] [a.py:1:f] y",
    "| step: 22.26¦[Rank 1] time (ms) | fwd: 3.52",
    "total=5.23 MB¦[Rank 1] (after 1 iterations) memory (MB) | allocated: 1.0",
    "training ...¦WARNING:megatron.core.rerun_state_machine:x",
    "done¦ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1)",
    "100%|███| 10/10¦slurmstepd: error: *** STEP 1.0 ON node01 CANCELLED AT 2025-01-01T10:00:00 DUE TO TIME LIMIT ***",
    "100%|███| 10/10¦srun: error: node01: task 3: Exited with exit code 1",
    "[1,0]<stdout>:a¦[1,3]<stderr>:b",
    "12: ok¦[rank3]: Traceback (most recent call last):",
    "node01: ok¦[rank3]: Traceback (most recent call last):",
    "[rank5]: FileNotFoundError: [Errno 2] No such file or directory: '/data/a.idx'¦[rank6]: FileNotFoundError: [Errno 2] x: '/data/b.idx'",
    "[rank5]: ValueError: can't split 'it'¦[rank6]: ValueError: can't split 'it'",
    '[rank7]:   File "/a/b.py", line 1, in step¦[rank7]:     self._init_group(¦[rank7]: torch.cuda.OutOfMemoryError: CUDA out of memory (GPU 7)',
    '[rank7]:     x = [¦[rank6]:   File "/a/b.py", line 1, in f',
]

WHOLE = [
    "",
    "x",
    "see [rank0] for details",
    "see [rank0]: it died",
    "[rank1]: RuntimeError: a peer failed ([rank3]: ValueError: x (y)), see its log",
    "[rank1]: RuntimeError: a peer said '[rank3]: ValueError: x' and left",
    "[rank1]: RuntimeError: a peer's last word was '[rank3]: ValueError: x'",
    "the log says '[rank3]: Traceback (most recent call last):' and ends",
    'print("[rank3]: Traceback (most recent call last):")',
    "as in `[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] x`",
    "errors of [rank3] in the middle of a sentence",
    "ranks[rank0] is wrong",
    "self.buffers[rank0] = torch.empty(1)",
    "    out[rank3]: int = 5",
    "    parts[rank1]: list[int] = []",
    "    buf[offsets[rank0]:offsets[rank1]]",
    "    x = buf[a[rank0]: b[rank1]]",
    "[[rank0], [rank1]]",
    "['a', [rank0], 3]",
    "groups = {rank0: [rank0], rank1: [rank1]}",
    "world [default0]: see above",
    "roles=[default0]:",
    "[PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught",
    "[rank3]:[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] [PG ID 0 PG GUID 0(default_pg) Rank 3] x",
    "[default1]:[rank1]:[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] [Rank 1] x",
    "[default1]:[rank1]: Traceback (most recent call last):",
    "[trainer1|1]: [rank1]: Traceback (most recent call last):",
    "12: [rank12]: Traceback (most recent call last):",
    "12: [default1]:[rank12]:[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] x",
    " 3: node01:1:2 [0] NCCL INFO x",
    "3| [rank3]: Traceback (most recent call last):",
    "node01: [rank12]: Traceback (most recent call last):",
    "node01: [2026-05-05 06:16:47] node01:1:2 [0] plugin/net.cc:334 NCCL WARN x",
    "[3] [rank3]: Traceback (most recent call last):",
    "[worker1]:[rank1]: Traceback (most recent call last):",
    "worker-0 pytorch [rank3]: Traceback (most recent call last):",
    "worker-0 › pytorch [rank3]: Traceback (most recent call last):",
    "(WorkerDict pid=4, ip=10.0.0.2) [rank9]: Traceback (most recent call last):",
    "[1,3]<stderr>:[rank3]: Traceback (most recent call last):",
    "[1,3]<stderr>:node01:1:2 [0] NCCL INFO x",
    "2024-05-01T10:00:00.123456789Z stderr F [default3]:[rank3]:[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] x",
    "2024-05-01T10:00:00.123456789Z stderr F W1129 13:09:23.793000 7378 torch/distributed/run.py:874] x",
    "[2026-05-05 06:16:47] node01:1:2 [0] plugin/net.cc:334 NCCL WARN x",
    "node01:1:2 [0] NCCL INFO x",
    "node01:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
    "[2025-01-01 10:00:00,123] [INFO] [logging.py:128:log_dist] [Rank 0] step=5, skipped=0",
    " [2025-01-01 10:00:00.123456] iteration        1/      10 | consumed samples:            8 |",
    "  [2025-01-01 10:00:00.123456] successfully saved checkpoint from iteration 5",
    " iteration        1/      10 | consumed samples:            8 |",
    "[Rank 0] time (ms) | fwd: 3.52",
    "  time [Rank 0] time (ms) | fwd: 3.52",
    "INFO:megatron.core.timers:(min, max) time across ranks (ms):",
    "logger is WARNING:megatron.core.rerun_state_machine:x",
    "[after dataloaders are built] datetime: 2026-11-29 13:24:52.508928 ",
    "slurmstepd: error: *** STEP 1.0 ON node01 CANCELLED AT 2025-01-01T10:00:00 ***",
    "srun: error: node01: task 3: Exited with exit code 1",
    "see srun: error: above",
    "/opt/[rank0]/log.txt",
    "/opt/a[default0]/b",
    "torch.distributed.DistNetworkError: The client socket has timed out after 8000ms while trying to connect to (127.0.0.1, 29621).",
]


@pytest.mark.parametrize("marked", CUT)
def test_cut(marked: str) -> None:
    assert split_glued(marked.replace("¦", "")) == marked.split("¦")


@pytest.mark.parametrize("raw", WHOLE)
def test_whole(raw: str) -> None:
    assert split_glued(raw) == [raw]


def test_a_tag_behind_a_prefix_that_was_learnt_is_no_glue() -> None:
    prefixes = Prefixes()
    raw = "<14>1 2026-03-14T02:48:41Z n2 train 4005 - - [2026-03-14 02:48:41] [Rank 5] [rank5]: Traceback (most recent call last):"
    assert len(split_glued(raw)) > 1
    prefixes.learn([raw, raw.replace("5", "3"), raw.replace("Traceback", "x")])
    assert split_glued(raw, prefixes.end) == [raw]


def test_number_of_pieces_is_bounded() -> None:
    raw = "x" + "[default1]:x" * 1_000
    pieces = split_glued(raw)
    assert len(pieces) == 64
    assert "".join(pieces) == raw
