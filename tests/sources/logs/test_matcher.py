"""The plain matcher finds exactly the segments that hold a gate."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.matcher import PlainMatcher, segment_at


def test_finds_segments_in_order_with_all_their_gates() -> None:
    data = b"plain\nan Error and NCCL\nnothing\nNCCL again NCCL\n"
    hits = PlainMatcher([b"NCCL", b"Error"]).hits(data)
    assert [(data[start:end], gates) for start, end, gates in hits] == [(b"an Error and NCCL", (0, 1)), (b"NCCL again NCCL", (0,))]


def test_a_lone_carriage_return_ends_a_segment() -> None:
    data = b"10%\r20% loss\r30%\nloss\n"
    assert [data[start:end] for start, end, _ in PlainMatcher([b"loss"]).hits(data)] == [b"20% loss", b"loss"]


def test_a_segment_at_the_edges_of_the_data() -> None:
    assert segment_at(b"abc", 1) == (0, 3)
    assert segment_at(b"\nabc\n", 2) == (1, 4)


@given(st.lists(st.sampled_from([b"a", b"b", b"ab", b"xx", b"\n", b"\r", b""]), max_size=40).map(b"".join))
def test_agrees_with_splitting(data: bytes) -> None:
    gates = [b"a", b"ab", b"xx"]
    expected = []
    for match in re.finditer(rb"[^\r\n]*", data):
        found = tuple(number for number, gate in enumerate(gates) if gate in match[0])
        if found:
            expected.append((match.start(), match.end(), found))
    assert PlainMatcher(gates).hits(data) == expected
