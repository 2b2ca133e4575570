"""Who held up the ranks that timed out, limits that were too short, and connections that broke long before, from facts made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memdoctor.derive.hangs import hang_facts
from memdoctor.derive.hangs.hosts import Hosts, hosts_of
from memdoctor.engine.load import load
from memdoctor.model import Fact, Origin, Stamp
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs

LIMIT = 600.0


def fact(kind: str, rank: int | None, at: float | None, **fields: Any) -> Fact:
    time = None if at is None else Stamp(at, str(at))
    line = len(fields) + (rank or 0)
    return Fact(kind, fields, Origin("log", "f", line), rank, None, time, 1, line << 8, f"{kind}:{rank}:{at}")


def timeout(rank: int, op: str = "ALLREDUCE", size: int = 4096, *, seq: int = 700, at: float = 10_000.0, **more: Any) -> Fact:
    return fact("watchdog.timeout", rank, at, name="timeout", seq=seq, op=op, numel_in=size, ran=LIMIT, **more)


def gone(rank: int, at: float, name: str = "store_server", **more: Any) -> Fact:
    return fact("peer.gone", rank, at, name=name, **{"backend": "tcpstore", "peer_rank": 0, **more})


class TestOddOne:
    def test_another_operation(self) -> None:
        odd = hang_facts([timeout(0), timeout(1, "_ALLGATHER_BASE", 16), timeout(2)])
        assert [(found.kind, found.rank, found.fields["sure"]) for found in odd] == [("collective.odd", 1, False)]
        assert odd[0].fields["difference"] == "_ALLGATHER_BASE of 16 elements, where the others were in ALLREDUCE of 4096 elements"

    def test_another_size(self) -> None:
        odd = hang_facts([timeout(0, pg="0"), timeout(1, pg="0"), timeout(2, size=4095, pg="0", pg_desc="default_pg")])
        assert [(found.rank, found.fields["sure"], found.fields["pg_desc"]) for found in odd] == [(2, True, "default_pg")]

    def test_it_is_one_event_with_the_time_out_that_shows_it(self) -> None:
        own = timeout(1, "BROADCAST")
        assert hang_facts([timeout(0), own, timeout(2)])[0].event == own.event

    @pytest.mark.parametrize(
        "waits",
        [
            [timeout(0), timeout(1, "BROADCAST", seq=30), timeout(2)],  # other numbers: other groups
            [timeout(0, pg="0"), timeout(1, "BROADCAST", pg="3"), timeout(2, pg="0")],
            [timeout(0), timeout(1, "BROADCAST", at=10_300), timeout(2)],  # nobody names the group, and they gave up minutes apart
            [timeout(0, seq=3), timeout(1, "BROADCAST", seq=3), timeout(2, seq=3)],  # all groups stand at 3 at the start
            [timeout(0), timeout(1, "SEND"), timeout(2)],
            [timeout(0, "ALLTOALL_BASE", 1), timeout(1, "ALLTOALL_BASE", 2), timeout(2, "ALLTOALL_BASE", 1)],
            [timeout(0), timeout(1, "BROADCAST"), timeout(1), timeout(2)],  # rank 1 waits in two groups
            [timeout(0), timeout(1), timeout(2)],
        ],
    )
    def test_nobody_is_odd(self, waits: list[Fact]) -> None:
        assert hang_facts(waits) == []

    @pytest.mark.parametrize(
        "waits",
        [
            [timeout(0), timeout(1, "BROADCAST")],
            [timeout(0), timeout(1, "BROADCAST"), timeout(2), timeout(3, "BROADCAST")],
            [timeout(0, seq=2, pg="0"), timeout(1, size=4, seq=2, pg="0")],
        ],
    )
    def test_without_a_majority_all_are_named(self, waits: list[Fact]) -> None:
        found = hang_facts(waits)
        assert [(each.kind, each.fields["name"], each.rank) for each in found] == [
            ("watchdog.verdict", "mixed", wait.rank) for wait in waits
        ]


class TestStuck:
    """All ranks that are known wait in one call, and no line tells how many there are."""

    @staticmethod
    def waits(ranks: range) -> list[Fact]:
        return [timeout(rank, pg="0", pg_desc="default_pg") for rank in ranks]

    @pytest.mark.parametrize("ranks", [2, 4, 8, 16, 24])
    def test_as_many_as_fill_machines(self, ranks: int) -> None:
        found = hang_facts(self.waits(range(ranks)))
        assert [(one.fields["name"], one.rank, one.fields["known"]) for one in found] == [("stuck", rank, ranks) for rank in range(ranks)]

    def test_with_the_size_told_no_doubt_is_left(self) -> None:
        found = hang_facts([*self.waits(range(6)), fact("run.world", None, None, world_size=6)])
        assert {(one.fields["name"], one.fields.get("known")) for one in found} == {("stuck", None)}

    @pytest.mark.parametrize(
        "facts",
        [
            waits(range(6)),
            waits(range(12)),
            waits(range(8, 16)),  # the first node is not in this log
            [*waits(range(8)), fact("rank.place", 12, None, of_rank=12)],
            [*waits(range(8)), fact("run.world", None, None, nodes=2)],
            [replace(one, host=f"n{(one.rank or 0) // 2}") for one in waits(range(4))],  # no machine of four, but a few of each of several
        ],
    )
    def test_there_may_be_more(self, facts: list[Fact]) -> None:
        assert [one for one in hang_facts(facts) if one.fields.get("name") == "stuck"] == []


class TestGoneFirst:
    def test_a_store_that_went_minutes_before(self) -> None:
        found = hang_facts([gone(5, 9_500.0), timeout(5), timeout(6)])
        assert [(each.kind, each.rank, each.fields["before"]) for each in found] == [("peer.gone_first", 0, 500.0)]

    def test_what_one_line_tells_of_the_store_goes_for_all(self) -> None:
        first = fact("peer.gone", 5, 9_500.0, name="store", backend="tcpstore", peer="node-a")
        found = hang_facts([first, gone(5, 9_501.0), timeout(5)])
        assert [(each.rank, each.fields["peer"]) for each in found] == [(0, "node-a"), (0, "node-a")]

    def test_a_peer_without_a_rank(self) -> None:
        found = hang_facts([fact("peer.gone", 5, 9_500.0, name="closed", backend="nccl", peer="10.0.0.7"), timeout(5)])
        assert [(each.rank, each.fields["peer"]) for each in found] == [(None, "10.0.0.7")]

    @pytest.mark.parametrize(
        "facts",
        [
            [gone(5, 10_001.0), timeout(5)],  # it left because of the time-out
            [gone(5, 9_980.0), timeout(5)],
            [gone(5, 2_000.0), timeout(5)],  # the run went on for hours
            [gone(5, 9_500.0), timeout(5), timeout(0)],  # rank 0 lives
            [gone(5, 9_500.0)],
            [gone(5, 9_500.0, "refused_retry"), timeout(5)],
        ],
    )
    def test_nobody_went_first(self, facts: list[Fact]) -> None:
        assert hang_facts(facts) == []


class TestSilent:
    def found(self, facts: list[Fact]) -> list[tuple[int | None, Any]]:
        return [(each.rank, each.fields.get("alive")) for each in hang_facts(facts) if each.fields.get("name") == "silent"]

    def test_a_gap(self) -> None:
        assert self.found([timeout(rank, pg="0") for rank in (0, 1, 3)]) == [(2, None)]

    def test_one_less_than_whole_nodes(self) -> None:
        assert self.found([timeout(rank, pg="0") for rank in range(15)]) == [(15, None)]

    def test_the_launcher_had_to_end_it(self) -> None:
        ended = fact("process.exit", 2, 10_030.0, name="box", exitcode=-15)
        assert self.found([*(timeout(rank, pg="0") for rank in (0, 1, 3)), ended]) == [(2, True)]

    @pytest.mark.parametrize(
        "other",
        [
            fact("process.exit", 2, 9_500.0, name="failed", exitcode=1),
            fact("exception", 2, None, type="KeyError", message="x"),
            fact("exception", None, None, type="KeyError", message="x"),
        ],
    )
    def test_its_own_error_says_more(self, other: Fact) -> None:
        assert self.found([other, *(timeout(rank, pg="0") for rank in (0, 1, 3))]) == []

    @pytest.mark.parametrize(
        "other",
        [
            fact("exception", None, None, type="RuntimeError", message="NCCL communicator was aborted on rank 3."),
            fact("exception", None, None, type="KeyboardInterrupt", message=""),
            fact("process.exit", 0, 10_030.0, name="failed", exitcode=-6),
        ],
    )
    def test_what_follows_the_time_outs_does_not(self, other: Fact) -> None:
        assert self.found([other, *(timeout(rank, pg="0") for rank in (0, 1, 3))]) == [(2, None)]

    def test_most_of_the_job_is_in_another_log(self) -> None:
        world = fact("run.world", None, None, world_size=64)
        assert self.found([world, *(timeout(rank, pg="0") for rank in range(8))]) == []


class TestShortLimits:
    def waits(self, **more: Any) -> list[Fact]:
        return [timeout(rank, limit=LIMIT, **more) for rank in (1, 2, 3)]

    def found(self, facts: list[Fact]) -> list[tuple[int | None, str, float]]:
        return [(each.rank, each.fields["name"], each.fields["took"]) for each in hang_facts(facts) if each.kind == "watchdog.short"]

    def test_an_evaluation_that_took_longer(self) -> None:
        took = fact("run.took", 0, 100.0, name="evaluation", took=900.0)
        assert self.found([took, *self.waits(phase="evaluation")]) == [(rank, "evaluation", 900.0) for rank in (1, 2, 3)]

    def test_a_save_by_the_times_of_its_first_and_last_line(self) -> None:
        lines = [fact("run.phase", 0, 100.0, name="save"), fact("run.phase", 0, 800.0, name="training", step=1)]
        again = fact("run.phase", 0, 9_399.0, name="save", step=2, path="x")
        assert self.found([*lines, again, *self.waits()]) == [(rank, "save", 700.0) for rank in (1, 2, 3)]

    @pytest.mark.parametrize(
        ("name", "took", "phase"), [("evaluation", 500.0, "evaluation"), ("evaluation", 900.0, "training"), ("save", 900.0, "evaluation")]
    )
    def test_nothing_of_the_kind(self, name: str, took: float, phase: str) -> None:
        assert self.found([fact("run.took", 0, 100.0, name=name, took=took), *self.waits(phase=phase)]) == []


class TestHosts:
    def known(self, ranks: dict[int, str], nodes: int | None = None) -> Hosts:
        facts = [Fact("rank.place", {"world_size": 16}, Origin("log", "f", rank), rank, host) for rank, host in ranks.items()]
        return hosts_of([*facts, *([fact("run.world", None, None, nodes=nodes)] if nodes else [])], 16)

    def test_neighbours_of_known_ranks(self) -> None:
        hosts = self.known({rank: f"node-{rank // 8}" for rank in range(15)})
        assert (hosts.of(15), hosts.of(3)) == ("node-1", "node-0")

    def test_the_number_of_nodes_is_told(self) -> None:
        assert self.known({0: "node-0", 9: "node-1"}, nodes=2).of(12) == "node-1"

    @pytest.mark.parametrize("ranks", [{0: "node-0"}, {0: "node-0", 10: "node-1"}, dict.fromkeys(range(4), "node-0")])
    def test_few_lines_do_not_tell_the_nodes(self, ranks: dict[int, str]) -> None:
        assert self.known(ranks).of(5) is None


class TestPipelines:
    """Only messages between stages wait: nobody can be compared, but who says nothing shows."""

    def test_the_silent_stage(self) -> None:
        world = fact("run.world", None, None, world_size=4, tp=1, pp=4)
        waits = [timeout(rank, "RECV", pg="5", pg_rank=rank, pg_desc="PIPELINE_MODEL_PARALLEL_GROUP") for rank in (0, 1, 3)]
        assert [(each.rank, each.fields["name"], each.fields["place"]) for each in hang_facts([world, *waits])] == [(2, "silent", "PP 2")]

    def test_a_stage_in_its_tensor_group_holds_up_the_others(self) -> None:
        world = fact("run.world", None, None, world_size=16, tp=4, pp=2)
        own = [timeout(rank, pg="3", pg_rank=rank - 4, pg_desc="TENSOR_MODEL_PARALLEL_GROUP") for rank in (4, 5, 7)]
        next_stage = [
            timeout(rank, "COALESCED", seq=40, pg=f"{20 + rank}", pg_rank=1, pg_desc="PIPELINE_MODEL_PARALLEL_GROUP")
            for rank in (12, 13, 14, 15)
        ]
        found = hang_facts([world, *own, *next_stage])
        assert [(each.rank, each.fields["name"], each.fields["place"]) for each in found] == [(6, "silent", "TP 2, PP 0, DP 1")]

    def test_the_first_to_signal_timed_out_though_its_lines_are_missing(self) -> None:
        world = fact("run.world", None, None, world_size=4)
        saw = fact("watchdog.timeout", 0, 10_001.0, name="dump_signal", pg="0", last_enqueued=700, from_rank=2)
        found = hang_facts([world, saw, timeout(1, pg="0")])
        assert [(each.rank, each.fields["name"]) for each in found] == [(3, "silent")]


@pytest.mark.parametrize(
    "text",
    [
        "[PG 0 Rank 5] Received a timeout signal from this local rank and will start to dump the debug info. Last enqueued NCCL work: 14, last completed NCCL work: 11.",
        "[PG 0 Rank 5] Received a dump signal from this local rank and will start to dump the debug info. Last enqueued NCCL work: 14, last completed NCCL work: 11.",
        "[PG 0 Rank 5] Received a global timeout from another rank and will start to dump the debug info. Last enqueued NCCL work: 14, last completed NCCL work: 11.",
        "[PG 0 Rank 5] Received a global dump signal from rank 3, and will start to dump the debug info. Last enqueued NCCL work: 14, last completed NCCL work: 11.",
        "[PG 0 (default_pg) Rank 5] First PG on this rank detecting the dump signal through tcpstore.",
        "[PG ID 0 PG GUID 0(default_pg) Rank 5] Broadcasting signal exception_dump to other ranks via TCPStore.",
        "[PG ID 0 PG GUID 0(default_pg) Rank 5]  failure detected by watchdog at work sequence id: 12 PG status: last enqueued work: 14, last started work: 12, last completed work: 11",
        "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, TensorShape=[4, 1024], Timeout(ms)=1800000) ran for 1808499 milliseconds before timing out.",
    ],
)  # fmt: skip
def test_wordings(text: str, tmp_path: Path) -> None:
    """What torch 1.9 to 2.13 print, by the format strings in its libraries."""
    (tmp_path / "train.log").write_text(f"[E ProcessGroupNCCL.cpp:607] {text}\n")
    logs = read_logs([str(tmp_path / "train.log")], load([rules_dir()]).signals)
    assert [each.fields.get("pg_rank") for each in logs.facts if each.kind == "watchdog.timeout"] == [5]
