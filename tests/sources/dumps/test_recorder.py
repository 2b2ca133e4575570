"""From the layouts of all versions to one: groups, numbers, batches, and what had ended."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from memdoctor.model import RankDump
from memdoctor.sources.dumps.recorder import LAST, rank_dump
from memdoctor.sources.dumps.unpacking import NotADump
from tests.flight.small import START, Small, warm


def read(raw: Any, rank: int | None = 0) -> RankDump:
    return rank_dump(raw, "nccl_trace_rank_0", rank, 100, {})


def by_desc(dump: RankDump, values: Any) -> dict[str, int]:
    return {dump.groups[key].desc: number for key, number in values.items()}


def test_groups_numbers_and_calls() -> None:
    small = warm(Small(), 2).call(0, "1", "_all_gather_base", [512, 2], dtype="BFloat16", state="started", at=9, line=77)
    dump = read(small.dump(0))
    assert by_desc(dump, dump.enqueued) == {"default_pg": 2, "TP": 3, "DP": 2, "PP": 0}
    assert by_desc(dump, dump.completed) == {"default_pg": 2, "TP": 2, "DP": 2, "PP": 0}
    assert [group.ranks for group in dump.groups.values() if group.desc == "TP"] == [(0, 1)]
    last = dump.calls[-1]
    assert (last.op, last.seq, last.done, last.started) == ("_all_gather_base", 3, False, True)
    assert (last.inputs, last.dtypes, last.frame, last.limit) == (((512, 2),), ("BFloat16",), "/workspace/train/loop.py:77", 600.0)
    assert last.created == pytest.approx(START / 1e9 + 9)
    assert dump.whole
    assert dump.library == "2.27.5"
    assert dump.backend == "nccl"


def test_one_group_has_one_key_on_all_ranks_and_split_groups_have_their_own() -> None:
    groups = {"0": ("default_pg", (0, 1, 2, 3)), "1": ("", (0, 1))}
    one, other = Small(groups).dump(0), Small(groups).dump(1)
    assert read(one, 0).groups.keys() == read(other, 1).groups.keys()
    split = Small({"0": ("default_pg", (0, 1, 2, 3)), "1": ("", (2, 3))}).dump(2)
    assert read(one, 0).groups.keys() & read(split, 2).groups.keys() == {"0|0,1,2,3"}


def test_older_layouts() -> None:
    small = warm(Small(), 1).call(0, "0", state="scheduled", at=5)
    old = copy.deepcopy(small.dump(0))
    old["nccl_version"] = old.pop("comm_lib_version")
    for entry in old["entries"]:
        entry["seq_id"] = entry.pop("collective_seq_id")
        for time in ("time_created", "time_discovered_started", "time_discovered_completed"):
            value = entry.pop(f"{time}_ns")
            entry[f"{time}_us"] = None if value is None else value // 1000
        for key in ("p2p_seq_id", "is_p2p", "input_dtypes", "output_dtypes", "timeout_ms"):
            del entry[key]
    dump = read(old)
    assert dump.library == "2.27.5"
    assert by_desc(dump, dump.enqueued) == {"default_pg": 2, "TP": 1, "DP": 1, "PP": 0}
    assert not dump.calls[-1].done
    assert dump.calls[-1].limit is None
    assert dump.calls[-1].created == pytest.approx(START / 1e9 + 5)


def test_a_bare_list_with_numbers_of_its_own() -> None:
    entries = warm(Small(), 1).dump(0)["entries"]
    for entry in entries:
        del entry["process_group"]
    dump = read(entries)
    assert {group.name: group.shared for group in dump.groups.values()} == {"0": True, "#1": False, "#2": False}


def test_numbers_of_its_own_beside_the_groups() -> None:
    raw = warm(Small(), 1).dump(2)
    for entry in raw["entries"]:
        del entry["process_group"]
    dump = read(raw, 2)
    assert sorted(dump.groups) == ["0|0,1,2,3", "2|2,3", "3|0,2", "5|0,1,2,3"]
    assert by_desc(dump, dump.enqueued) == {"default_pg": 1, "TP": 1, "DP": 1, "PP": 0}


def test_json_has_no_stacks_and_zero_for_unknown_times() -> None:
    raw = warm(Small(), 1).call(0, "0", state="scheduled", at=5).dump(0)
    for entry in raw["entries"]:
        del entry["frames"]
        entry["process_group"] = list(entry["process_group"])
        for time in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            entry[time] = entry[time] or 0
    dump = read(raw)
    assert [call.done for call in dump.calls] == [True, True, True, False]
    assert dump.calls[-1].ended is None
    assert dump.calls[-1].frame == ""


def test_an_empty_ring_still_tells_how_far_the_rank_came() -> None:
    raw = warm(Small(), 3).dump(0, entries=[])
    dump = read(raw)
    assert by_desc(dump, dump.enqueued) == {"default_pg": 3, "TP": 3, "DP": 3, "PP": 0}
    assert dump.calls == ()
    never = Small().dump(0)
    assert set(read(never).enqueued.values()) == {0}


def test_minus_one_is_none() -> None:
    raw = Small().call(0, "0", state="scheduled").dump(0)
    raw["pg_status"]["0"] = {"last_enqueued_collective": -1, "last_started_collective": -1, "last_completed_collective": -1}
    dump = read(raw)
    assert dump.enqueued["0|0,1,2,3"] == 1
    assert not dump.calls[0].done


def test_a_timed_out_call_is_retired_and_not_over() -> None:
    raw = Small().call(0, "0", state="started", retired=True).dump(0)
    assert not read(raw).calls[0].done
    gloo = Small(backend="gloo").call(0, "0", state="scheduled", retired=True).dump(0)
    assert read(gloo).calls[0].done


def test_a_state_that_nothing_updated_is_over_where_a_later_one_is() -> None:
    small = Small().call(0, "0", state="scheduled").call(0, "0").call(0, "1", state="scheduled")
    assert [(call.op, call.done) for call in read(small.dump(0)).calls] == [
        ("all_reduce", True),
        ("all_reduce", True),
        ("all_reduce", False),
    ]


def test_members_of_a_batch_have_its_state() -> None:
    small = Small().message(1, "5", "1->2 1<-0").message(1, "5", "1->2 1<-0", state="started", at=5)
    first, second = read(small.dump(1), 1).calls
    assert [part.pair for part in first.parts] == [(1, 2), (0, 1)]
    assert first.done
    assert all(part.done for part in first.parts)
    assert not second.done
    assert not any(part.done for part in second.parts)
    assert second.p2p


def test_messages_of_a_smaller_group_are_told_by_global_ranks() -> None:
    groups = {"0": ("default_pg", tuple(range(8))), "1": ("PP", (1, 5))}
    small = Small(groups).message(5, "1", "1<-0").message(1, "1", "0->1")
    assert read(small.dump(5), 5).calls[0].pair == (1, 5)
    assert read(small.dump(1), 1).calls[0].pair == (1, 5)


def test_a_batch_whose_end_was_left_out_is_over() -> None:
    """A dump of what is active only leaves out the end of a batch, and not its members, which nothing ever updates."""
    small = Small().message(1, "5", "1->2 1<-0").message(1, "5", "1->2", batch=True).call(1, "1").message(1, "5", "1<-0", state="started")
    raw = small.dump(1)
    raw["entries"] = [entry for entry in raw["entries"] if entry["state"] != "completed"]
    assert [(call.pair, call.done) for call in read(raw, 1).calls] == [((1, 2), True), ((0, 1), True), ((1, 2), True), ((0, 1), False)]


def test_a_long_ring_is_cut_to_what_matters() -> None:
    small = Small().call(0, "1", state="started", at=1)
    for number in range(1000):
        small.call(0, "0", at=2 + number)
    dump = read(small.dump(0))
    assert len(dump.calls) == LAST + 1
    assert not dump.calls[0].done
    assert dump.enqueued["0|0,1,2,3"] == 1000
    assert not dump.whole


def test_the_rank_out_of_its_groups() -> None:
    assert read(Small().dump(2), None).rank == 2
    with pytest.raises(NotADump, match="does not tell its rank"):
        read(Small({"0": ("default_pg", (0, 1))}).dump(0), None)


def test_a_config_that_gloo_leaves_empty() -> None:
    raw = Small(backend="gloo").call(0, "1").dump(0, pg_config={"": {"name": "", "desc": "", "ranks": "[]"}})
    dump = read(raw)
    assert [(group.name, group.desc, group.ranks) for group in dump.groups.values()] == [("1", "TP", None)]


@pytest.mark.parametrize(
    "raw",
    [7, "text", {}, {"model": 1}, {"entries": 5}, {"entries": {"a": 1}}, {"entries": [1, 2]}, {"entries": ["x"]}, [[1]], None],
)
def test_what_is_no_recorder(raw: Any) -> None:
    with pytest.raises(NotADump):
        read(raw)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"profiling_name": None, "process_group": None, "pg_id": "x"},
        {"profiling_name": 7, "process_group": (3, 4), "collective_seq_id": "9", "frames": 5, "input_sizes": 8, "state": 1},
        {"profiling_name": "nccl:send", "is_p2p": True, "process_group": ("0",)},
        {"profiling_name": "nccl:send 0->9999999", "is_p2p": True, "process_group": ("0", "x")},
        {
            "profiling_name": "a\x1b[31m:b\n",
            "process_group": ("\x1b", "\x9b"),
            "collective_seq_id": 10**30,
            "frames": [None, {"filename": 3}],
        },
        {"profiling_name": "nccl:all_reduce", "input_sizes": [[None], "x", [10**40]], "input_dtypes": "Float", "time_created_ns": -5},
        {"profiling_name": "nccl:all_reduce", "time_created_ns": 2**62, "timeout_ms": -1, "frames": [{"filename": "/a\nb", "line": "x"}]},
    ],
)
def test_strange_entries_do_no_harm(entry: Any) -> None:
    raw = warm(Small(), 1).dump(0)
    raw["entries"] += [entry, entry]
    raw["pg_status"]["x"] = raw["pg_status"]["99999999999"] = 5
    raw["pg_config"][5] = raw["pg_config"]["q"] = {"ranks": "[" + "1, " * 9 + "]", "desc": 7}
    dump = read(raw)
    assert all(call.op.isprintable() and call.frame.isprintable() for call in dump.calls)
    assert all(group.desc.isprintable() and group.name.isprintable() for group in dump.groups.values())
