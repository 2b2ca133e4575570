"""Who is at fault, in jobs of a few ranks whose recorders are made call by call."""

from __future__ import annotations

from typing import Any

import pytest

from memdoctor.derive.collectives.judging import verdicts
from memdoctor.derive.collectives.telling import dump_facts
from memdoctor.derive.collectives.verdict import Verdict
from memdoctor.derive.collectives.world import World
from memdoctor.model import RankDump
from memdoctor.sources.dumps.recorder import rank_dump
from tests.flight.small import Small, warm

ALL = (0, 1, 2, 3)


def read(small: Small, *without: int, **changes: Any) -> list[RankDump]:
    known: dict[str, tuple[int, ...] | None] = {}
    dumps = small.dumps(*without)
    return [rank_dump({**dump, **changes}, f"nccl_trace_rank_{rank}", rank, 0, known) for rank, dump in dumps.items()]


def judged(small: Small, *without: int, **changes: Any) -> list[Verdict]:
    return verdicts(World(read(small, *without, **changes)))


def names(found: list[Verdict]) -> list[tuple[str, int | None]]:
    return [(verdict.name, verdict.rank) for verdict in found]


def lines(small: Small, *without: int) -> list[str]:
    return [fact.origin.excerpt for fact in dump_facts(read(small, *without)) if fact.kind == "collective.verdict"]


def test_nothing_is_held_up() -> None:
    assert names(judged(warm(Small()))) == [("ok", None)]


def test_a_victim_in_another_group_is_not_blamed() -> None:
    """Rank 2 does not come to its data group; 0 waits there, and so does not come to the sum over all, where 1 and 3 wait for both."""
    small = warm(Small()).call(0, "3", "_reduce_scatter_base", 64, state="started", at=5, line=31)
    small.call((1, 3), "4", "_reduce_scatter_base", 64, at=5, line=31).call((1, 3), "0", state="started", at=5.1, line=40)
    (verdict,) = judged(small)
    assert (verdict.name, verdict.rank, verdict.waiting) == ("missing", 2, (0, 1, 3))
    assert lines(small) == [
        "rank 2 never called _reduce_scatter_base of [64] Float, number 3 of DP; its last call was all_reduce of [8] Float, number 2 of DP "
        "at /workspace/train/loop.py:13, which had ended; rank 0 waits in it at /workspace/train/loop.py:31, 2 more behind them"
    ]


def test_ranks_that_made_different_numbers_of_calls_are_aligned_by_group() -> None:
    """Rank 0 has made many more calls than the others, and their rings begin at different places."""
    small = Small()
    for number in range(40):
        small.call((0, 1), "1", at=number / 100)
    warm(small).call((0, 1, 3), "0", state="started", at=5)
    for rank in ALL:
        del small.entries[rank][: len(small.entries[rank]) - 3 - rank]
    assert names(judged(small)) == [("missing", 2)]


def test_the_lowest_rank_may_be_the_odd_one() -> None:
    small = warm(Small()).call(0, "0", size=6, state="started", at=5).call((1, 2, 3), "0", state="started", at=5)
    assert names(judged(small)) == [("mismatch_size", 0)]


def test_a_good_plain_message_is_no_missing_collective() -> None:
    small = warm(Small()).message(0, "5", "0->1").message(1, "5", "1<-0").message(2, "5", "2->3").message(3, "5", "3<-2")
    assert names(judged(small)) == [("ok", None)]


def test_a_message_that_is_never_received() -> None:
    small = warm(Small()).message(0, "5", "0->1").message(1, "5", "1<-0").message(0, "5", "0->1", state="started", at=5)
    assert names(judged(small)) == [("missing", 1)]


def test_messages_are_matched_by_order_of_their_pair() -> None:
    """Two messages of different sizes from 0 to 1, received in that order; the third is of another size on both sides than the first."""
    small = Small()
    for size, state in ((8, "completed"), (16, "completed"), (32, "started")):
        small.message(0, "5", "0->1", size, state=state).message(1, "5", "1<-0", size, state=state)
    assert names(judged(small)) == [("stuck_all", None)]
    small = Small()
    for sent, received, state in ((8, 8, "completed"), (16, 32, "started"), (32, 16, "scheduled")):
        small.message(0, "5", "0->1", sent, state=state).message(1, "5", "1<-0", received, state=state)
    assert names(judged(small)) == [("p2p_mismatch", 0), ("p2p_mismatch", 1)]


