"""The ``when`` of a rule file → a tree of conditions, every field and value checked against the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from memdoctor import catalog
from memdoctor.engine.fields import Faults, Reader, constant, shown
from memdoctor.engine.schema import JOINS, OPERATORS, AllOf, AnyOf, Comparison, Condition, Count, Leaf, NoneOf
from memdoctor.engine.yaml_strict import Items, Keys, Node, Text
from memdoctor.errors import suggest
from memdoctor.model import CONFIDENCES, Confidence

Names = Callable[[str, str], str | None]  # kind, name -> a problem's hint, or None where the name may exist
_COMBINED: Mapping[str, type[AllOf] | type[AnyOf] | type[NoneOf]] = {"all": AllOf, "any": AnyOf, "none": NoneOf}
_ORDERED = ("int", "float", "bytes", "seconds", "ms", "hex", "version")
_SYNONYMS = {
    word: f"write {op}"
    for op, words in {
        "ge": ">= gte",
        "le": "<= lte",
        "gt": ">",
        "lt": "<",
        "eq": "= == is equals",
        "ne": "!= not neq",
        "has": "contains matches",
    }.items()
    for word in words.split()
}
_ORDERS = ("lt", "le", "gt", "ge")


def read_condition(node: Node, faults: Faults, names: Names, *, branch: bool = False) -> Condition | None:
    """One condition, or None where it cannot be understood. ``branch``: it stands under ``any`` and may carry a confidence."""
    if not isinstance(node, Keys):
        faults.add(node, "a condition must be one of fact, all, any, none", "")
        return None
    heads = [key for key in node.nodes if key in ("fact", *_COMBINED)]
    if len(heads) != 1:
        faults.add(node, "a condition must have exactly one of fact, all, any, none", f"it has: {', '.join(node.nodes) or 'nothing'}")
        return None
    head = heads[0]
    confidence = _confidence(node, faults, branch)
    if head == "fact":
        leaf = _leaf(node, faults, names)
        return None if leaf is None else replace(leaf, confidence=confidence)
    reader = Reader(node, faults, f"'{head}'", (head, "confidence"))
    parts = [read_condition(part, faults, names, branch=head == "any") for part in reader.items(head)]
    if not parts and isinstance(reader.nodes.get(head), Items):
        faults.add(node, f"'{head}' has no condition", "")
    return _COMBINED[head](tuple(part for part in parts if part is not None), confidence)


def _confidence(node: Keys, faults: Faults, branch: bool) -> Confidence | None:
    given = node.nodes.get("confidence")
    if given is None:
        return None
    if not branch:
        faults.add(given, "only a branch of 'any' may carry a confidence", "elsewhere the rule's own holds")
        return None
    if not isinstance(given, Text) or given.value not in CONFIDENCES:
        faults.add(given, f"'confidence' cannot be '{shown(given)}'", suggest(shown(given), CONFIDENCES))
        return None
    return given.value


def _leaf(node: Keys, faults: Faults, names: Names) -> Leaf | None:
    reader = Reader(node, faults, "a condition", ("fact", "where", "same", "count", "confidence"))
    kind = reader.text("fact")
    if kind not in catalog.KINDS:
        faults.add(reader.nodes["fact"], f"no kind of fact is called '{kind}'", suggest(kind, catalog.KINDS))
        return None
    tests: list[Comparison] = []
    where = reader.nodes.get("where")
    if isinstance(where, Keys):
        for field, value in where.nodes.items():
            tests += _comparisons(kind, field, value, where.lines[field], faults, names)
    elif where is not None:
        faults.add(where, "'where' must be a mapping of fields", "where: {name: torch}")
    same = reader.texts("same")
    for text, line in same:
        if text not in JOINS:
            faults.add(line, f"facts cannot be joined by '{text}'", suggest(text, JOINS))
    return Leaf(kind, tuple(tests), tuple(text for text, _ in same), _count(reader, kind, faults))


def _count(reader: Reader, kind: str, faults: Faults) -> Count | None:
    if not reader.has("count"):
        return None
    counted = Reader(reader.nodes["count"], faults, "'count'", ("ge", "distinct", "within"), required=("ge",))
    distinct = counted.text("distinct") or None
    if distinct is not None and field_type(kind, distinct) is None:
        faults.add(counted.nodes["distinct"], f"{kind} has no field '{distinct}'", _fields_hint(kind, distinct))
    return Count(counted.whole("ge", 1, 1, 1_000_000), distinct, counted.duration("within"))


def field_type(kind: str, field: str) -> str | None:
    """The field's type; an entry of a map (``values.fp16``) is text that may hold a number: ``any``."""
    outer, dot, _ = field.partition(".")
    if dot and catalog.KINDS[kind].type_of(outer) == "map":
        return "any"
    return catalog.KINDS[kind].type_of(field)


