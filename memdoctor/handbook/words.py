"""The ``when`` of a rule in plain words, one line for each fact that it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memdoctor import catalog, units
from memdoctor.engine import message
from memdoctor.engine.schema import AllOf, AnyOf, Comparison, Leaf, NoneOf
from memdoctor.engine.schema import Condition as When
from memdoctor.handbook.entries import Condition

_OPERATORS = {"ne": "is not", "lt": "is below", "le": "is at most", "gt": "is above", "ge": "is at least"}
_HEADS = {AllOf: "all of:", AnyOf: "any of:", NoneOf: "and none of:"}
_END_OF_PHRASE = re.compile(r" \((?:derived|printed|'')|; |: |\. |\.$")


def conditions(when: When) -> tuple[Condition, ...]:
    """The lines of ``when``."""
    return tuple(_lines(when, 0))


def shape(template: str) -> str:
    """A rule's message with every field shown as <field>, and all of its optional parts."""
    return "".join(piece if place % 2 == 0 else f"<{piece}>" for part in message.parse(template) for place, piece in enumerate(part.pieces))


def phrase(kind: str) -> str:
    """What a fact of the kind says, in a few words: ``a GPU allocation failed``."""
    text = _END_OF_PHRASE.split(catalog.KINDS[kind].doc, maxsplit=1)[0].replace("``", "").replace("`", "")
    first = text.partition(" ")[0]
    return text if first.isupper() and len(first) > 1 else text[:1].lower() + text[1:]


def _lines(when: When, depth: int) -> Iterator[Condition]:
    sure = f" ({when.confidence})" if when.confidence is not None else ""
    if isinstance(when, Leaf):
        yield Condition(depth, _fact(when) + sure)
        return
    if len(when.parts) == 1 and not isinstance(when, NoneOf) and when.confidence is None:
        yield from _lines(when.parts[0], depth)
        return
    yield Condition(depth, _HEADS[type(when)].removesuffix(":") + sure + ":")
    for part in when.parts:
        yield from _lines(part, depth + 1)


def _fact(leaf: Leaf) -> str:
    parts = [f"{phrase(leaf.fact)} [{leaf.fact}]"]
    parts += [_comparison(leaf.fact, test) for test in leaf.where]
    if leaf.same:
        parts.append(f"on the same {' and '.join(leaf.same)}")
    if leaf.count is not None:
        of = f" different values of {leaf.count.distinct}" if leaf.count.distinct else " times"
        within = f" within {units.format_duration(leaf.count.within)}" if leaf.count.within is not None else ""
        parts.append(f"at least {leaf.count.ge}{of}{within}")
    return "; ".join(parts)


def _comparison(kind: str, test: Comparison) -> str:
    if test.op == "exists":
        return f"{test.field} is {'known' if test.value else 'not known'}"
    if test.of_first is not None:
        other = f"the {test.of_first} of the first fact"
        return f"{test.field} is {other}" if test.op == "eq" else f"{test.field} {_OPERATORS[test.op]} {other}"
    if test.op == "has":
        texts = [f'"{one}"' for one in test.value]
        return f"{test.field} holds {_listed(texts, 'and')}"
    if test.op == "in":
        return f"{test.field} is {_listed([_shown(kind, test.field, one) for one in test.value], 'or')}"
    value = _shown(kind, test.field, test.value)
    return f"{test.field} is {value}" if test.op == "eq" else f"{test.field} {_OPERATORS[test.op]} {value}"


def _shown(kind: str, field: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return catalog.show(kind, field, value)


def _listed(words: Sequence[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