def test_a_batch_waits_for_each_of_its_members() -> None:
    """1 hands over a send to 2 and a receive from 0; 0 never sends. 2's receive went through only on paper."""
    small = warm(Small()).message(1, "5", "1->2 1<-0", state="started", at=5).message(2, "5", "2<-1", state="started", at=5)
    assert names(judged(small)) == [("missing", 0)]


def test_two_that_both_send_first() -> None:
    small = warm(Small()).message(0, "5", "0->1", state="started", at=5).message(1, "5", "1->0", state="started", at=5)
    found = judged(small)
    assert names(found) == [("cycle", 0), ("cycle", 1)]
    assert "waits for it" in lines(small)[0]


def test_a_circle_of_three_groups() -> None:
    groups = {"0": ("default_pg", (0, 1, 2)), "1": ("A", (0, 1)), "2": ("B", (1, 2)), "3": ("C", (0, 2))}
    small = Small(groups).call((0, 1, 2), "0").call(0, "1", state="started").call(1, "2", state="started").call(2, "3", state="started")
    assert names(judged(small)) == [("cycle", 0), ("cycle", 1), ("cycle", 2)]


def test_the_odd_one_of_a_circle_is_the_minority() -> None:
    """0 is in the sum over all before that of its group of three; 1 and 2 are in that of their group."""
    groups = {"0": ("default_pg", ALL), "1": ("TP", (0, 1, 2))}
    small = Small(groups).call(ALL, "0").call((0, 3), "0", state="started", at=5).call((1, 2), "1", state="started", at=5)
    assert names(judged(small)) == [("cycle", 0)]


def test_opposite_orders_that_stand_in_the_rings() -> None:
    """All have called both, two of them the other way round."""
    groups = {"0": ("default_pg", ALL), "1": ("TP", ALL)}
    small = Small(groups, timed=False).call(ALL, "0")
    for rank in ALL:
        for group in "01" if rank == 2 else "10":
            small.call(rank, group, state="scheduled", at=5)
    assert names(judged(small)) == [("order", 2)]


def test_swapped_within_one_group() -> None:
    small = warm(Small())
    for rank in ALL:
        for op in ("broadcast", "all_reduce") if rank == 1 else ("all_reduce", "broadcast"):
            small.call(rank, "0", op, state="scheduled", at=5)
    assert names(judged(small)) == [("order", 1)]


def test_all_are_in_it_and_nobody_gets_out() -> None:
    small = warm(Small()).call(ALL, "0", state="started", at=5)
    (verdict,) = judged(small)
    assert (verdict.name, verdict.rank, verdict.waiting) == ("stuck_all", None, ALL)
    assert lines(small) == [
        "all 4 ranks are in all_reduce of [8] Float, number 3 of default_pg and none of them gets out at /workspace/train/loop.py:10"
    ]


def test_some_got_out_and_some_did_not() -> None:
    small = warm(Small()).call((0, 1), "0", at=5).call((2, 3), "0", state="started", at=5)
    (verdict,) = judged(small)
    assert (verdict.name, verdict.waiting) == ("stuck_all", (2, 3))


def test_what_stands_behind_a_stuck_call_on_its_gpu_is_a_victim() -> None:
    small = warm(Small(timed=False)).call((0, 1), "1", state="scheduled", at=5).call(ALL, "0", state="scheduled", at=6)
    (verdict,) = judged(small)
    assert verdict.meeting is not None
    assert (verdict.name, verdict.meeting.group, verdict.waiting) == ("stuck_all", "1|0,1", ALL)


def test_a_gpu_that_never_reached_it() -> None:
    small = warm(Small()).call((0, 1, 3), "0", state="started", at=5).call(2, "0", state="scheduled", at=5)
    assert names(judged(small)) == [("not_started", 2)]


class TestMissingDumps:
    def stuck(self) -> Small:
        return warm(Small()).call((0, 1, 3), "0", state="started", at=5)

    def test_the_one_that_all_wait_for(self) -> None:
        assert names(judged(self.stuck(), 2)) == [("not_seen", 2)]

    def test_another_one_hides_nothing(self) -> None:
        assert names(judged(self.stuck(), 3)) == [("missing", 2)]

    def test_two_of_which_one_explains_more(self) -> None:
        small = warm(Small()).call(0, "3", state="started", at=5).call(1, "0", state="started", at=5)
        assert names(judged(small, 2, 3)) == [("not_seen", 2)]

    def test_one_dump_alone(self) -> None:
        found = judged(warm(Small()).call(0, "1", state="started", at=5), 1, 2, 3)
        assert names(found) == [("not_seen", 1)]


