"""Plain texts that a pattern cannot match without: by them lines for a signal are found where its ``has`` is short, and patterns passed over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from re import IGNORECASE
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ENOUGH = 16  # characters of a text of ``has`` that is rare enough
MOST = 24  # texts one of which is to be looked for

_Texts = frozenset[str]  # a line that matches holds one of them
_START: _Texts = frozenset([""])
_ZERO_WIDTH = (ops.AT, ops.ASSERT, ops.ASSERT_NOT)


def gates(has: Sequence[str], match: str) -> tuple[str, ...]:
    """Texts one of which stands in every line that ``match`` matches; () where the longest of ``has`` is as good."""
    longest = max(map(len, has))
    if longest >= ENOUGH:
        return ()
    texts = needed(match)
    return texts if texts and _worth(texts) > longest else ()


def needed(pattern: str) -> tuple[str, ...]:
    """Texts one of which stands in every line that ``pattern`` matches; () where none are known."""
    try:
        parsed = parser.parse(pattern)
    except (ValueError, RecursionError, OverflowError, parser.error):  # a pattern that only the package regex reads
        return ()
    if parsed.state.flags & IGNORECASE:
        return ()
    return tuple(sorted(_best(_needed(parsed)) or ()))


def _worth(texts: Collection[str]) -> int:
    return min(map(len, texts))


def _best(candidates: Iterable[_Texts]) -> _Texts | None:
    return max((texts for texts in candidates if len(texts) <= MOST), key=lambda texts: (_worth(texts), -len(texts)), default=None)


def _needed(items: Iterable[tuple[Any, Any]]) -> list[_Texts]:
    """Sets of texts, one of each set in every match of the sequence ``items``."""
    found: list[_Texts] = []
    run = _START  # what stands at the end of the part read so far
    todo = list(items)[::-1]
    while todo:
        op, value = todo.pop()
        if op in _ZERO_WIDTH:
            continue
        if op is ops.SUBPATTERN and not value[1]:  # value: group, flags added, flags removed, items
            todo.extend(list(value[3])[::-1])
            continue
        choices, whole = _choices(op, value)
        grown = frozenset(before + after for before in run for after in choices)
        if len(grown) > MOST:
            grown, whole = run, False
        if not whole:
            found.append(grown)
            found += _inside(op, value)
            grown = _START
        run = grown
    found.append(run)
    return [texts for texts in found if "" not in texts]


def _choices(op: Any, value: Any) -> tuple[_Texts, bool]:
    """Texts with one of which the item begins, and whether it is nothing more than that."""
    if op is ops.LITERAL:
        return frozenset([chr(value)]), True
    if op is ops.IN and all(kind is ops.LITERAL for kind, _ in value):
        return frozenset(chr(code) for _, code in value), True
    if op is ops.BRANCH:
        begun = [_beginning(branch) for branch in value[1]]
        return frozenset(text for texts, _ in begun for text in texts), all(whole for _, whole in begun)
    return _START, False


def _beginning(items: Iterable[tuple[Any, Any]]) -> tuple[_Texts, bool]:
    run = _START
    for op, value in items:
        if op in _ZERO_WIDTH:
            continue
        choices, whole = _beginning(value[3]) if op is ops.SUBPATTERN and not value[1] else _choices(op, value)
        grown = frozenset(before + after for before in run for after in choices)
        if len(grown) > MOST:
            return run, False
        run = grown
        if not whole:
            return run, False
    return run, True


def _inside(op: Any, value: Any) -> list[_Texts]:
    """What an item holds besides its beginning."""
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT) and value[0] > 0:
        return _needed(value[2])
    if op is ops.BRANCH:
        best = [_best(_needed(branch)) for branch in value[1]]
        if None not in best:
            return [frozenset(text for texts in best if texts is not None for text in texts)]
    return []
