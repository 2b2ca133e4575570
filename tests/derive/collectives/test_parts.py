"""The pieces of the analysis, each by itself."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from memdoctor.derive.collectives.comparing import compare, elements, minority, volume
from memdoctor.derive.collectives.unseen import suspects
from memdoctor.derive.collectives.waits import Node, components
from memdoctor.model import Call


def call(op: str = "all_reduce", size: tuple[int, ...] = (8,), dtype: str = "Float") -> Call:
    return Call(0, "g", 1, op, False, inputs=(size,), outputs=(size,), dtypes=(dtype,))


def test_the_minority_is_odd_and_a_tie_names_all() -> None:
    assert minority({0: "a", 1: "a", 2: "b", 3: "a"}) == (2,)
    assert minority({0: "b", 1: "a", 2: "a"}) == (0,)  # the lowest rank is no reference
    assert minority({0: "a", 1: "b"}) == (0, 1)
    assert minority({0: "a", 1: "b", 2: "c", 3: "c"}) == (0, 1)
    assert minority({0: "a", 1: "a"}) == ()
    assert minority({}) == ()


def test_operation_before_type_before_size() -> None:
    others = {0: call(), 1: call(), 2: call()}
    for odd, name in (
        (call("broadcast", (9,), "Half"), "mismatch_type"),
        (call(size=(9,), dtype="Half"), "mismatch_dtype"),
        (call(size=(9,)), "mismatch_size"),
    ):
        fault = compare({**others, 3: odd})
        assert fault is not None
        assert (fault.name, fault.ranks) == (name, (3,))
    assert compare({**others, 3: call(size=(2, 4))}) is None  # the same data in another shape
    assert compare({**others, 3: Call(0, "g", 1, "all_reduce", False)}) is None  # an old dump without sizes
    assert compare({0: call("all_to_all", (8,)), 1: call("all_to_all", (9,))}) is None


def test_elements() -> None:
    assert elements(((2, 3), (4,))) == 10
    assert elements(((),)) == 1
    assert elements(()) is None
    assert volume(call("gather")) is None


def test_suspects_are_the_fewest_that_explain_all() -> None:
    assert suspects([]) == {}
    assert suspects([frozenset({5})]) == {5: (0,)}
    # 5 died; 9 only has no dump, and is nowhere the only one missing
    assert set(suspects([frozenset({5}), frozenset({5, 9}), frozenset({5, 9, 12})])) == {5}
    assert set(suspects([frozenset({1, 2}), frozenset({2, 3})])) == {2}
    assert set(suspects([frozenset({1, 2})])) == {1, 2}  # nothing tells them apart
    assert set(suspects([frozenset({1}), frozenset({2})])) == {1, 2}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.frozensets(st.integers(0, 8), min_size=1), max_size=8))
def test_suspects_hit_every_set(waits: list[frozenset[int]]) -> None:
    found = suspects(waits)
    assert all(each & set(found) for each in waits)
    assert all(rank in waits[place] for rank, places in found.items() for place in places)


def test_components() -> None:
    edges: dict[Node, list[Node]] = {
        ("rank", 0): [("rank", 1)],
        ("rank", 1): [("rank", 2)],
        ("rank", 2): [("rank", 0), ("rank", 3)],
        ("rank", 3): [],
    }
    assert sorted(sorted(rank for _, rank in part) for part in components(edges)) == [[0, 1, 2], [3]]


def test_components_of_a_long_chain_need_no_recursion() -> None:
    edges: dict[Node, list[Node]] = {("rank", number): [("rank", number + 1)] for number in range(20_000)}
    edges["rank", 20_000] = []
    assert len(components(edges)) == 20_001
    edges["rank", 20_000] = [("rank", 0)]
    assert len(components(edges)) == 1


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000))
def test_components_against_reachability(seed: int) -> None:
    rng = random.Random(seed)
    nodes: list[Node] = [("rank", number) for number in range(rng.randint(1, 9))]
    edges: dict[Node, list[Node]] = {node: [other for other in nodes if rng.random() < 0.25] for node in nodes}

    def reach(start: Node) -> set[Node]:
        seen, left = {start}, [start]
        while left:
            for other in edges[left.pop()]:
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        return seen

    reached = {node: reach(node) for node in nodes}
    expected = {frozenset(other for other in reached[node] if node in reached[other]) for node in nodes}
    assert {frozenset(part) for part in components(edges)} == expected