class TestLate:
    def late(self, by: float, skew: float = 0.0) -> Small:
        """Rank 2's clock is ``skew`` seconds ahead, and it comes ``by`` seconds late."""
        small = Small()
        for number in range(4):
            small.call((0, 1, 3), "0", at=number).call(2, "0", at=number + skew)
        return small.call((0, 1, 3), "0", state="started", at=5).call(2, "0", state="started", at=5 + by + skew)

    @pytest.mark.parametrize("skew", [0.0, -900.0, 900.0])
    def test_late_by_most_of_the_limit_whatever_the_clock(self, skew: float) -> None:
        (verdict,) = judged(self.late(590, skew))
        assert (verdict.name, verdict.rank) == ("late", 2)
        assert verdict.late == pytest.approx(590, abs=5)

    @pytest.mark.parametrize("skew", [0.0, -900.0, 900.0])
    def test_a_little_late_is_nothing(self, skew: float) -> None:
        assert names(judged(self.late(30, skew))) == [("stuck_all", None)]

    def test_who_was_held_up_by_the_late_one_is_not_late(self) -> None:
        """2 comes late to its group with 3, so 3 comes late to the sum over all, too."""
        small = (
            warm(Small())
            .call(3, "2", at=5)
            .call(2, "2", at=595)
            .call((0, 1), "0", state="started", at=5)
            .call((2, 3), "0", state="started", at=596)
        )
        for entry in small.entries[3]:
            if entry["process_group"][0] == "2" and entry["collective_seq_id"] == 3:
                entry["time_discovered_completed_ns"] += 590 * 10**9
        assert names(judged(small)) == [("late", 2)]


class TestGloo:
    """States are never updated, retired may mean nothing, and no dump tells the ranks of a group."""

    CONFIG: dict[str, Any] = {"pg_config": {"": {"name": "", "desc": "", "ranks": "[]"}}}  # noqa: RUF012

    def gloo(self) -> Small:
        small = Small({"0": ("default_pg", (0, 1)), "1": ("TP", (0, 1))}, backend="gloo")
        return small.call((0, 1), "0", state="scheduled", retired=True).call((0, 1), "1", state="scheduled", retired=True)

    def test_one_that_never_comes(self) -> None:
        assert names(judged(self.gloo().call(0, "0", state="scheduled"), **self.CONFIG)) == [("missing", 1)]

    def test_retired_though_nobody_came(self) -> None:
        assert names(judged(self.gloo().call(0, "0", state="scheduled", retired=True), **self.CONFIG)) == [("missing", 1)]

    def test_over_on_one_is_over_on_all(self) -> None:
        small = self.gloo().call(0, "0", "barrier", state="scheduled", retired=True).call(1, "0", "barrier", state="scheduled")
        assert names(judged(small, **self.CONFIG)) == [("ok", None)]

    def test_a_broadcast_whose_root_went_on(self) -> None:
        small = self.gloo().call(0, "0", "broadcast", state="scheduled", retired=True).call(0, "1", state="scheduled")
        assert names(judged(small, **self.CONFIG)) == [("missing", 1)]

    def test_a_group_that_only_one_rank_is_known_to_have(self) -> None:
        small = Small({"0": ("default_pg", (0, 1)), "1": ("TP", (0, 1))}, backend="gloo").call(0, "1", state="scheduled")
        assert names(judged(small, **self.CONFIG)) == [("undecided", None)]


def test_one_that_calls_what_nobody_else_calls() -> None:
    groups = {"0": ("default_pg", tuple(range(8)))}
    small = Small(groups).call(tuple(range(8)), "0").call(6, "0", state="started", at=5)
    assert names(judged(small)) == [("extra", 6)]


def test_the_world_and_versions_are_facts() -> None:
    facts = dump_facts(read(warm(Small())), 7)
    told = [(fact.kind, dict(fact.fields)) for fact in facts if fact.kind.startswith("run.")]
    assert told == [
        ("run.world", {"world_size": 4}),
        ("run.version", {"name": "torch"}),
        ("run.version", {"name": "nccl", "version": "2.27.5"}),
    ]
    assert sorted(fact.rank for fact in facts if fact.kind == "collective.dump" and fact.rank is not None) == [0, 1, 2, 3]
    assert [fact.seq for fact in facts] == list(range(7, 7 + len(facts)))
    assert dump_facts([]) == ()
