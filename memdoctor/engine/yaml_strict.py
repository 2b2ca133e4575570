"""YAML as rule files use it: mappings, lists and text with line numbers; nothing guesses a type.

``on``, ``no`` and ``1.10`` stay text: a scalar becomes a number or a truth value only where the reader of a key asks for one. Repeated
keys, anchors, aliases, tags, several documents and empty files are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_BYTES = 1 << 20
MAX_DEPTH = 24  # a hand-written file nests about eight deep; readers of nodes recurse

Report = Callable[[int | None, str, str], None]  # line, problem, hint


@dataclass(slots=True)
class Text:
    """A scalar; ``plain`` tells that it stands without quotes (only then is it a number, true, false or null)."""

    value: str
    line: int
    plain: bool

    @property
    def null(self) -> bool:
        return self.plain and self.value in ("", "~", "null")


@dataclass(slots=True)
class Items:
    """A list."""

    nodes: list[Node]
    line: int


@dataclass(slots=True)
class Keys:
    """A mapping; ``lines`` holds the line of each key."""

    nodes: dict[str, Node]
    line: int
    lines: dict[str, int] = field(default_factory=dict)


Node = Text | Items | Keys


class _Refused(Exception):
    pass


def parse(text: str, report: Report) -> Node | None:
    """The one document of ``text``; None where it cannot be read. Every fault goes to ``report``."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _build(yaml.parse(text, Loader=loader), report)
    except _Refused:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or "unreadable"
        hint = "indent with spaces, not tabs" if "\\t" in problem or _tab_at(text, mark) else _hint(problem)
        report(mark.line + 1 if mark else None, f"not valid YAML: {problem}", hint)
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else None
        report(line, "not valid YAML: a character that YAML does not allow", "write control characters as \\x1b in double quotes")
    return None


def _tab_at(text: str, mark: Any) -> bool:
    lines = text.split("\n")
    return mark is not None and mark.line < len(lines) and lines[mark.line].lstrip(" ").startswith("\t")


def _hint(problem: str) -> str:
    if "mapping values are not allowed" in problem:
        return "put text that holds ': ' in quotes"
    if "could not find expected ':'" in problem or "did not find expected" in problem:
        return "look at the indentation, and at quotes or brackets left open, here or just above"
    if "cannot start any token" in problem:
        return "put text that begins with @, `, % or * in quotes"
    if "escape" in problem:
        return "in double quotes a backslash must be doubled; patterns go in single quotes"
    return ""


def _build(events: Any, report: Report) -> Node:
    root: Node | None = None
    stack: list[Items | Keys] = []
    keys: list[tuple[str, int] | None] = []  # the key that waits for its value, for each open node

    def place(node: Node) -> None:
        nonlocal root
        if not stack:
            root = node
            return
        parent = stack[-1]
        if isinstance(parent, Items):
            parent.nodes.append(node)
            return
        key = keys[-1]
        if key is None:
            if not isinstance(node, Text):
                report(node.line, "a key must be plain text", "put text that begins with [ or { in quotes")
                raise _Refused
            keys[-1] = (node.value, node.line)
            return
        keys[-1] = None
        if key[0] in parent.nodes:
            report(key[1], f"the key '{key[0]}' is there twice", f"the first one is in line {parent.lines[key[0]]}")
            return
        parent.nodes[key[0]], parent.lines[key[0]] = node, key[1]

    for event in events:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            line = event.start_mark.line + 1
            _refuse_extras(event, line, report)
            place(Text(event.value, line, event.style is None or event.style == ""))
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            line = event.start_mark.line + 1
            _refuse_extras(event, line, report)
            node: Items | Keys = Keys({}, line) if kind is yaml.MappingStartEvent else Items([], line)
            place(node)
            stack.append(node)
            keys.append(None)
            if len(stack) > MAX_DEPTH:
                report(line, f"nested more than {MAX_DEPTH} deep", "")
                raise _Refused
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            stack.pop()
            keys.pop()
        elif kind is yaml.AliasEvent:
            report(
                event.start_mark.line + 1, f"the alias '*{event.anchor}' is not allowed", "write the value out, or put the text in quotes"
            )
            raise _Refused
        elif kind is yaml.DocumentStartEvent and root is not None:
            report(event.start_mark.line + 1, "a second document", "one file holds one document; take out the '---'")
            raise _Refused
    if root is None:
        report(1, "the file is empty", "")
        raise _Refused
    return root


def _refuse_extras(event: Any, line: int, report: Report) -> None:
    if event.anchor is not None:
        report(line, f"the anchor '&{event.anchor}' is not allowed", "write the value out where it is needed, or put the text in quotes")
        raise _Refused
    if event.tag is not None:
        report(line, f"the tag '{event.tag}' is not allowed", "put text that begins with ! in quotes")
        raise _Refused
