"""Each kind of prefix by itself: what is left of the line, and what the prefix said."""

from __future__ import annotations

from typing import Any

import pytest

from memdoctor.sources.logs.prefixes import Prefixes

ROWS: list[tuple[str, str, dict[str, Any]]] = [
    # --- launchers and wrappers
    ("[default0]:starting", "starting", {"local_rank": 0, "stream": "l0"}),
    ("[default11]:    raise ValueError()", "    raise ValueError()", {"local_rank": 11, "stream": "l11"}),
    ("[default3]:", "", {"local_rank": 3}),
    ("[trainer1|1]: hello", "hello", {"rank": 1, "local_rank": 1, "stream": "r1"}),
    ("[trainer13|5]:   File \"a.py\", line 1, in f", "  File \"a.py\", line 1, in f", {"rank": 13, "local_rank": 5, "stream": "r13"}),
    ("[1,3]<stdout>:hello", "hello", {"rank": 3, "stream": "r3"}),
    ("[1,12]<stderr>:  File \"a.py\", line 1, in f", "  File \"a.py\", line 1, in f", {"rank": 12}),
    ("[prterun-node01-123@1,3]<stderr>: hello", "hello", {"rank": 3, "stream": "r3"}),
    ("[pod/worker-0/pytorch] hello", "hello", {"host": "worker-0", "stream": "worker-0"}),
    ("worker-0 › pytorch hello", "hello", {"host": "worker-0", "stream": "worker-0"}),
    ("(WorkerDict pid=4711, ip=10.0.0.2) hello", "hello", {"pid": 4711, "host": "10.0.0.2", "stream": "10.0.0.2:4711"}),
    ("(pid=4711) hello", "hello", {"pid": 4711, "host": None, "stream": "4711"}),
    ("(TaskRunner pid=9)   File \"a.py\"", "  File \"a.py\"", {"pid": 9, "stream": "9"}),
    ("(RayTrainWorker pid=9, ip=10.0.0.2) x [repeated 7x across cluster]", "x [repeated 7x across cluster]", {"pid": 9}),
    ("(FSDP(actor) pid=12) hello", "hello", {"pid": 12}),
    ("(raylet) worker died", "worker died", {}),
    ("(raylet, ip=10.0.0.2) worker died", "worker died", {"host": "10.0.0.2"}),
    ("(autoscaler +1m2s) hello", "hello", {}),
    ("(worker1, rank=1, pid=2345, ip=10.0.0.2) hello", "hello", {"rank": None, "pid": 2345, "stream": "10.0.0.2:2345"}),
    ("(train, pid=4711) hello", "hello", {"pid": 4711}),
    ("(head, rank=0, pid=2345) hello", "hello", {"rank": None, "pid": 2345}),
    ("[1,mpirank:5,algo-2]<stderr>:hello", "hello", {"rank": 5, "host": "algo-2", "stream": "r5"}),
    ("[trainer1]:[rank5]: hello", "hello", {"rank": 5, "local_rank": 1, "stream": "l1"}),
    ("[2026-03-14T14:48:05.447+0000] {subprocess.py:93} INFO - [rank5]: hello", "hello", {"rank": 5, "level": None, "time": "2026-03-14T14:48:05.447+00:00"}),
    ("[2026-03-14, 14:48:05 UTC] {subprocess.py:93} INFO - hello", "hello", {"time": "2026-03-14T14:48:05Z"}),
    ("[2026-03-14T14:48:05.447000Z] 7b2a54e9 [rank=5] || hello", "hello", {"rank": 5, "stream": "r5"}),
    # --- ranks
    ("[rank0]: Traceback (most recent call last):", "Traceback (most recent call last):", {"rank": 0, "stream": "r0"}),
    ("[rank1]:   File \"die.py\", line 8, in <module>", "  File \"die.py\", line 8, in <module>", {"rank": 1, "stream": "r1"}),
    ("[rank1023]:     raise ValueError()", "    raise ValueError()", {"rank": 1023}),
    ("[rank1]: ", "", {"rank": 1}),
    ("[rank1]:", "", {"rank": 1}),
    ("[rank1] RuntimeError: x", "RuntimeError: x", {"rank": 1, "stream": "r1"}),
    ("[rank: 2] Child process with PID 4 terminated with code 1.", "Child process with PID 4 terminated with code 1.", {"rank": 2}),
    ("[Rank 0] time (ms) | fwd: 3.52 | bwd: 750.68", "time (ms) | fwd: 3.52 | bwd: 750.68", {"rank": 0, "stream": ""}),
    ("[Rank 0] step=5, skipped=0, lr=[0.1], mom=[(0.9, 0.999)]", "step=5, skipped=0, lr=[0.1], mom=[(0.9, 0.999)]", {"rank": 0}),
    ("[Rank 1] comm op: all_reduce | time (ms): 0.10", "comm op: all_reduce | time (ms): 0.10", {"rank": 1}),
    # --- times and headers that sites and loggers of their own print
    ("03/14/2026 02:48:05 PM - ERROR - [rank3]: x", "x", {"rank": 3, "level": "ERROR", "time": "2026-03-14T14:48:05"}),
    ("[03/14/26 14:48:05] ERROR    x", "x", {"level": "ERROR", "time": "2026-03-14T14:48:05"}),
    ("26/03/14 14:48:05 ERROR x", "x", {"level": "ERROR", "time": "2026-03-14T14:48:05"}),
    ("(2026-03-14 14:48:05) x", "x", {"time": "2026-03-14T14:48:05"}),
    ("2026-03-14 14:48:05; x", "x", {"time": "2026-03-14T14:48:05"}),
    ("2026-03-14 14:48:05|x", "x", {"time": "2026-03-14T14:48:05"}),
    ("[14/Mar/2026:14:48:05 +0000] x", "x", {"time": "2026-03-14T14:48:05+00:00"}),
    ("Sat, 14 Mar 2026 14:48:05 +0000 x", "x", {"time": "2026-03-14T14:48:05+00:00"}),
    ("Sat Mar 14 02:48:05 PM UTC 2026: x", "x", {"time": "2026-03-14T14:48:05Z"}),
    ("Sat Mar 14 14:48:05 2026[1,5]<stderr>:x", "x", {"rank": 5, "time": "2026-03-14T14:48:05"}),
    ("Sat 2026-03-14 14:48:05 UTC node-02 torchrun[42]: x", "x", {"host": "node-02", "pid": 42, "time": "2026-03-14T14:48:05Z"}),
    ('time="2026-03-14T14:48:05Z" x', "x", {"time": "2026-03-14T14:48:05Z"}),
    ("ts=2026-03-14T14:48:05Z x", "x", {"time": "2026-03-14T14:48:05Z"}),
    ("E20260314 14:48:05.447000 12345 a.cpp:6] x", "x", {"level": "ERROR", "time": "2026-03-14T14:48:05.447000"}),
    ("[Mar14 14:48] NVRM: x", "NVRM: x", {}),
    ("[  +0.000004] NVRM: x", "NVRM: x", {}),
    ("kern  :err   : [Sat Mar 14 14:48:05 2026] NVRM: x", "NVRM: x", {"time": "2026-03-14T14:48:05"}),
    ("2026-03-14 14:48:05 [error    ] x", "x", {"level": "ERROR"}),
    ("2026-03-14 14:48:05,447 [train] INFO: x", "x", {"level": "INFO", "logger": "train"}),
    ("[2026-03-14 14:48:05] actor.py:10 - x", "x", {"logger": "actor.py"}),
    ("[INFO] [train] [2026-03-14 14:48:05,447] x", "x", {"level": "INFO", "logger": "train", "time": "2026-03-14T14:48:05.447"}),
    ("train - 2026-03-14 14:48:05,447 - INFO - x", "x", {"level": "INFO", "logger": "train", "time": "2026-03-14T14:48:05.447"}),
    ("[03/14 14:48:05 d2.engine]: x", "x", {"logger": "d2.engine", "time": "2026-03-14T14:48:05"}),
    # --- c10 and glog
    (
        "[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught",
        "[Rank 3] Watchdog caught",
        {"rank": None, "level": "ERROR", "logger": "ProcessGroupNCCL.cpp", "time": "2026-10-23T02:44:30.941975491", "stream": ""},
    ),
    ("[E321 02:07:08.408271123 ProcessGroupNCCL.cpp:632] x", "x", {"time": "2026-03-21T02:07:08.408271123"}),
    ("[W1129 13:11:50.436076120 socket.cpp:469] [c10d] waiting", "[c10d] waiting", {"level": "WARNING", "time": "2026-11-29T13:11:50.436076120"}),
    ("[I1129 13:11:26.602286140 TCPStore.cpp:316] [c10d - debug] connected", "[c10d - debug] connected", {"level": "INFO"}),
    ("[F1129 13:11:26.602286140 a/b/alloc.cpp:3] x", "x", {"level": "CRITICAL", "logger": "a/b/alloc.cpp"}),
    ("[rank3]:[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:632] x", "x", {"rank": 3, "level": "ERROR", "stream": ""}),
    ("[rank0]:W0501 10:00:00.123000 99 torch/_dynamo/convert_frame.py:844] [0/8] x", "[0/8] x", {"rank": 0, "pid": 99, "level": "WARNING"}),
    (
        "[rank2]:[E1023 02:44:30.941975491 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 2] x",
        "[PG ID 0 PG GUID 0(default_pg) Rank 2] x",
        {"rank": 2},
    ),
    ("[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog", "[Rank 0] Watchdog", {"rank": None, "level": "ERROR", "time": None}),
    ("[W socket.cpp:601] [c10d] The client socket", "[c10d] The client socket", {"level": "WARNING", "logger": "socket.cpp"}),
    ("E0321 02:07:08.408271 12345 ProcessGroupNCCL.cpp:607] x", "x", {"pid": None, "level": "ERROR", "time": "2026-03-21T02:07:08.408271"}),
    (
        "W1129 13:09:23.793000 7378 torch/distributed/run.py:874] Setting OMP_NUM_THREADS",
        "Setting OMP_NUM_THREADS",
        {"pid": 7378, "level": "WARNING", "logger": "torch/distributed/run.py", "time": "2026-11-29T13:09:23.793000", "stream": ""},
    ),
    ("W1129 13:09:23.793000 7378 torch/distributed/run.py:874] ", "", {"pid": 7378}),
    ("E0501 10:00:00.123000 139845111 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: 1)", "failed (exitcode: 1)", {"level": "ERROR"}),
    # --- NCCL
    ("node-1:4711:4800 [0] NCCL INFO Bootstrap: Using eth0", "NCCL INFO Bootstrap: Using eth0", {"host": "node-1", "pid": 4711, "level": "INFO", "stream": "node-1:4711"}),
    ("node-1:4711:4800 [3] misc/socket.cc:484 NCCL WARN socket", "NCCL WARN socket", {"logger": "misc/socket.cc", "level": "WARNING"}),
    (
        "[2026-05-05 06:16:47] node-1:4711:4800 [7] plugin/net.cc:334 NCCL WARN Failed",
        "NCCL WARN Failed",
        {"host": "node-1", "pid": 4711, "time": "2026-05-05T06:16:47", "stream": "node-1:4711"},
    ),
    ("[2026-05-05 06:16:47] node-1:4711:4800 [7] transport/net.cc:321 (recvProxy) NCCL WARN Failed", "NCCL WARN Failed", {"logger": "transport/net.cc"}),
    ("a.b.example.com:1:2 [0] 123.456789 ncclAllReduce:12 NCCL TRACE x", "NCCL TRACE x", {"level": "DEBUG", "host": "a.b.example.com"}),
    ("node-1:4711:4800 NCCL CALL ncclAllReduce()", "NCCL CALL ncclAllReduce()", {"pid": 4711}),
    ("10.0.0.1:4711:4800 [0] NCCL INFO x", "NCCL INFO x", {"host": "10.0.0.1"}),
    # --- DeepSpeed
    (
        "[2025-01-01 10:00:00,123] [INFO] [logging.py:128:log_dist] [Rank 0] DeepSpeed Basic Optimizer = AdamW",
        "DeepSpeed Basic Optimizer = AdamW",
        {"rank": 0, "level": "INFO", "logger": "logging.py", "time": "2025-01-01T10:00:00.123", "stream": ""},
    ),
    ("[2025-01-01 10:00:00,123] [INFO] [logging.py:128:log_dist] [Rank -1] x", "x", {"rank": None}),
    ("[2025-01-01 10:00:00,123] [WARNING] [logging.py:96:log_dist] [Rank 0] [deepspeed] OVERFLOW!", "[deepspeed] OVERFLOW!", {"rank": 0, "level": "WARNING"}),
    ("[2025-01-01 10:00:00,123] [INFO] [config.py:674:print]   json = {", "  json = {", {"rank": None}),
    ("[2025-01-01 10:00:00,123] [ERROR] [launch.py:259:sigkill_handler] ['python'] exits with return code = -9", "['python'] exits with return code = -9", {"level": "ERROR"}),
    ("[2025-01-01 10:00:00,123] [INFO] [axolotl.load_model:123] [PID:4711] [RANK:2] loading", "loading", {"pid": 4711, "rank": 2, "logger": "axolotl.load_model"}),
    # --- Python loggers
    ("INFO:megatron.core.timers:(min, max) time across ranks (ms):", "(min, max) time across ranks (ms):", {"level": "INFO", "logger": "megatron.core.timers"}),
    ("INFO:megatron.core.tokenizers.utils.build_tokenizer: > padded vocab", " > padded vocab", {"level": "INFO"}),
    ("ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0", "failed (exitcode: 1) local_rank: 0", {"level": "ERROR"}),
    ("WARNING:__main__:*****", "*****", {"level": "WARNING", "logger": "__main__"}),
    ("CRITICAL:root:x", "x", {"level": "CRITICAL", "logger": "root"}),
    (
        "[2024-03-01 12:00:00,123] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -9)",
        "failed (exitcode: -9)",
        {"level": "ERROR", "logger": "torch.distributed.elastic.multiprocessing.api", "time": "2024-03-01T12:00:00.123"},
    ),
    ("2024-05-01 10:00:00,123 - INFO - trainer - start", "start", {"level": "INFO", "logger": "trainer", "time": "2024-05-01T10:00:00.123"}),
    ("2024-05-01 10:00:00,123 - my.module - WARNING - start", "start", {"level": "WARNING", "logger": "my.module"}),
    ("2024-05-01 10:00:00,123 - ERROR - start", "start", {"level": "ERROR", "logger": None}),
    ("2024-05-01 10:00:00,123 - ERROR - Traceback (most recent call last):", "Traceback (most recent call last):", {"level": "ERROR"}),
    ("[2024-05-01 10:00:00,123][my.module][INFO] - start", "start", {"level": "INFO", "logger": "my.module"}),
    ("2024-05-01 10:00:00.123 | INFO     | pkg.mod:func:12 - start", "start", {"level": "INFO", "logger": "pkg.mod:func:12", "time": "2024-05-01T10:00:00.123"}),
    ("2024-05-01 10:00:00.123 | SUCCESS  | __main__:<module>:12 - done", "done", {"level": "INFO"}),
    ("2024-05-01 10:00:00 | INFO | fairseq.trainer | start", "start", {"logger": "fairseq.trainer"}),
    ("[NeMo W 2024-05-01 10:00:00 nemo_logging:361] start", "start", {"level": "WARNING", "logger": "nemo_logging:361", "time": "2024-05-01T10:00:00"}),
    ("[INFO|trainer.py:123] 2024-05-01 10:00:00,123 >> start", "start", {"level": "INFO", "logger": "trainer.py", "time": "2024-05-01T10:00:00.123"}),
    ("[WARNING|2025-01-05 10:00:00] llamafactory.hparams.parser:148 >> start", "start", {"level": "WARNING", "logger": "llamafactory.hparams.parser:148"}),
    ("01/02/2024 10:00:00 - INFO - __main__ - start", "start", {"level": "INFO", "logger": "__main__", "time": "2024-01-02T10:00:00"}),
    ("05/01 10:00:00 - mmengine - INFO - start", "start", {"level": "INFO", "time": "2026-05-01T10:00:00"}),
    ("INFO 05-01 10:00:00 llm_engine.py:72] start", "start", {"level": "INFO", "logger": "llm_engine.py", "time": "2026-05-01T10:00:00"}),
    ("INFO 05-01 10:00:00 [core.py:72] start", "start", {"logger": "core.py"}),
    ("[2025-05-01 10:00:00 TP0] Load weight begin", "Load weight begin", {"time": "2025-05-01T10:00:00"}),
    ("2024-05-01 10:00:00,123\tINFO worker.py:1612 -- Started a local Ray instance.", "Started a local Ray instance.", {"level": "INFO", "logger": "worker.py"}),
    ("2024-05-01 10:00:00 ERROR    wide", "wide", {"level": "ERROR"}),
    ("2024-05-01 10:00:00 ERROR     raise ValueError()", "    raise ValueError()", {"level": "ERROR"}),
    ("2024-05-01 10:00:00 [ERROR] x", "x", {"level": "ERROR"}),
    ("2024-05-01 10:00:00 [ERROR] RuntimeError: x", "RuntimeError: x", {"level": "ERROR", "logger": None}),
    ("2024-05-01 10:00:00.123456: W tensorflow/core/util/port.cc:113] x", "x", {"level": "WARNING"}),
    ("2024-05-01 10:00:00,123: rank3[4711][MainThread]: INFO: composer.trainer: x", "x", {"rank": 3, "pid": 4711, "level": "INFO"}),
    # --- Megatron-LM and Slurm
    (" [2025-01-01 10:00:00.123456] iteration        1/      10 | consumed samples:", "iteration        1/      10 | consumed samples:", {"time": "2025-01-01T10:00:00.123456"}),
    (" [2025-01-01 10:00:00] iteration        1/      10 |", "iteration        1/      10 |", {"time": "2025-01-01T10:00:00"}),
    ("  [2025-01-01 10:00:00.1] successfully saved checkpoint", "successfully saved checkpoint", {"time": "2025-01-01T10:00:00.1"}),
    ("[2025-01-01 10:00:00] | MnRtt/Rnk: 12.34ms/3 |", "| MnRtt/Rnk: 12.34ms/3 |", {}),
    ("[2025-01-01T10:00:00.123] error: Node node01 not responding", "error: Node node01 not responding", {"time": "2025-01-01T10:00:00.123"}),
    # --- system logs
    ("[12345.678901] NVRM: Xid (PCI:0000:3b:00): 79", "NVRM: Xid (PCI:0000:3b:00): 79", {"time": None}),
    ("[    5.678901] NVRM: x", "NVRM: x", {"time": None}),
    ("[12345.678901] [T123] NVRM: x", "[T123] NVRM: x", {}),
    ("[12345.678901] node01 kernel: NVRM: x", "NVRM: x", {"host": "node01", "logger": "kernel"}),
    ("[Tue Oct  1 13:00:00 2024] NVRM: Xid", "NVRM: Xid", {"time": "2024-10-01T13:00:00"}),
    ("kern  :warn  : 2024-10-01T13:00:00,283302+00:00 NVRM: x", "NVRM: x", {"time": "2024-10-01T13:00:00.283302+00:00"}),
    ("kern  :notice: [12345.678901] NVRM: x", "NVRM: x", {}),
    ("4,1234,5678901,-;NVRM: x", "NVRM: x", {}),
    ("[Oct 01 2024 13:00:00] [ERROR] [tid 841] x", "[tid 841] x", {"time": "2024-10-01T13:00:00", "level": "ERROR"}),
    ("Oct 01 13:00:00 node01 kernel: NVRM: Xid", "NVRM: Xid", {"host": "node01", "logger": "kernel", "time": "2026-10-01T13:00:00"}),
    ("Oct  1 13:00:00 node01 python[4711]:   File \"a.py\"", "  File \"a.py\"", {"pid": 4711, "host": "node01", "stream": "node01:4711"}),
    ("<13>Oct 01 13:00:00 node01 kernel: x", "x", {"host": "node01"}),
    ("<34>1 2024-10-11T22:14:15.003Z node01 python 4711 ID47 - x", "x", {"host": "node01", "pid": 4711, "time": "2024-10-11T22:14:15.003Z"}),
    ("2024-10-01T13:00:00+0200 node01 kernel: x", "x", {"host": "node01", "time": "2024-10-01T13:00:00+02:00"}),
    ("2024-10-01T13:00:00+0200 node01 slurmd[99]: x", "x", {"pid": 99, "logger": "slurmd"}),
    ("2024-05-01T10:00:00.123456789Z stderr F   File \"a.py\"", "  File \"a.py\"", {"time": "2024-05-01T10:00:00.123456789Z", "stream": ""}),
    ("2024-05-01T10:00:00.123456789Z stdout P half", "half", {}),
    ("2024-05-01T10:00:00Z stdout F ", "", {}),
    ("2024-05-01T10:00:00.123456789Z hello", "hello", {"time": "2024-05-01T10:00:00.123456789Z"}),
    ("2024-05-01 10:00:00 something happened", "something happened", {"time": "2024-05-01T10:00:00"}),
    ("[10:00:00] INFO     start", "start", {"level": "INFO", "time": None}),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "text", "expected"), ROWS, ids=[raw[:50] for raw, _, _ in ROWS])
