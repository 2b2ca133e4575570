"""Which files are dumps, and whose."""

from __future__ import annotations

import pickle

import pytest

from memdoctor.sources.dumps.names import dump_head, dump_name, maybe_dump, rank_in


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_0", 0),
        ("/tmp/comm_lib_trace_rank_511", 511),
        ("gloo_fr_rank_12", 12),
        ("nccl_trace_rank_7.json", 7),
        ("dump_3.pkl", 3),
        ("nccl_trace_rank_7.gz", 7),
        ("flight_rank_1024.json.gz", 1024),
        ("nccl_trace_rank_", None),
        ("trace.json", None),
        ("trace_2026-11-29.txt", None),
        ("x" + "9" * 40, None),
    ],
)
def test_the_rank_stands_at_the_end_of_the_name(name: str, rank: int | None) -> None:
    assert rank_in(name) == rank


def test_names_of_torch() -> None:
    assert dump_name("nccl_trace_rank_3")
    assert dump_name("comm_lib_trace_rank_3.json")
    assert not dump_name("nccl_trace_rank_3.log")
    assert not dump_name("my_nccl_trace_rank_3")
    assert maybe_dump("anything.pkl")
    assert not maybe_dump("anything.pt")


@pytest.mark.parametrize(
    ("head", "is_dump"),
    [
        (pickle.dumps({"version": "2.10", "pg_config": {}, "entries": []}, 2), True),
        (pickle.dumps([{"profiling_name": "nccl:all_reduce"}], 4), True),
        (pickle.dumps({"model": [1, 2, 3]}, 2), False),
        (b'{"entries":[{"collective_seq_id":1}]}', True),
        (b'  {"pg_status" : {}}', True),
        (b'{"log":"the \\"pg_status\\" of rank 0","stream":"stderr"}', False),
        (b"pg_config of rank 0 was read\n", False),
        (b"", False),
    ],
)
def test_how_a_dump_begins(head: bytes, is_dump: bool) -> None:
    assert dump_head(head) is is_dump
