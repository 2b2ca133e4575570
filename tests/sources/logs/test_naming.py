"""What names tell of rank, local rank, host, attempt and stream, and where they tell nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memdoctor.sources.logs.inputs import LogFile, expand
from memdoctor.sources.logs.naming import tell


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"line\n")


def ranks(folder: Path, *names: str) -> list[int | None]:
    """The ranks of ``names``, put into one folder, in the order of ``names``."""
    make(folder, *names)
    files, _ = expand([str(folder)])
    told = {os.path.relpath(file.path, folder): file.rank for file in files}
    return [told[name] for name in names]


def one(folder: Path, name: str) -> LogFile:
    """What one file tells that is named itself and stands alone in its folder."""
    make(folder, name)
    (file,), _ = expand([str(folder / name)])
    return file


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank_3.log", 3),
        ("rank3.err", 3),
        ("rank-12.txt", 12),
        ("rank.5", 5),
        ("RANK_7.LOG", 7),
        ("log_rank_12.txt", 12),
        ("global_rank_5.log", 5),
        ("20240501_123456_rank0.log", 0),  # deepspeed --enable_each_rank_log
        ("train.rank=4.log.gz", 4),
        ("node_rank_1_rank_9.log", 9),
        ("worker-3.log", 3),
        ("worker_0.out", 0),
        ("default_worker_0.log", 0),
        ("llama-worker-11-pytorch.log", 11),
        ("rank_3-2024-05-01.log", 3),
        ("trainer-5|1", 5),
        ("trainer5|1.log", 5),
        # a number that is something else
        ("train_3.log", None),
        ("3.log", None),
        ("out.3", None),
        ("slurm-123_4.out", None),  # the default name of job arrays: the 4 may be any task of an array
        ("job.123.7.err", None),
        ("slurm-4711.out", None),
        ("local_rank_3.log", None),
        ("node_rank_1.log", None),
        ("noderank1.log", None),
        ("tp_rank_1.log", None),
        ("pp-rank-2_dp-rank-0.log", None),
        ("lora_rank_64.log", None),
        ("rank0-7.log", None),  # all ranks from 0 to 7
        ("ranks_8.log", None),
        ("crank3.log", None),
        ("dataloader_worker_3.log", None),
        ("data-worker-3.log", None),
        ("worker-3f2a.log", None),
        ("workers4.log", None),
        ("train_2024-05-01.log", None),
        ("rank_99999999999.log", None),
    ],
)
def test_one_name(tmp_path, name, rank):
    assert one(tmp_path, name).rank == rank


def test_role_rank_and_local_rank(tmp_path):
    file = one(tmp_path, "trainer-9|1")
    assert (file.rank, file.local_rank) == (9, 1)


@pytest.mark.parametrize(
    "pattern",
    [
        "{}.log",
        "out.{}",
        "slurm-123_{}.out",
        "job.123.{}.err",
        "train_{}.log",
        "log{}",
        "task-{}.txt",
        "{:03d}.log",
        "2024-05-01_{}.log.gz",
        "proc_{}_of.log",
    ],
)
def test_a_family_that_runs_from_0(tmp_path, pattern):
    names = [pattern.format(i) for i in range(16)]
    assert ranks(tmp_path, *names) == list(range(16))
    assert [file.rank for file in expand([str(tmp_path)])[0]] == list(range(16))  # natural order, too
    assert len({file.group for file in expand([str(tmp_path)])[0]}) == 1
    if not pattern.startswith("train"):
        assert one(tmp_path, pattern.format(7)).rank == 7  # its folder is looked at


def test_one_of_several_files_that_may_be_runs(tmp_path):
    """After a word of the user's own, only files that are named together are the ranks of one job."""
    make(tmp_path, "llama_0.log", "llama_1.log")
    assert one(tmp_path, "llama_1.log").rank is None
    assert [file.rank for file in expand([str(tmp_path / "llama_0.log"), str(tmp_path / "llama_1.log")])[0]] == [0, 1]


@pytest.mark.parametrize(
    "names",
    [
        ["0.log"],
        ["1.log", "2.log"],
        ["0.log", "2.log"],
        ["0.log", "00.log", "1.log"],
        ["run_0.log", "run_1.log"],
        ["exp0.log", "exp1.log", "exp2.log"],
        ["stage-0.log", "stage-1.log"],
        ["part.0", "part.1"],
        ["train.log", "train.log.0", "train.log.1"],
        ["0_0.log", "0_1.log", "1_0.log", "1_1.log"],
        ["v0.log", "v1.log"],
        ["healthy_zero0.log", "healthy_zero1.log", "healthy_zero2.log"],
        ["a0.log", "b1.log"],
    ],
)
def test_no_family_of_ranks(tmp_path, names):
    assert set(ranks(tmp_path, *names)) == {None}


def test_two_families_of_one_folder(tmp_path):
    assert ranks(tmp_path, "0.out", "1.out", "0.err", "1.err", "train.log") == [0, 1, 0, 1, None]


