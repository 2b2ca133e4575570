from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.engine.yaml_strict import Items, Keys, Text, parse


def read(text: str) -> tuple[object, list[tuple[int | None, str, str]]]:
    faults: list[tuple[int | None, str, str]] = []
    return parse(text, lambda line, problem, hint: faults.append((line, problem, hint))), faults


@pytest.mark.parametrize(
    "word", ["on", "off", "yes", "no", "1.10", "0x10", "1e3", "012", "2026-01-01", "12:30:45", "null", "true", "=", "<<"]
)
def test_a_scalar_stays_the_text_it_is(word: str) -> None:
    node, faults = read(f"key: {word}")
    assert faults == []
    assert isinstance(node, Keys)
    assert node.nodes["key"] == Text(word, 1, True)


def test_only_a_plain_null_is_null() -> None:
    node, _ = read("a: null\nb: 'null'\nc: ~\nd:\ne: ''\n")
    assert isinstance(node, Keys)
    assert [value.null for value in node.nodes.values() if isinstance(value, Text)] == [True, False, True, True, False]


def test_lines_are_those_of_keys_and_values() -> None:
    node, _ = read("# head\na: 1\nb:\n  - x\n  - {c: y}\n")
    assert isinstance(node, Keys)
    assert node.lines == {"a": 2, "b": 3}
    items = node.nodes["b"]
    assert isinstance(items, Items)
    assert [entry.line for entry in items.nodes] == [4, 5]


def test_a_repeated_key_keeps_the_first_value_and_reading_goes_on() -> None:
    node, faults = read("a: 1\na: {x: [1, 2]}\nb: 3\n")
    assert isinstance(node, Keys)
    assert node.nodes == {"a": Text("1", 1, True), "b": Text("3", 3, True)}
    assert faults == [(2, "the key 'a' is there twice", "the first one is in line 1")]


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(9))
    node, faults = read(bomb)
    assert node is None
    assert [(line, problem) for line, problem, _ in faults] == [(1, "the anchor '&a' is not allowed")]


def test_deep_nesting_is_refused_and_not_a_recursion_error() -> None:
    node, faults = read("[" * 5000 + "]" * 5000)
    assert node is None
    assert len(faults) == 1
    assert "nest" in faults[0][1]


@pytest.mark.parametrize("text", ["? [a]\n: b", "{[a]: b}", "{{a: b}: c}"])
def test_a_key_that_is_no_text_is_refused(text: str) -> None:
    node, faults = read(text)
    assert node is None
    assert faults[0][1] == "a key must be plain text"


@given(st.text(alphabet="ab:-[]{}\"'&*!|>#%@`, \n\t~\\?\x00\x07\u2028é", max_size=60))
def test_any_text_is_read_or_refused_without_a_traceback(text: str) -> None:
    node, faults = read(text)
    assert node is not None or faults
