"""The fast matcher finds what the plain one finds, on anything; which of them is used is a question of size."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memdoctor.engine.load import load_signals
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.block_matcher import BlockMatcher, Unavailable
from memdoctor.sources.logs.choosing import GrowingMatcher
from memdoctor.sources.logs.index import SignalIndex
from memdoctor.sources.logs.matcher import Gate, Hit, PlainMatcher
from tests.bench.generate import pieces
from tests.hostile.mutations import anything, mutated

pytest.importorskip("hyperscan")
FIXTURES = Path(__file__).parents[3] / "fixtures"
GATES = [Gate(b"a"), Gate(b"ab"), Gate(b"bab"), Gate(b". *"), Gate(rb"a[bx]{1,2}x", pattern=True), Gate("ä".encode())]


@given(st.lists(st.sampled_from([b"a", b"b", b"ab", b"x", b". *", b"\xc3", b"\xa4", b"\0", b"\n", b"\r"]), max_size=60).map(b"".join))
@example(b"")
@example(b"ab\rab\n\n\rbab")
def test_agrees_on_anything(data: bytes) -> None:
    assert BlockMatcher(GATES).hits(data) == PlainMatcher(GATES).hits(data)


@pytest.fixture(scope="module")
def matchers() -> list[tuple[BlockMatcher, PlainMatcher]]:
    """With the gates of all signals; and without those of which a sample is enough."""
    index = SignalIndex(load_signals([rules_dir()]))
    assert index.sampled
    return [(BlockMatcher(index.gates, without), PlainMatcher(index.gates, without)) for without in ((), index.sampled)]


def agree(matchers: list[tuple[BlockMatcher, PlainMatcher]], data: bytes) -> int:
    """Both find the same in ``data``; returns in how many segments."""
    for fast, plain in matchers:
        assert fast.hits(data) == plain.hits(data)
    return len(matchers[0][0].hits(data))


def test_agrees_on_every_fixture(matchers: list[tuple[BlockMatcher, PlainMatcher]]) -> None:
    paths = [path for path in sorted(FIXTURES.rglob("*")) if path.is_file()]
    assert len(paths) > 2_000
    assert sum(agree(matchers, path.read_bytes()) for path in paths) > 10_000


def test_agrees_where_gates_stand_close_together(matchers: list[tuple[BlockMatcher, PlainMatcher]]) -> None:
    gates = SignalIndex(load_signals([rules_dir()])).gates
    for between in (b"", b" ", b"\r", b"\n"):
        assert agree(matchers, between.join(gate.text for gate in gates)) > 0


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 10_000), st.integers(1, 300_000), st.integers(0, 100_000))
def test_agrees_on_made_up_logs(matchers: list[tuple[BlockMatcher, PlainMatcher]], seed: int, size: int, start: int) -> None:
    """Cut anywhere, as a window of an endless line is."""
    agree(matchers, b"".join(pieces(size + 1, seed))[start:])


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(mutated(), anything))
def test_agrees_on_mutations_of_the_fixtures(matchers: list[tuple[BlockMatcher, PlainMatcher]], data: bytes) -> None:
    agree(matchers, data)


def test_leaves_out_what_it_is_told_to() -> None:
    assert BlockMatcher(GATES, [0, 2]).hits(b"bab\nax") == [(0, 3, (1,))]


class Noted:
    """Stands in for the fast matcher."""

    def __init__(self, gates: Sequence[Gate], without: Collection[int] = ()) -> None:
        self.without = set(without)

    def hits(self, data: bytes) -> Sequence[Hit]:
        return [(0, 1, (len(self.without),))]


def refuse(gates: Sequence[Gate], without: Collection[int] = ()) -> Noted:
    raise Unavailable("not installed")


def test_grows_into_the_fast_one_when_much_was_read() -> None:
    matcher = GrowingMatcher([Gate(b"x")] * 1_000, Noted)
    assert matcher.hits(b"-" * 10_000) == []
    assert matcher.hits(b"-" * 1_000_000) == [(0, 1, (0,))]
    assert matcher.hits(b"-") == [(0, 1, (0,))]
    assert matcher.hits(b"-", frozenset([7, 8])) == [(0, 1, (2,))]
    assert matcher.hits(b"-", frozenset([7])) == [(0, 1, (1,))]


def test_stays_plain_without_the_fast_one() -> None:
    matcher = GrowingMatcher([Gate(b"x"), Gate(b"y")], refuse)
    for _ in range(3):
        assert matcher.hits(b"-" * 40_000_000) == []
    assert matcher.hits(b"x") == [(0, 1, (0,))]
    assert matcher.hits(b"xy\ny", frozenset([1])) == [(0, 2, (0,))]


def test_refuses_what_it_cannot_compile() -> None:
    with pytest.raises(Unavailable):
        BlockMatcher([Gate(rb"(?<=a)b", pattern=True)])