def test_a_worker_beside_a_master_is_not_the_rank(tmp_path):
    assert ranks(tmp_path, "job-master-0.log", "job-worker-0.log", "job-worker-1.log") == [None, None, None]


def test_folders_named_after_ranks(tmp_path):
    assert ranks(
        tmp_path, "rank_0/train.log", "rank_1/train.log", "1/rank.7/stdout", "worker-4/x.log", "node_rank_5/x.log", "old_rank_6_x/x.log"
    ) == [0, 1, 7, 4, None, None]


def test_hosts(tmp_path):
    hosts = {
        "node-02.log": "node-02",
        "Node17.log": "node17",
        "job.123.node01.out": "node01",
        "train_host-3.log": "host-3",
        "llama7b_node4_tp8.log": None,
        "node_rank_0.log": None,
        "nodes_4.log": None,
        "2node8gpu.log": None,
        "node0_rank3.log": "node0",
        "node-07/train.log": "node-07",
        "other/train.log": None,
    }
    for number, (name, host) in enumerate(hosts.items()):
        file = one(tmp_path / f"x{number}", name)
        assert (file.host, file.rank) == (host, 3 if "rank3" in name else None), name


def test_hosts_in_the_middle_of_several_names(tmp_path):
    make(tmp_path, "run_node0_out.log", "run_node1_out.log")
    assert [file.host for file in expand([str(tmp_path)])[0]] == ["node0", "node1"]
    assert [file.rank for file in expand([str(tmp_path)])[0]] == [None, None]


def test_streams(tmp_path):
    streams: dict[str, str | None] = {
        "rank_0.err": "stderr",
        "a.stderr": "stderr",
        "stderr.log": "stderr",
        "err_3": "stderr",
        "job.e123": "stderr",
        "stdout.log": "stdout",
        "job.o123": "stdout",
    }
    streams |= {"error.log": None, "slurm-123.out": None, "layout.txt": None}
    for number, (name, stream) in enumerate(streams.items()):
        assert one(tmp_path / f"x{number}", name).stream == stream, name
    make(tmp_path / "both", "job.123.7.out", "job.123.7.err")
    assert [file.stream for file in expand([str(tmp_path / "both")])[0]] == ["stderr", "stdout"]


def test_attempts(tmp_path):
    make(tmp_path / "from0", "train_attempt_0.log", "train_attempt_1.log")
    make(tmp_path / "from1", "restart1.log", "restart2.log", "restart3.log")
    make(tmp_path / "alone", "attempt_3.log")
    for folder, attempts in (("from0", [1, 2]), ("from1", [1, 2, 3]), ("alone", [None])):
        files, _ = expand([str(tmp_path / folder)])
        assert [file.attempt for file in files] == attempts
        assert {file.rank for file in files} == {None}


def test_gpus_of_one_node(tmp_path):
    make(tmp_path, *(f"gpu{i}.{end}" for i in range(8) for end in ("out", "err")))
    files, _ = expand([str(tmp_path)])
    assert [(file.rank, file.local_rank) for file in files] == [(i, i) for i in range(8) for _ in range(2)]
    make(tmp_path, "second/gpu0.out", "second/gpu1.out")
    files, _ = expand([str(tmp_path)])
    assert {file.rank for file in files} == {None}
    assert {file.local_rank for file in files} == set(range(8))
    assert one(tmp_path / "alone", "gpu8.log").local_rank is None  # perhaps a run on 8 GPUs


def test_local_ranks(tmp_path):
    make(tmp_path, "local_rank_0.log", "local_rank_1.log", "rank_9_local_rank_1.txt")
    files, _ = expand([str(tmp_path)])
    assert [(file.local_rank, file.rank) for file in files] == [(0, 0), (1, 1), (1, 9)]


TREE = [
    f"{run}/attempt_{attempt}/{local}/{name}"
    for run in ("none_x1y2",)
    for attempt in range(2)
    for local in range(11)
    for name in ("error.json", "stderr.log", "stdout.log")
]


def test_a_torchrun_tree_of_one_node(tmp_path):
    make(tmp_path, *TREE)
    files, _ = expand([str(tmp_path)])
    assert [os.path.relpath(file.path, tmp_path) for file in files] == TREE
    assert [(file.attempt, file.local_rank, file.rank) for file in files] == [
        (attempt, local, local) for attempt in (1, 2) for local in range(11) for _ in range(3)
    ]
    assert [file.stream for file in files[:3]] == ["error", "stderr", "stdout"]
    assert {file.group for file in files} == {str(tmp_path / "none_x1y2")}


def test_parts_of_a_torchrun_tree(tmp_path, monkeypatch):
    make(tmp_path, *TREE)
    for argument in ("none_x1y2/attempt_1/3/stderr.log", "none_x1y2/attempt_1/3", "none_x1y2/attempt_*/3/stderr.log"):
        file = expand([str(tmp_path / argument)])[0][-1 if "*" in argument else 0]
        assert (file.attempt, file.local_rank, file.rank) == (2, 3, 3)
    monkeypatch.chdir(tmp_path / "none_x1y2" / "attempt_1")
    files, _ = expand(["."])
    assert [(file.path, file.attempt, file.local_rank) for file in files[3:5]] == [("./1/error.json", 2, 1), ("./1/stderr.log", 2, 1)]
    files, _ = expand(["3/stderr.log"])
    assert files == [LogFile("3/stderr.log", 3, 3, None, 2, "stderr", str(tmp_path / "none_x1y2"), unit=str(tmp_path / "none_x1y2"))]


