"""Reading keys out of the nodes of one file: every fault is kept with its line, and reading goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memdoctor import units
from memdoctor.engine.yaml_strict import Items, Keys, Node, Text
from memdoctor.errors import RuleError, suggest


class Faults:
    """The faults of one file, in the order in which they were found."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.errors: list[RuleError] = []

    def add(self, where: Node | int | None, problem: str, hint: str = "") -> None:
        line = where if isinstance(where, int) or where is None else where.line
        if not any(error.line == line and error.problem == problem for error in self.errors):
            self.errors.append(RuleError(self.path, line, problem, hint))


class Reader:
    """The keys of one mapping. ``what`` names it in messages ("the rule", "fix 2")."""

    def __init__(self, node: Node | None, faults: Faults, what: str, known: Sequence[str], required: Sequence[str] = ()) -> None:
        self.faults, self.what = faults, what
        self.line = node.line if node is not None else None
        self.nodes: dict[str, Node] = {}
        if not isinstance(node, Keys):
            faults.add(self.line, f"{what} must be a mapping of keys", f"its keys: {', '.join(known)}")
            return
        for key, value in node.nodes.items():
            if key in known:
                self.nodes[key] = value
            else:
                faults.add(node.lines[key], f"{what} has no key '{key}'", suggest(key, known, list_up_to=20))
        for key in required:
            if key not in node.nodes:
                faults.add(node.line, f"{what} lacks the key '{key}'", "")
            elif _empty(node.nodes[key]):
                faults.add(node.nodes[key], f"'{key}' is empty", "")

    def has(self, key: str) -> bool:
        node = self.nodes.get(key)
        return node is not None and not (isinstance(node, Text) and node.null)

    def text(self, key: str, *, optional: bool = True, one_line: bool = False) -> str:
        """The text of ``key``, stripped; "" where it is left out."""
        if not self.has(key):
            if not optional and key in self.nodes:
                self.faults.add(self.nodes[key], f"'{key}' is empty", "")
            return ""
        node = self.nodes[key]
        if not isinstance(node, Text):
            self.faults.add(node, f"'{key}' must be text", "put it in quotes if it begins with [ or {")
            return ""
        if not optional and not node.value.strip():
            self.faults.add(node, f"'{key}' is empty", "")
        if one_line and "\n" in node.value.strip():
            self.faults.add(node, f"'{key}' must be one line", "")
        return node.value.strip()

    def choice(self, key: str, among: Sequence[str], default: str = "") -> str:
        if not self.has(key):
            return default
        value = self.text(key)
        if value and value not in among:
            self.faults.add(self.nodes[key], f"'{key}' cannot be '{value}'", suggest(value, among))
        return value

    def texts(self, key: str, *, single: bool = False) -> tuple[tuple[str, int], ...]:
        """A list of texts with their lines; with ``single``, one text alone counts as a list of one."""
        if not self.has(key):
            return ()
        node = self.nodes[key]
        if single and isinstance(node, Text):
            return ((node.value, node.line),)
        if not isinstance(node, Items):
            self.faults.add(node, f"'{key}' must be a list", f"{key}: [...]")
            return ()
        result = []
        for item in node.nodes:
            if isinstance(item, Text) and not item.null:
                result.append((item.value, item.line))
            else:
                self.faults.add(item, f"an entry of '{key}' must be text", "")
        return tuple(result)

    def items(self, key: str) -> list[Node]:
        if not self.has(key):
            return []
        node = self.nodes[key]
        if isinstance(node, Items):
            return node.nodes
        self.faults.add(node, f"'{key}' must be a list", "")
        return []

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        if not self.has(key):
            return default
        node = self.nodes[key]
        if isinstance(node, Text) and node.plain and node.value.isdecimal() and least <= int(node.value) <= most:
            return int(node.value)
        self.faults.add(node, f"'{key}' must be a whole number from {least} to {most}", "")
        return default

    def duration(self, key: str) -> float | None:
        """Seconds; None where it is left out."""
        if not self.has(key):
            return None
        return duration(self.nodes[key], self.faults, f"'{key}'")


def _empty(node: Node) -> bool:
    return (node.null or not node.value.strip()) if isinstance(node, Text) else isinstance(node, Items) and not node.nodes


def duration(node: Node, faults: Faults, what: str) -> float | None:
    value = node.value if isinstance(node, Text) else ""
    try:
        if value.replace(".", "", 1).isdecimal() and float(value) != 0:
            raise ValueError
        return units.parse_duration(value)
    except ValueError:
        faults.add(node, f"{what} must be a duration with its unit, not '{shown(node)}'", "such as 30 s, 10 min, 2 h")
        return None


def shown(node: Node) -> str:
    if isinstance(node, Text):
        return node.value
    return "[...]" if isinstance(node, Items) else "{...}"


def constant(node: Node, type_: str, faults: Faults, what: str) -> Any:
    """A constant in the units of facts, by the field type of the catalogue; None (and a fault) where it does not suit."""
    if not isinstance(node, Text):
        faults.add(node, f"{what} must be one value", "")
        return None
    if node.null:
        faults.add(node, f"{what} must be a value, not null", "for an unknown field write {exists: false}")
        return None
    value = node.value
    try:
        match type_:
            case "bytes":
                if value.isdecimal() and value != "0":
                    raise ValueError
                return units.parse_size(value)
            case "seconds" | "ms":
                return duration(node, faults, what)
            case "int":
                return int(value)
            case "float":
                return float(value)
            case "hex":
                return int(value, 16)
            case "bool":
                return {"true": True, "false": False}[value]
            case _:
                return value
    except (ValueError, KeyError):
        wanted, hint = {
            "bytes": ("a size with its unit", "such as 512 MiB, 1.5 GiB"),
            "int": ("a whole number", ""),
            "float": ("a number", ""),
            "hex": ("a hexadecimal number", "such as 0x1f"),
            "bool": ("true or false", ""),
        }[type_]
        faults.add(node, f"{what} must be {wanted}, not '{value}'", hint)
        return None
