"""Files of dumps: what is read, what is left out and why."""

from __future__ import annotations

import gzip
import os
import pickle
from pathlib import Path

from memdoctor.sources.dumps.collect import read_dumps
from tests.flight.small import Small, warm


def paths(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def test_one_dump_a_rank_in_order(tmp_path: Path) -> None:
    warm(Small()).write(tmp_path)
    counted: list[int] = []
    dumps = read_dumps(paths(tmp_path)[::-1], counted.append)
    assert [dump.rank for dump in dumps.ranks] == [0, 1, 2, 3]
    assert sum(counted) == sum(file.bytes for file in dumps.inputs) == sum(os.path.getsize(path) for path in paths(tmp_path))
    assert not dumps.skips


def test_json_and_pickle_say_the_same(tmp_path: Path) -> None:
    small = warm(Small()).call((0, 1, 3), "0", state="started", at=5).message(0, "5", "0->1 0<-1", state="started", at=6)
    small.write(tmp_path / "a")
    small.write(tmp_path / "b", as_json=True)
    one, other = read_dumps(paths(tmp_path / "a")).ranks, read_dumps(paths(tmp_path / "b")).ranks
    assert [dump.calls for dump in one] == [dump.calls for dump in other]
    assert [dump.enqueued for dump in one] == [dump.enqueued for dump in other]


def test_damaged_empty_and_foreign_files_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    warm(Small()).write(tmp_path)
    whole = (tmp_path / "nccl_trace_rank_1").read_bytes()
    (tmp_path / "nccl_trace_rank_1").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "nccl_trace_rank_3").write_bytes(b"")
    (tmp_path / "nccl_trace_rank_4").write_bytes(pickle.dumps({"weights": [1.0]}, 2))
    dumps = read_dumps([*paths(tmp_path), str(tmp_path / "nccl_trace_rank_9")])
    assert [dump.rank for dump in dumps.ranks] == [0, 2]
    reasons = {os.path.basename(skip.source): skip.reason for skip in dumps.skips}
    assert reasons["nccl_trace_rank_1"].startswith("cut off or damaged")
    assert reasons["nccl_trace_rank_3"].startswith("empty")
    assert reasons["nccl_trace_rank_4"].startswith("not a flight-recorder dump")
    assert reasons["nccl_trace_rank_9"].startswith("cannot be read")


def test_compressed(tmp_path: Path) -> None:
    small = warm(Small())
    data = pickle.dumps(small.dump(2), 2)
    (tmp_path / "nccl_trace_rank_2.gz").write_bytes(gzip.compress(data))
    (tmp_path / "nccl_trace_rank_3.gz").write_bytes(gzip.compress(data)[:-20])
    dumps = read_dumps(paths(tmp_path))
    assert [dump.rank for dump in dumps.ranks] == [2]
    assert [skip.reason for skip in dumps.skips] == ["the gzip archive is cut off"]


def test_of_two_dumps_of_a_rank_the_later_counts(tmp_path: Path) -> None:
    warm(Small(), 1).write(tmp_path / "first")
    warm(Small(), 9).write(tmp_path / "second")
    dumps = read_dumps(paths(tmp_path))
    assert [os.path.basename(os.path.dirname(dump.path)) for dump in dumps.ranks] == ["second"] * 4
    assert all("another dump of rank" in skip.reason for skip in dumps.skips)


def test_left_over_from_a_run_long_before(tmp_path: Path) -> None:
    groups = {"0": ("default_pg", (0, 1, 2))}
    late = Small(groups).call((0, 1), "0", at=100_000)
    late.write(tmp_path, 2)
    Small(groups).call(2, "0", at=0).write(tmp_path, 0, 1)
    os.utime(tmp_path / "nccl_trace_rank_2", (1, 1))
    dumps = read_dumps(paths(tmp_path))
    assert [dump.rank for dump in dumps.ranks] == [0, 1]
    assert "left over from an earlier run" in dumps.skips[0].reason
    os.utime(tmp_path / "nccl_trace_rank_2")  # a rank that hung for a day has an old ring, and a new file
    assert len(read_dumps(paths(tmp_path)).ranks) == 3