def test_torchrun_trees_of_two_nodes(tmp_path):
    make(tmp_path, *(f"node-0{node}/job7_r{node}/attempt_0/{local}/stderr.log" for node in range(2) for local in range(2)))
    files, _ = expand([str(tmp_path)])
    assert [(file.host, file.local_rank, file.rank, file.attempt) for file in files] == [
        ("node-00", 0, None, 1),
        ("node-00", 1, None, 1),
        ("node-01", 0, None, 1),
        ("node-01", 1, None, 1),
    ]


def test_a_pipe_of_the_shell_has_no_rank():
    """``<(command)`` is /dev/fd/63: a number that means nothing."""
    down, up = os.pipe()
    try:
        (file,), _ = expand([f"/dev/fd/{down}"])
    finally:
        os.close(down)
        os.close(up)
    assert file == LogFile(f"/dev/fd/{down}")


def test_the_names_of_a_very_large_job_are_read_quickly():
    paths = [f"/logs/slurm-123_{i}.out" for i in range(20_000)]
    begun = time.process_time()
    told = tell(paths, {})
    assert [each.rank for each in told] == list(range(20_000))
    assert time.process_time() - begun < 5


def test_a_worker_with_many_files_is_a_host_and_no_rank() -> None:
    """NCCL_DEBUG_FILE=nccl.%h.%p writes a file for each process of a host."""
    told = tell([f"/logs/nccl.worker-{host}.{21_000 + 3 * process}" for host in (1, 2) for process in range(8)], {})
    assert {one.rank for one in told} == {None}


def test_the_global_rank_beside_the_local_one(tmp_path):
    """NeMo's own names."""
    make(tmp_path, *(f"nemo_log_globalrank-{rank}_localrank-{rank % 4}.txt" for rank in range(8)))
    files, _ = expand([str(tmp_path)])
    assert [(file.rank, file.local_rank) for file in files] == [(rank, rank % 4) for rank in range(8)]


@pytest.mark.parametrize(
    "pattern", ["train-node{node:02d}-{rank}.out", "llm-4711-{node}-{rank}.out", "log_4711_nid{node:06d}_{rank}.err", "{rank}/stderr.log"]
)
def test_a_number_that_counts_through_the_files_of_all_nodes(tmp_path, pattern):
    names = [pattern.format(node=rank // 4 + 2, rank=rank) for rank in range(8)]
    assert ranks(tmp_path, *names) == list(range(8))


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        ("node-{node:02d}_gpu{local}.log", "node-01"),
        ("node-{node:02d}.{local}.log", "node-01"),
        ("dgx-a100-{node}.{local}.log", "dgx-a100-1"),
        ("10.0.0.{node}_{local}.log", "10.0.0.1"),
        ("std_log_node_{node}_process_{local}.txt", "node_1"),
        ("gpu{node:03d}/rank_{local}.log", "gpu001"),
        ("node-{node:02d}/{local}.log", "node-01"),
        ("pod{node}/{local}/stderr.log", "pod1"),
    ],
)
def test_a_number_that_each_node_counts_anew_is_the_local_rank(tmp_path, pattern, host):
    names = [pattern.format(node=node, local=local) for node in range(3) for local in range(4)]
    make(tmp_path, *names)
    files, _ = expand([str(tmp_path)])
    assert {file.rank for file in files} == {None}
    assert [file.local_rank for file in files] == [local for _ in range(3) for local in range(4)]
    assert {file.host for file in files if file.path in (str(tmp_path / name) for name in names[4:8])} == {host}
    assert len({file.unit for file in files}) == 3


@pytest.mark.parametrize(
    "pattern",
    ["run{run}/rank_{rank}.log", "2026-08-0{run}/rank_{rank}.log", "471{run}/rank_{rank}.log", "old/../try_{run}/rank_{rank}.log"],
)
def test_runs_one_after_the_other_are_no_nodes(tmp_path, pattern):
    names = [pattern.format(run=run, rank=rank) for run in (1, 2) for rank in range(2)]
    make(tmp_path, "old/x", *names)
    files, _ = expand([str(tmp_path / name) for name in names])
    assert [file.rank for file in files] == [0, 1, 0, 1]


def test_workers_that_are_counted_from_1(tmp_path):
    assert ranks(tmp_path, *(f"worker{number}.log" for number in range(1, 5))) == [None] * 4
    assert ranks(tmp_path / "folders", *(f"worker-{number}/log.txt" for number in range(1, 5))) == [None] * 4


def test_folders_of_a_sweep_are_runs(tmp_path):
    assert ranks(tmp_path, *(f"multirun/{number}/train.log" for number in range(3))) == [None] * 3
