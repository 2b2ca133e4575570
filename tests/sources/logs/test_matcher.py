"""The plain matcher finds exactly the segments that hold a gate."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.matcher import Gate, PlainMatcher, excerpts, segment_at

GATES = [Gate(b"a"), Gate(b"ab"), Gate(b"xx"), Gate(rb"a[bx]{1,2}x", pattern=True)]


def test_finds_segments_in_order_with_all_their_gates() -> None:
    data = b"plain\nan Error and NCCL\nnothing\nNCCL again NCCL\n"
    hits = PlainMatcher([Gate(b"NCCL"), Gate(b"Error")]).hits(data)
    assert [(data[start:end], gates) for start, end, gates in hits] == [(b"an Error and NCCL", (0, 1)), (b"NCCL again NCCL", (0,))]


def test_a_lone_carriage_return_ends_a_segment() -> None:
    data = b"10%\r20% loss\r30%\nloss\n"
    assert [data[start:end] for start, end, _ in PlainMatcher([Gate(b"loss")]).hits(data)] == [b"20% loss", b"loss"]


def test_a_segment_at_the_edges_of_the_data() -> None:
    assert segment_at(b"abc", 1) == (0, 3)
    assert segment_at(b"\nabc\n", 2) == (1, 4)


@given(st.lists(st.sampled_from([b"a", b"b", b"ab", b"x", b"xx", b"\n", b"\r", b""]), max_size=40).map(b"".join))
def test_agrees_with_splitting(data: bytes) -> None:
    patterns = [gate.text if gate.pattern else re.escape(gate.text) for gate in GATES]
    expected = []
    for match in re.finditer(rb"[^\r\n]*", data):
        found = tuple(number for number, pattern in enumerate(patterns) if re.search(pattern, match[0]))
        if found:
            expected.append((match.start(), match.end(), found))
    assert PlainMatcher(GATES).hits(data) == expected


def test_excerpts_of_a_long_segment_hold_each_gate_once() -> None:
    raw = b"-" * 50_000 + b"Error one" + b"-" * 3_000 + b"Error two" + b"-" * 50_000 + b"Error three"
    found = list(excerpts(raw, [Gate(b"Error")]))
    assert [sum(word in excerpt for excerpt in found) for word in (b"Error one", b"Error two", b"Error three")] == [1, 1, 1]
    assert sum(map(len, found)) < 20_000


def test_a_gate_that_is_everywhere_hides_no_other() -> None:
    raw = b"loss " * 20_000 + b"CUDA out of memory. " + b"loss " * 20_000
    found = list(excerpts(raw, [Gate(b"loss"), Gate(b"out of memory")]))
    assert any(b"CUDA out of memory. loss" in excerpt for excerpt in found)
    assert sum(map(len, found)) < 3 * len(raw)


@given(st.lists(st.sampled_from([b"Error one: " + b"x" * 300, b"loss ", b"-" * 997, b"-" * 3_000]), max_size=40).map(b"".join))
def test_excerpts_hold_each_message_as_a_whole(raw: bytes) -> None:
    """Wherever one begins: what stands near the end of an excerpt begins one of its own."""
    found = list(excerpts(raw, [Gate(b"loss"), Gate(b"Error one")]))
    for match in re.finditer(rb"Error one: x{300}", raw):
        context = raw[max(0, match.start() - 500) : match.end() + 1_000]
        assert any(context in excerpt for excerpt in found)
    assert all(b"loss" in excerpt or b"Error one" in excerpt for excerpt in found)
