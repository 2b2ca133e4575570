"""The odd one among ranks that timed out, and connections that broke long before, from facts made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from memdoctor.derive.hangs import hang_facts
from memdoctor.model import Fact, Origin, Stamp

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