def _fields_hint(kind: str, field: str) -> str:
    known = [*catalog.KINDS[kind].fields, *catalog.KINDS[kind].computed]
    near = suggest(field, [*known, *catalog.COMMON, *JOINS], list_up_to=0)
    return near or (f"its fields: {', '.join(known)}" if known else "")


def _comparisons(kind: str, field: str, node: Node, line: int, faults: Faults, names: Names) -> list[Comparison]:
    type_ = field_type(kind, field)
    if type_ is None:
        faults.add(line, f"{kind} has no field '{field}'", _fields_hint(kind, field))
        return []
    if isinstance(node, Items):
        faults.add(node, f"'{field}' is compared with a list", f"write {field}: {{in: [...]}}")
        return []
    if isinstance(node, Text):
        return _compare(kind, field, type_, "eq", node, faults, names)
    if not node.nodes:
        faults.add(node, f"'{field}' is compared with nothing", "")
    result = []
    for op, value in node.nodes.items():
        if op not in OPERATORS:
            faults.add(node.lines[op], f"no comparison is called '{op}'", _SYNONYMS.get(op) or suggest(op, OPERATORS))
        else:
            result += _compare(kind, field, type_, op, value, faults, names)
    return result


def _compare(kind: str, field: str, type_: str, op: str, node: Node, faults: Faults, names: Names) -> list[Comparison]:
    what = f"'{field}'"
    if op == "exists":
        return [Comparison(field, op, constant(node, "bool", faults, f"'exists' of {what}"), type=type_)]
    if isinstance(node, Text) and node.value.startswith("$"):
        return _reference(field, op, type_, node, faults)
    if op in _ORDERS and type_ not in (*_ORDERED, "any"):
        faults.add(node, f"{what} is {_called(type_)} and has no order", "use eq, ne, in or has")
        return []
    if op == "has":
        if type_ not in ("str", "list", "version", "map", "any"):
            faults.add(node, f"{what} is {_called(type_)}: 'has' looks into text and lists", "use eq, or lt, le, gt, ge")
            return []
        return [Comparison(field, op, _several(node, "str", faults, what, single=True), type=type_)]
    if type_ in ("list", "map"):
        faults.add(node, f"{what} is {_called(type_)}: ask what it holds", f"write {field}: {{has: ...}}")
        return []
    value = _several(node, type_, faults, what, single=False) if op == "in" else constant(node, type_, faults, what)
    if field == "name":
        for name in value if op == "in" else (value,):
            hint = names(kind, name) if isinstance(name, str) else None
            if hint is not None:
                faults.add(node, f"no signal makes a fact {kind} with the name '{name}'", hint)
    if field == "site" or field == "phase":
        known = catalog.SITES if field == "site" else catalog.PHASES
        for word in value if op == "in" else (value,):
            if isinstance(word, str) and word not in known:
                faults.add(node, f"no {field} is called '{word}'", suggest(word, known, list_up_to=20))
    return [Comparison(field, op, value, type=type_)]


def _reference(field: str, op: str, type_: str, node: Text, faults: Faults) -> list[Comparison]:
    alias, dot, other = node.value[1:].partition(".")
    if alias != "first" or not dot or not other:
        faults.add(node, f"'{node.value}' refers to nothing", "write $first.<field>: a field of the first fact")
        return []
    if op in ("in", "has"):
        faults.add(node, f"'{op}' takes no $first", "use eq, ne, lt, le, gt or ge")
        return []
    return [Comparison(field, op, of_first=other, type=type_)]


def _several(node: Node, type_: str, faults: Faults, what: str, *, single: bool) -> tuple[Any, ...]:
    if isinstance(node, Items) and node.nodes:
        return tuple(constant(item, type_, faults, f"an entry of {what}") for item in node.nodes)
    if single and isinstance(node, Text):
        return (constant(node, type_, faults, what),)
    faults.add(node, f"{what} must be compared with a list that is not empty", "such as {in: [a, b]}")
    return ()


def _called(type_: str) -> str:
    return {"str": "text", "bool": "true or false", "list": "a list", "map": "a map"}.get(type_, f"a number ({type_})")
