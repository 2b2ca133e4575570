"""Attempts, places and endings, from facts made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memdoctor.derive.attempts import number_attempts, recount
from memdoctor.derive.endings import how_it_ended, is_debris
from memdoctor.derive.placement import place, ranks_seen
from memdoctor.model import Fact, FileRead, Marks, Origin, Stamp, StepMark
from memdoctor.pipeline import diagnose_logs


def fact(
    kind: str,
    line: int = 1,
    *,
    file: int = 0,
    rank: int | None = None,
    at: float | None = None,
    attempt: int = 1,
    event: str = "",
    host: str | None = None,
    **fields: Any,
) -> Fact:
    time = None if at is None else Stamp(at, str(at))
    return Fact(
        kind, fields, Origin("log", f"f{file}", line), rank, host, time, attempt, (file << 44) | (line << 8), event or f"{file}:{line}"
    )


def read(number: int = 0, *, rank: int | None = None, attempt: int | None = None, lines: int = 100, **more: Any) -> FileRead:
    values: dict[str, Any] = {"truncated": False, "ends_mid_line": False, "age": None, **more}
    return FileRead(
        f"f{number}",
        number,
        rank,
        attempt,
        None,
        None,
        1,
        lines,
        ranks=frozenset() if rank is None else frozenset({rank}),
        series=None,
        **values,
    )


class TestAttempts:
    def test_a_start_after_a_failure_begins_a_new_attempt(self) -> None:
        facts, parts = number_attempts([fact("exception", 1), fact("run.start", 5, attempt=2), fact("exception", 9, attempt=2)], [read()])
        assert [found.attempt for found in facts] == [1, 2, 2]
        assert list(parts[0]) == [(0, 1), (5 << 8, 2)]

    def test_one_launcher_that_reports_two_rounds(self) -> None:
        first = fact("process.exit", 4, at=10, name="failed", exitcode=3, of_pid=71, pid=9)
        second = fact("process.exit", 9, at=30, name="failed", exitcode=1, of_pid=81, pid=9)
        facts, _ = number_attempts([fact("exception", 2), first, fact("exception", 6), second], [read()])
        assert [found.attempt for found in facts] == [1, 1, 2, 2]

    def test_two_workers_of_one_round_are_one_attempt(self) -> None:
        exits = [fact("process.exit", line, at=10 + line / 100, name="failed", exitcode=1, of_pid=70 + line, pid=9) for line in (4, 5)]
        facts, _ = number_attempts(exits, [read()])
        assert [found.attempt for found in facts] == [1, 1]

    def test_a_file_without_starts_follows_the_clock_of_one_with_them(self) -> None:
        launcher = [fact("exception", 1, at=0), fact("run.start", 5, attempt=2, at=100)]
        worker = [fact("cuda.oom", 1, file=1, rank=3, at=50), fact("cuda.oom", 9, file=1, rank=3, at=150)]
        facts, _ = number_attempts([*launcher, *worker], [read(0), read(1, rank=3)])
        assert [found.attempt for found in facts if found.kind == "cuda.oom"] == [1, 2]

    def test_the_name_of_a_folder_says_the_attempt(self) -> None:
        facts, _ = number_attempts([fact("exception", 1), fact("exception", 1, file=1)], [read(0, attempt=1), read(1, attempt=3)])
        assert [found.attempt for found in facts] == [1, 3]

    def test_counts_follow_their_facts(self) -> None:
        before = [fact("exception", 1, rank=2), fact("exception", 9, rank=2)]
        after = [before[0], fact("exception", 9, rank=2, attempt=2)]
        assert recount({("exception", "", 2, 1): 5}, before, after) == {("exception", "", 2, 1): 4, ("exception", "", 2, 2): 1}


class TestEndings:
    def end(self, *facts: Fact, steps: tuple[StepMark, ...] = (), last: bool = True, **more: Any) -> str:
        return how_it_ended(facts, Marks(steps), [read(**more)], last=last)[0]

    def test_a_worker_that_exits_with_a_code_failed(self) -> None:
        assert self.end(fact("process.exit", name="failed", exitcode=1)) == "failed"

    @pytest.mark.parametrize("fields", [{"exitcode": 0}, {"exitcode": -15}, {"exitcode": -6, "name": "terminated"}])
    def test_a_worker_that_ends_well_or_is_told_to_end_did_not(self, fields: dict[str, Any]) -> None:
        assert self.end(fact("process.exit", **fields)) == "unknown"

    def test_killed_by_the_scheduler_before_the_workers_died(self) -> None:
        assert self.end(fact("scheduler", 1, name="time_limit"), fact("process.exit", 5, exitcode=-6)) == "killed"
        assert self.end(fact("process.exit", 1, exitcode=1), fact("scheduler", 5, name="cancelled")) == "failed"

    def test_completed(self) -> None:
        assert self.end(fact("run.end", 50, name="completed")) == "completed"

    def test_an_exception_after_the_work_was_done_is_a_failure(self) -> None:
        assert self.end(fact("run.end", 50, name="completed"), fact("exception", 60, owner="user")) == "failed"

    def test_an_exception_that_the_job_survives_is_not(self) -> None:
        steps = tuple(StepMark(line << 8, "f0", None, line, None) for line in (20, 30))
        assert self.end(fact("exception", 10, owner="user"), steps=steps) == "unknown"

    def test_the_launchers_own_traceback_tells_nothing_by_itself(self) -> None:
        assert self.end(fact("exception", 10, owner="launcher")) == "unknown"

    def test_an_error_like_line_near_the_end_of_the_file_is_taken_for_the_reason(self) -> None:
        assert self.end(fact("error.line", 95)) == "failed"
        assert self.end(fact("error.line", 5)) == "unknown"

    def test_cut_and_running(self) -> None:
        step = (StepMark(9 << 8, "f0", None, 9, None),)
        assert self.end(ends_mid_line=True) == "cut"
        assert self.end(steps=step, age=3.0) == "running"
        assert self.end(steps=step, age=3000.0) == "unknown"

    def test_debris(self) -> None:
        left = [fact("port.in_use", 5, event="e"), fact("exception", 5, event="e", owner="torch"), fact("process.exit", 9, exitcode=1)]
        assert is_debris(left)
        assert not is_debris([*left, fact("exception", 7, owner="user")])
        assert not is_debris([fact("process.exit", 9, exitcode=1)])


class TestPlaces:
    def test_by_process_id(self) -> None:
        facts = [fact("rank.place", 1, host="n1", of_rank=5, pid=77, world_size=8), fact("nccl.warn", 9, host="n1", pid=77)]
        assert [found.rank for found in place(facts, [])] == [5, 5]

    def test_a_rank_inside_a_smaller_communicator_is_none(self) -> None:
        facts = [
            fact("rank.place", 1, host="n1", of_rank=5, pid=77, world_size=8),
            fact("rank.place", 2, host="n1", of_rank=1, pid=77, world_size=2),
            fact("nccl.warn", 9, host="n1", pid=77),
        ]
        assert place(facts, [])[2].rank == 5

    def test_a_rank_that_no_communicator_holds_shows_that_they_are_parts(self) -> None:
        part = fact("rank.place", 1, host="n1", of_rank=2, pid=77, world_size=4)
        warning = fact("nccl.warn", 9, host="n1", pid=77)
        assert [found.rank for found in place([part, warning, fact("exception", 12, rank=3)], [])] == [2, 2, 3]
        assert [found.rank for found in place([part, warning, fact("exception", 12, rank=22)], [])] == [None, None, 22]

    def test_local_rank_on_a_single_node_is_the_rank(self) -> None:
        assert place([fact("exception", 1, local_rank=3)], [])[0].rank == 3

    def test_local_rank_on_one_of_several_nodes_is_not(self) -> None:
        assert place([fact("run.world", 1, nodes=4), fact("exception", 2, local_rank=3)], [])[1].rank is None

    def test_lines_with_both_tell_the_rest(self) -> None:
        facts = [fact("run.world", 1, nodes=4), fact("exception", 2, rank=11, local_rank=3), fact("cuda.oom", 3, local_rank=3)]
        assert place(facts, [])[2].rank == 11

    def test_watchdogs_tell_the_first_rank_of_a_node(self) -> None:
        """56 and 58 agree on it; the [Rank 1] of a third is its rank within a smaller group."""
        waits = [
            fact("watchdog.timeout", line, host="n7", local_rank=local, pg_rank=rank)
            for line, local, rank in ((1, 2, 58), (2, 4, 60), (3, 1, 1))
        ]
        assert place([*waits, fact("cuda.oom", 9, host="n7", local_rank=3)], [])[-1].rank == 59
        assert place([waits[0], fact("cuda.oom", 9, host="n7", local_rank=3)], [])[-1].rank is None

    def test_ranks_within_groups_tell_no_first_rank(self) -> None:
        """On each node the same: ranks of a tensor-parallel group."""
        waits = [
            fact("watchdog.timeout", 8 * node + local, host=f"n{node}", local_rank=local, pg_rank=local)
            for node in range(2)
            for local in range(3)
        ]
        assert {found.rank for found in place([*waits, fact("cuda.oom", 99, host="n1", local_rank=3)], [])} == {None}

    def test_a_local_rank_of_another_node_is_another_rank(self) -> None:
        told = fact("process.exit", 1, name="box", of_rank=5, local=1, of_pid=77, on_host="n1", host="n1")
        assert place([told, fact("exception", 2, host="n0", local_rank=1)], [])[1].rank is None
        assert place([told, fact("exception", 2, host="n0", pid=77)], [])[1].rank is None
        assert place([told, fact("exception", 2, host="n1.cluster", local_rank=2)], [])[1].rank == 6

    def test_a_file_of_several_ranks_is_not_that_of_its_number(self) -> None:
        own = [fact("exception", 1, rank=3), fact("cuda.oom", 2, rank=1), fact("nccl.warn", 3, rank=1)]
        assert [found.rank for found in place(own, [read(rank=1)])] == [3, None, None]
        labelled = [fact("exception", line, rank=1, local_rank=line, stream=f"l{line}") for line in (0, 5)]
        assert [found.rank for found in place(labelled, [read(rank=1)])] == [0, 5]

    def test_tasks_of_slurm(self) -> None:
        failed = fact("scheduler", 1, name="task_exit", node="n1", task="5", exitcode=3)
        assert place([failed], [])[0].rank is None
        others = fact("scheduler", 2, name="task_signal", node="n1", task="4,6-7")
        assert [(found.rank, found.host) for found in place([failed, others], [])] == [(5, "n1"), (None, None)]

    def test_files_of_two_nodes_or_of_two_attempts(self) -> None:
        facts = [fact("exception", 1, file=0, local_rank=1), fact("exception", 1, file=1, local_rank=1)]
        for first, rank in ((50.0, None), (500.0, 1)):
            spans = ((0.0, 100.0), (first, first + 100.0))
            files = [replace(read(number), first=Stamp(span[0], ""), last=Stamp(span[1], "")) for number, span in enumerate(spans)]
            assert {found.rank for found in place(facts, files)} == {rank}

    def test_a_watchdog_line_of_the_default_group(self) -> None:
        assert place([fact("watchdog.timeout", 1, pg_rank=6)], [])[0].rank == 6
        assert place([fact("watchdog.timeout", 1, pg_rank=6, pg="3", pg_desc="tp")], [])[0].rank is None

    def test_ranks_seen(self) -> None:
        assert ranks_seen([fact("exception", rank=1)], [read(rank=4)]) == {1, 4}


def test_a_rank_beyond_the_size_that_the_log_tells_breaks_nothing(tmp_path: Path) -> None:
    """Rank 80 of a job of four: some line lies, and the rank is in no group of the job."""
    waits = [
        f"[rank{rank}]:[E1129 13:11:06.000000000 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=471, OpType=ALLREDUCE, NumelIn=100, NumelOut=100, Timeout(ms)=600000) ran for 600123 milliseconds before timing out."
        for rank in (80, 80, 4)
    ]
    size = "using world size: 4, data-parallel size: 2, context-parallel size: 1, tensor-model-parallel size: 2, pipeline-model-parallel size: 1"
    (tmp_path / "train.log").write_text("\n".join([size, *waits]) + "\n")
    report = diagnose_logs([str(tmp_path / "train.log")])
    assert report.root_cause is not None
    assert report.skips == ()
