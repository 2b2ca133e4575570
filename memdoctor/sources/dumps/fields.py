"""Single values of a dump, whatever stands there: a dump is untrusted, and its layout changed from version to version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

LONGEST = 200  # characters kept of a text
_MOST_RANKS = 1 << 20
_MOST_SHAPES = 4_096
_MOST_DIMENSIONS = 32
_NUMBER = re.compile(r"\d{1,7}")
_TORCH = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|lib/python[\d.]+)/torch/|(?:^|/)torch/(?:distributed|nn|autograd|utils|_dynamo|_C)/|c10d_logger\.py$"
)


def text(value: Any) -> str:
    """``value`` where it is text, without what cannot be printed; else empty."""
    if not isinstance(value, str):
        return ""
    value = value[:LONGEST]
    return value if value.isprintable() else "".join(sign if sign.isprintable() else "?" for sign in value)


def number(value: Any, default: int = 0) -> int:
    """``value`` where it is a whole number of 64 bits; else ``default``."""
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else default


def seconds(entry: Mapping[str, Any], name: str) -> float | None:
    """The time ``name`` in epoch seconds; None where it is not known (None, 0 in JSON, missing)."""
    value = entry.get(name + "_ns")
    if value is None:
        value = number(entry.get(name + "_us")) * 1000  # before torch 2.3
    return number(value) * 1e-9 if number(value) > 0 else None


def rank_list(value: Any) -> tuple[int, ...] | None:
    """``"[0, 1, 2]"`` or a list as ascending global ranks; None where there are none."""
    if isinstance(value, str):
        found = {int(digits) for digits in _NUMBER.findall(value[: 8 * _MOST_RANKS])}
    elif isinstance(value, (list, tuple)):
        found = {rank for rank in value[:_MOST_RANKS] if type(rank) is int and 0 <= rank < 10_000_000}
    else:
        return None
    return tuple(sorted(found)) or None


def shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    """``[[4096, 1024], [8]]`` as tuples; what is no shape is left out."""
    if not isinstance(value, (list, tuple)) or not value:
        return ()
    if type(value[0]) is int:
        value = [value]
    return tuple([tuple(map(number, shape[:_MOST_DIMENSIONS])) for shape in value[:_MOST_SHAPES] if isinstance(shape, (list, tuple))])


def dtypes(value: Any) -> tuple[str, ...]:
    return tuple(map(text, value[:_MOST_SHAPES])) if isinstance(value, (list, tuple)) else ()


def user_frame(frames: Any) -> str:
    """``file:line`` of the innermost frame that is not torch's own; empty where the dump has no frames."""
    if not isinstance(frames, (list, tuple)):
        return ""
    for frame in frames[:200]:
        name = frame.get("filename") if isinstance(frame, Mapping) else None
        if isinstance(name, str) and name and not _of_torch(name):
            return f"{text(name)}:{number(frame.get('line'))}"
    return ""


@lru_cache(maxsize=4096)
def _of_torch(file: str) -> bool:
    return _TORCH.search(file) is not None
