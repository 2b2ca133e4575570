"""A record is a frozen dataclass with slots in every respect but the code that it does without."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from typing import Any

import pytest

from memdoctor.records import entity, record


@record
class Point:
    """Two numbers and what is known of them."""

    x: int
    y: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return abs(self.x) + abs(self.y)


@record
class Single:
    name: str


def test_fields_by_place_and_by_name() -> None:
    assert Point(1, 2, {"a": 1}) == Point(1, y=2, notes={"a": 1}) == Point(x=1, y=2, notes={"a": 1})
    assert (Point(1).y, Point(1).notes, Point(-3, 4).size) == (0, {}, 7)
    assert Point(1).notes is not Point(1).notes


@pytest.mark.parametrize(
    ("given", "named", "problem"),
    [
        ((), {}, "lacks the field 'x'"),
        ((1, 2, {}, 4), {}, "takes 3 fields, 4 were given"),
        ((1,), {"x": 2}, "was given twice the field 'x'"),
        ((1,), {"z": 2}, "has no field 'z'"),
    ],
)
def test_wrong_calls(given: tuple[Any, ...], named: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Point(*given, **named)


def test_frozen_and_without_a_dict() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")
    assert point.x == 1


def test_equal_and_hashed_by_value() -> None:
    assert Single("a") == Single("a") != Single("b")
    assert len({Single("a"), Single("a"), Single("b")}) == 2
    other: object = Point(1)
    assert Single("a") != other
    with pytest.raises(TypeError):
        hash(Point(1))  # a dict in it


def test_shown_like_a_dataclass() -> None:
    assert repr(Point(1, 2)) == "Point(x=1, y=2, notes={})"
    assert Point.__doc__ == "Two numbers and what is known of them."


def test_a_dataclass_to_all_that_ask() -> None:
    kind: Any = Point
    assert is_dataclass(kind)
    assert [each.name for each in fields(Point)] == ["x", "y", "notes"]
    assert asdict(Point(1, 2)) == {"x": 1, "y": 2, "notes": {}}
    assert replace(Point(1, 2), y=5) == Point(1, 5)


def test_copied_and_sent_to_another_process() -> None:
    point = Point(1, 2, {"a": [1]})
    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.deepcopy(point) == point


@entity
class Counter:
    """Counts."""

    name: str
    count: int = 0
    seen: list[str] = field(default_factory=list)

    def add(self, what: str) -> None:
        self.count += 1
        self.seen.append(what)


def test_an_entity_has_a_state_and_is_itself() -> None:
    one, other = Counter("a"), Counter("a")
    one.add("x")
    assert (one.count, one.seen, other.count, other.seen) == (1, ["x"], 0, [])
    assert one != other
    assert len({one, other, one}) == 2
    assert repr(other) == "Counter(name='a', count=0, seen=[])"
    assert [each.name for each in fields(Counter)] == ["name", "count", "seen"]
    assert replace(one, count=5).seen == ["x"]
    assert pickle.loads(pickle.dumps(one)).seen == ["x"]
    with pytest.raises(AttributeError):
        one.other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="lacks the field 'name'"):
        Counter(count=1)  # type: ignore[call-arg]


@record
class Named:
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return True


def test_what_a_class_says_itself_stands() -> None:
    assert repr(Named("a")) == "<a>"
    assert Named("a") == Named("b")


def test_taken_apart_by_a_pattern() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)
