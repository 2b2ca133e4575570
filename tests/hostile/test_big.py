"""Logs made to exhaust: one endless line, ever new exceptions, a match on every line, an archive that explodes. Memory stays bounded."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.hostile.running import MIB, OOM, Ended, measured

FEW = 260 * MIB  # a log of a few lines takes some 60 MiB
MANY = 500 * MIB  # all the facts that are kept, at their largest


def diagnosed(path: Path, pieces: Iterable[str], most: int) -> Ended:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(pieces)
    ended = measured("logs", str(path), "--format", "json")
    assert ended.err == ""
    assert ended.peak < most
    return ended


def one_line(mib: int) -> Iterator[str]:
    """One line without an end: filler with an event in the middle, and the out-of-memory at the very end."""
    filler = "step done, all is well | " * (MIB // 25)
    for number in range(mib):
        yield filler
        if number == mib // 2:
            yield " node01:712:713 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0> "
    yield " [rank3]: " + OOM.rstrip("\n")


@pytest.mark.parametrize("mib", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_a_single_line(tmp_path: Path, mib: int) -> None:
    ended = diagnosed(tmp_path / "one.log", one_line(mib), FEW)
    assert ended.code == 1
    assert ended.report["root_cause"].startswith("oom.")
    assert ended.report["inputs"][0]["lines"] == 1
    (evidence, *_) = ended.report["diagnoses"][0]["evidence"]
    assert evidence["line"] == 1
    assert len(ended.out) < MIB


@pytest.mark.parametrize("mib", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_a_single_line_full_of_what_is_looked_for(tmp_path: Path, mib: int) -> None:
    """What signals ask for stands in it thousands of times over: the one event is found among them all the same, and in bounded time."""
    filler = "Error: NCCL WARN loss: 2.3 CUDA out of memory failed. " * (MIB // 54)
    line = (filler if number != mib // 2 else "[rank3]: " + OOM.rstrip("\n") for number in range(mib + 1))
    ended = diagnosed(tmp_path / "one.log", line, FEW)
    assert ended.code == 1
    assert ended.report["root_cause"].startswith("oom.")
    assert "GPU 3" in ended.report["diagnoses"][0]["message"]
    assert len(ended.out) < MIB


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_ever_new_exceptions(tmp_path: Path, count: int) -> None:
    def log() -> Iterator[str]:
        for number in range(count):
            yield f"lib{number}.Strange{number}Error: the thing {number} is wrong at {number * 7919:x}\n"
        yield "[rank3]: " + OOM

    ended = diagnosed(tmp_path / "many.log", log(), MANY)
    assert ended.code == 1
    assert ended.report["inputs"][0]["lines"] == count + 1
    assert len(ended.out) < MIB


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_ever_new_tracebacks(tmp_path: Path, count: int) -> None:
    def log() -> Iterator[str]:
        for number in range(count):
            yield f"[rank{number % 64}]: Traceback (most recent call last):\n"
            yield f'[rank{number % 64}]:   File "/job/part{number}.py", line {number + 1}, in step{number}\n'
            yield f"[rank{number % 64}]:     step({number})\n"
            yield f"[rank{number % 64}]: part{number}.Strange{number}Error: {number}\n"

    ended = diagnosed(tmp_path / "many.log", log(), MANY)
    assert ended.code == 1
    assert len(ended.out) < MIB


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_match_on_every_line(tmp_path: Path, count: int) -> None:
    ended = diagnosed(tmp_path / "every.log", (f"[rank{number % 512}]: {OOM}" for number in range(count)), MANY)
    assert ended.code == 1
    assert ended.report["root_cause"].startswith("oom.")
    assert len(ended.out) < MIB


@pytest.mark.parametrize("count", [20_000, pytest.param(500_000, marks=pytest.mark.slow)])
def test_every_line_from_another_process(tmp_path: Path, count: int) -> None:
    """Streams are told apart by rank, host and pid: there must not be one kept for each of them."""
    lines = (
        f"host{number}:{number}:{number} [{number % 8}] NCCL WARN Call to connect returned Connection refused\n" for number in range(count)
    )
    ended = diagnosed(tmp_path / "hosts.log", lines, MANY)
    assert ended.code in (0, 1)
    assert len(ended.out) < 4 * MIB


@pytest.mark.parametrize("count", [500, pytest.param(50_000, marks=pytest.mark.slow)])
def test_tracebacks_that_never_end(tmp_path: Path, count: int) -> None:
    """One open traceback a rank, and frames without end in each."""

    def log() -> Iterator[str]:
        for number in range(count):
            yield f"[rank{number}]: Traceback (most recent call last):\n"
        for number in range(10 * count):
            yield f'[rank{number % count}]:   File "/job/a{number}.py", line 3, in f\n[rank{number % count}]:     f()\n'

    ended = diagnosed(tmp_path / "open.log", log(), MANY)
    assert ended.code in (0, 1)


def exploding(path: Path, mib: int) -> None:
    """A gzip of ``mib`` MiB of blanks, which shrink a thousandfold, behind an event and a line end."""
    with open(path, "wb") as file:
        file.write(gzip.compress(("[rank3]: " + OOM).encode()))
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        blanks = b" " * MIB
        for _ in range(mib):
            file.write(packer.compress(blanks))
        file.write(packer.flush())


@pytest.mark.parametrize("mib", [16, pytest.param(4_096, marks=pytest.mark.slow)])
def test_an_archive_that_expands_a_thousandfold(tmp_path: Path, mib: int) -> None:
    """1,028-fold: a small one is read, a large one is left where it passes the limit, and what came before it counts."""
    exploding(tmp_path / "bomb.log.gz", mib)
    assert (tmp_path / "bomb.log.gz").stat().st_size < 6 * MIB
    ended = measured("logs", str(tmp_path / "bomb.log.gz"), "--format", "json")
    assert ended.err == ""
    assert ended.code == 1
    assert ended.peak < FEW
    assert ended.report["root_cause"].startswith("oom.")
    reasons = [skip["reason"] for skip in ended.report["skips"]]
    assert bool(reasons) == (mib > 1_024)
    assert all("expands more than 1,000 times" in reason for reason in reasons)
