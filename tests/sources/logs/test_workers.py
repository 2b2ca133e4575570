"""Several processes read what one reads, and tell it alike."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from memdoctor.engine.load import load
from memdoctor.errors import InputError, MemdoctorError, RuleError
from memdoctor.model import LogFacts, Signal
from memdoctor.resources import rules_dir
from memdoctor.sources.logs import store, workers
from memdoctor.sources.logs.collect import read_logs
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.one_log import LogReader, Numbered, OnBytes, Outcome
from memdoctor.sources.logs.store import LAST
from memdoctor.sources.logs.workers import Workers
from tests.scenarios import ManyRanks

FIXTURES = Path(__file__).parents[3] / "fixtures"


@lru_cache(maxsize=1)
def signals() -> tuple[Signal, ...]:
    return tuple(load([rules_dir()]).signals)


def plain(facts: LogFacts) -> list[Any]:
    """All that was read, comparable; without the ages of files."""
    files = [(replace(file, age=None, series=None), numbers(file.series)) for file in facts.files]
    return [facts.facts, facts.inputs, facts.skips, dict(facts.counts), facts.dumps, files]


def numbers(series: Any) -> list[Any]:
    tables = [*series, *series.beside.tables.items(), *series.beside.timers.items()]
    rows = [
        (name, sorted(table.spoken), [repr(list(table.line)), repr(list(table.epoch)), repr(list(table.absent))],
         [repr(list(table.column(column))) for column in sorted(table.spoken)])
        for name, table in tables
    ]  # fmt: skip
    return [rows, series.main, series.kept, series.own, series.beside.profiles, series.beside.profile_lines]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "BATCH", 1_000)


@pytest.mark.parametrize("folder", ["genuine/deepspeed", "genuine/torchrun", "genuine/megatron", "oom/killed_process", "balance/slow_rank"])
def test_the_same_from_fixtures(folder: str) -> None:
    paths = [str(FIXTURES / folder)]
    alone = read_logs(paths, signals())
    assert len(alone.files) > 5
    assert plain(read_logs(paths, signals(), engine=Workers(2))) == plain(alone)


def test_the_same_from_64_ranks(tmp_path: Path) -> None:
    for name, text in ManyRanks(culprit=12).files().items():
        (tmp_path / name).write_text(text)
    alone = read_logs([str(tmp_path)], signals())
    assert len(alone.files) == 65
    assert plain(read_logs([str(tmp_path)], signals(), engine=Workers(3))) == plain(alone)


def test_the_same_where_more_is_told_than_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what fills the store: the limits count over all files."""
    monkeypatch.setattr(store, "PER_NAME", 6_000)
    raised = "".join(f"[rank{rank}]: ValueError: document {rank} is empty\n\n\n" for rank in range(400) for _ in range(12))
    for number in range(4):
        (tmp_path / f"part-{number}.log").write_text(raised + "plain text\n" * 500)
    (tmp_path / "empty.log").write_text("")
    alone = read_logs([str(tmp_path)], signals())
    assert sum(fact.kind == "exception" for fact in alone.facts) >= 6_000
    assert max(count for key, count in alone.counts.items() if key[0] == "exception") == 48 > 2 * LAST
    assert plain(read_logs([str(tmp_path)], signals(), engine=Workers(2))) == plain(alone)


def test_progress_is_told_whole(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part-{number}.log").write_text("some line\n" * (1_000 + number))
    told: list[int] = []
    read_logs([str(tmp_path)], signals(), told.append, Workers(2))
    assert sum(told) == 10 * 3_003


def test_what_cannot_be_read_is_said_alike(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part-{number}.log").write_bytes(b"\x7fELF" + bytes(1_000))
    with pytest.raises(InputError) as alone:
        read_logs([str(tmp_path)], signals())
    with pytest.raises(InputError) as several:
        read_logs([str(tmp_path)], signals(), engine=Workers(2))
    assert str(several.value) == str(alone.value)


class Failing(LogReader):
    """Breaks at the second log."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Failing, ((),)

    def __call__(self, numbered: Numbered, on_bytes: OnBytes | None = None, *, brief: bool = False) -> Outcome:
        if numbered[0] == 1:
            self.fail()
        return super().__call__(numbered, on_bytes)

    def fail(self) -> None:
        raise RuleError("rules/tables/sites.yaml", 7, "an entry is broken", "mend it")


class Dying(Failing):
    def __reduce__(self) -> tuple[Any, ...]:
        return Dying, ((),)

    def fail(self) -> None:
        os._exit(9)


def three(folder: Path) -> Sequence[Numbered]:
    paths = [folder / f"part-{number}.log" for number in range(3)]
    for path in paths:
        path.write_text("some line\n" * 1_000)
    return list(enumerate(LogFile(str(path)) for path in paths))


def test_an_error_of_a_worker_is_the_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError) as error:
        list(Workers(2)(Failing(()), three(tmp_path), None))
    assert str(error.value) == "rules/tables/sites.yaml:7: an entry is broken (mend it)"
    assert (error.value.path, error.value.line) == ("rules/tables/sites.yaml", 7)
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(MemdoctorError, match="--workers 1"):
        list(Workers(2)(Dying(()), three(tmp_path), None))
    assert multiprocessing.active_children() == []


def test_an_iterator_that_is_left_ends_its_workers(tmp_path: Path) -> None:
    outcomes = Workers(2)(LogReader(()), three(tmp_path), None)
    assert next(outcomes).input is not None
    outcomes.close()
    assert multiprocessing.active_children() == []


def test_without_processes_it_reads_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("Resource temporarily unavailable")

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor.submit", refuse)
    outcomes = list(Workers(2)(LogReader(()), three(tmp_path), None))
    assert [outcome.input.lines for outcome in outcomes if outcome.input is not None] == [1_000] * 3
    assert multiprocessing.active_children() == []


def test_pipes_are_read_in_turn(tmp_path: Path) -> None:
    reader = _Noting(())
    logs = three(tmp_path)
    assert len(list(Workers(2)(reader, [*logs, (3, LogFile(os.devnull))], None))) == 4
    assert reader.read == [0, 1, 2, 3]


class _Noting(LogReader):
    def __init__(self, signals: Sequence[Signal]) -> None:
        super().__init__(signals)
        self.read: list[int] = []

    def __call__(self, numbered: Numbered, on_bytes: OnBytes | None = None, *, brief: bool = False) -> Outcome:
        self.read.append(numbered[0])
        return super().__call__(numbered, on_bytes)


@pytest.mark.parametrize(("sizes", "processors", "expected"), [
    ([10**6] * 900, 4, 4), ([10**6] * 90, 4, 1), ([10**9, 10**9], 64, 2), ([10**9] * 100, 64, 8), ([10**9, 10], 1, 1),
])  # fmt: skip
def test_as_many_as_pay(sizes: list[int], processors: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(processors)), raising=False)
    monkeypatch.setattr(workers, "_sizes", lambda logs: sizes)
    used: list[int] = []

    def note(_read: LogReader, _logs: object, _batches: object, count: int, _on_bytes: object) -> Any:
        used.append(count)
        return iter(())

    monkeypatch.setattr(workers, "_in_processes", note)
    monkeypatch.setattr(workers, "in_turn", lambda *_: note(LogReader(()), (), (), 1, None))
    list(Workers()(LogReader(()), [(number, LogFile("")) for number in range(len(sizes))], None))
    assert used == [expected]
