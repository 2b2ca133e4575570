"""Single values of a dump, whatever stands there: a dump is untrusted, and its layout changed from version to version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LONGEST = 200  # characters kept of a text
_MOST_RANKS = 1 << 20
_MOST_SHAPES = 4_096
_MOST_DIMENSIONS = 32
_NUMBER = re.compile(r"\d{1,7}")
_TORCH = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|lib/python[\d.]+)/torch/|(?:^|/)torch/(?:distributed|nn|autograd|utils|_dynamo|_C)/|c10d_logger\.py$"
)
_UNITS = (("_ns", 1e-9), ("_us", 1e-6))


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
    for unit, factor in _UNITS:
        value = number(entry.get(name + unit))
        if value > 0:
            return value * factor
    return None


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
    if not isinstance(value, (list, tuple)):
        return ()
    if value and all(type(size) is int for size in value):
        value = [value]
    return tuple(
        tuple(number(size) for size in shape[:_MOST_DIMENSIONS]) for shape in value[:_MOST_SHAPES] if isinstance(shape, (list, tuple))
    )


def dtypes(value: Any) -> tuple[str, ...]:
    return tuple(text(name) for name in value[:_MOST_SHAPES]) if isinstance(value, (list, tuple)) else ()


def user_frame(frames: Any) -> str:
    """``file:line`` of the innermost frame that is not torch's own; empty where the dump has no frames."""
    if not isinstance(frames, (list, tuple)):
        return ""
    for frame in frames[:200]:
        if not isinstance(frame, Mapping):
            continue
        name = frame.get("filename")
        if isinstance(name, str) and name and _TORCH.search(name) is None:
            return f"{text(name)}:{number(frame.get('line'))}"
    return ""
