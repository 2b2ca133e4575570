"""Conditions in plain words."""

from __future__ import annotations

import pytest

from memdoctor.catalog import KINDS
from memdoctor.engine.schema import AllOf, AnyOf, Comparison, Count, Leaf, NoneOf
from memdoctor.handbook.words import conditions, phrase, shape


def line(*tests: Comparison, kind: str = "cuda.oom", **more: object) -> str:
    (only,) = conditions(Leaf(kind, tests, **more))  # type: ignore[arg-type]
    return only.text


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (Comparison("tried", "ge", 1 << 30, type="bytes"), "tried is at least 1 GiB"),
        (Comparison("gpu", "eq", 3, type="int"), "gpu is 3"),
        (Comparison("name", "in", ("a", "b", "c")), "name is a, b or c"),
        (Comparison("name", "ne", "a"), "name is not a"),
        (Comparison("free", "exists", False, type="bytes"), "free is not known"),
        (Comparison("processes", "has", ("x", "y")), 'processes holds "x" and "y"'),
        (Comparison("free", "lt", of_first="tried", type="bytes"), "free is below the tried of the first fact"),
        (Comparison("rank", "eq", of_first="rank", type="int"), "rank is the rank of the first fact"),
    ],
)
def test_comparisons(test: Comparison, said: str) -> None:
    assert line(test) == f"a GPU allocation failed [cuda.oom]; {said}"


def test_joins_and_counts() -> None:
    text = line(kind="peer.gone", same=("rank", "host"), count=Count(3, "rank", 600.0))
    assert text.endswith("[peer.gone]; on the same rank and host; at least 3 different values of rank within 10 min")
    assert line(kind="progress", count=Count(2)).endswith("at least 2 times")


def test_trees() -> None:
    leaf = Leaf("progress")
    tree = AllOf((AnyOf((leaf, Leaf("xid", confidence="possible")), confidence=None), NoneOf((leaf,))))
    assert [(each.depth, each.text.partition(" [")[0]) for each in conditions(tree)] == [
        (0, "all of:"),
        (1, "any of:"),
        (2, "iterations that the attempt reached"),
        (2, "the NVIDIA driver logged an Xid"),
        (1, "and none of:"),
        (2, "iterations that the attempt reached"),
    ]
    assert conditions(tree)[3].text.endswith("[xid] (possible)")
    assert conditions(AllOf((leaf,)))[0].depth == 0


def test_every_kind_has_a_phrase() -> None:
    for kind in KINDS:
        text = phrase(kind)
        assert text
        assert not text.endswith((".", ":", ";"))
        assert "`" not in text


def test_shape() -> None:
    assert shape("[Rank {ranks}: ]no room[[x]][: {tried} asked]") == "Rank <ranks>: no room[x]: <tried> asked"
