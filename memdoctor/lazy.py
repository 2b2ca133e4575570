"""Patterns that are compiled when they are first used: a module may hold a dozen of which most logs need none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast


def lazy(text: AnyStr, flags: int = 0, compile: Callable[..., Any] = re.compile) -> re.Pattern[AnyStr]:
    """As ``re.compile(text, flags)``; of a wrong pattern the first use tells."""
    return cast("re.Pattern[AnyStr]", _Lazy(text, flags, compile))


class _Lazy:
    def __init__(self, text: Any, flags: int, compile: Callable[..., Any]) -> None:
        self._make = compile, text, flags

    def __getattr__(self, name: str) -> Any:
        compile, text, flags = self._make
        value = getattr(compile(text, flags), name)  # `re` remembers what it compiled
        setattr(self, name, value)
        return value
