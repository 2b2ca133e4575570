"""Patterns are compiled late; a text that one is said to need stands in all that it matches."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import memdoctor.sources
from memdoctor.engine.gates import _needed
from memdoctor.lazy import _Lazy, lazy
from memdoctor.sources.logs.prefix_table import AMBIGUOUS, FAMILIES, TAILS


def test_used_like_a_pattern() -> None:
    pattern = lazy(r"(?P<word>a+)b", re.I)
    found = pattern.search("xAAb")
    assert found is not None
    assert found["word"] == "AA"
    assert pattern.sub("-", "aab c") == "- c"
    assert lazy(rb"a").findall(b"aa") == [b"a", b"a"]
    with pytest.raises(re.error):
        lazy("(").search("a")


def test_not_compiled_before_what_it_needs_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags=0: (made.append(text), real(text, flags))[1])  # type: ignore[func-returns-value]
    pattern = lazy(r"(?:ab|cd)+$", needs=("ab", "cd"))
    assert pattern.search("xyz") is pattern.match("badc") is None
    assert made == []
    found = pattern.search("x cdab", 2)
    assert found is not None
    assert found.span() == (2, 6)
    assert pattern.search("ba") is None
    assert made == [r"(?:ab|cd)+$"]


def gated() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Name, pattern and needs of all that needs something."""
    for family in (*FAMILIES, *TAILS, *AMBIGUOUS):
        if family.needs:
            yield family.name, family.pattern, (family.needs,)
    for info in pkgutil.walk_packages(memdoctor.sources.__path__, "memdoctor.sources."):
        for name, value in vars(importlib.import_module(info.name)).items():
            if isinstance(value, _Lazy) and value._needs:
                yield f"{info.name}.{name}", value._made[0], value._needs


@pytest.mark.parametrize(("pattern", "needs"), [pytest.param(*rest, id=name) for name, *rest in gated()])
def test_needs(pattern: Any, needs: tuple[Any, ...]) -> None:
    ahead = pattern.replace("(?=", "(?:") if isinstance(pattern, str) else pattern  # what is looked ahead for stands there, too
    parsed = parser.parse(ahead)
    assert not parsed.state.flags & re.IGNORECASE
    texts = [need if isinstance(need, str) else need.decode("latin-1") for need in needs]
    assert any(all(any(text in each for text in texts) for each in choice) for choice in _needed(parsed))