def test_prefix(raw: str, text: str, expected: dict[str, Any]) -> None:
    line = Prefixes(year_hint=2026).strip(raw)
    assert line.text == text
    for name, value in expected.items():
        got = getattr(line, name)
        assert (got.iso if name == "time" and got is not None else got) == value, name


def test_time_alone_takes_the_date_that_the_log_printed_before() -> None:
    prefixes = Prefixes()
    first, second = (prefixes.strip(raw).time for raw in ("2024-05-01 23:59:50 start", "[00:00:10] INFO     x"))
    assert first is not None
    stamp = second
    assert stamp is not None
    assert stamp.iso == "2024-05-02T00:00:10"


def test_rank_and_host_of_the_file_where_the_line_says_nothing() -> None:
    prefixes = Prefixes(file_rank=5, file_host="node02")
    plain, ranked, hosted = (prefixes.strip(raw) for raw in ("plain", "[rank7]: x", "node01:1:2 [0] NCCL INFO x"))
    assert (plain.rank, plain.host, plain.stream) == (5, "node02", "")
    assert (ranked.rank, ranked.host) == (7, "node02")
    assert (hosted.rank, hosted.host) == (5, "node01")


@pytest.mark.parametrize(
    ("raw", "rank"),
    [
        ("[Rank 3] (after 1 iterations) memory (MB) | allocated: 1.0 | max allocated: 2.0", 3),
        ("[Rank 3] (before save_checkpoint for iteration 1) memory (MB) | allocated: 1.0", 3),
        ("rank=2 time (ms) | forward: 1.0", 2),
    ],
)
def test_rank_inside_a_message_is_read_and_stays(raw: str, rank: int) -> None:
    line = Prefixes().strip(raw)
    assert (line.text, line.rank, line.stream) == (raw, rank, "")
