"""Patterns that are compiled when they are first used: a module may hold a dozen of which most logs need none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast


def lazy(text: AnyStr, flags: int = 0, *, needs: tuple[AnyStr, ...] = ()) -> re.Pattern[AnyStr]:
    """As ``re.compile(text, flags)``; of a wrong pattern the first use tells.

    ``needs`` are texts one of which stands wherever the pattern matches: as long as ``match``, ``fullmatch`` and ``search`` meet none of
    them, it is not compiled.
    """
    return cast("re.Pattern[AnyStr]", _Lazy(text, flags, needs))


class _Lazy:
    def __init__(self, text: Any, flags: int, needs: tuple[Any, ...]) -> None:
        self._made = text, flags
        self._needs = needs

    def __getattr__(self, name: str) -> Any:
        value = self._gated(name) if self._needs and name in ("match", "fullmatch", "search") else self._real(name)
        setattr(self, name, value)
        return value

    def _real(self, name: str) -> Any:
        return getattr(re.compile(*self._made), name)  # `re` remembers what it compiled

    def _gated(self, name: str) -> Callable[..., Any]:
        needs = self._needs

        def find(where: Any, *bounds: int) -> Any:
            for need in needs:
                if need in where:
                    real = self._real(name)
                    setattr(self, name, real)
                    return real(where, *bounds)
            return None

        return find
