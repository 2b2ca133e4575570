"""Bytes and seconds: the one place where text becomes a number with a unit, and back.

Inside memdoctor sizes are bytes (int) and durations are seconds (float). PyTorch, Megatron-LM and DeepSpeed print binary
units whatever letters they use ("MB" in a Megatron memory line is MiB), so every prefix is read as a power of 1024.
"""

from __future__ import annotations

from memdoctor.lazy import lazy

_SIZE = lazy(r"\s*([\d,]*\.?\d+(?:[eE][+-]?\d+)?)\s*([kKmMgGtTpP]?)i?(?:[bB](?:ytes?)?)?\s*$")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_DURATION = lazy(r"\s*([\d,]*\.?\d+)\s*(ns|us|ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?\s*$")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "mi": 1e-3, "s": 1.0, "se": 1.0, "m": 60.0, "h": 3600.0, "ho": 3600.0}


def parse_size(text: str) -> int:
    """``"15.66 GiB"`` -> bytes. A bare number is bytes. Raises ValueError on anything else."""
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"not a size: {text!r}")
    return round(float(match[1].replace(",", "")) * 1024.0 ** _POWER[match[2].lower()])


def format_size(size: float) -> str:
    """Bytes -> ``"15.66 GiB"``, ``"512 MiB"``, ``"64 bytes"``."""
    sign, size = ("-" if size < 0 else ""), abs(size)
    for unit, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if size >= 1024**power:
            return f"{sign}{_trim(size / 1024**power)} {unit}"
    return f"{sign}{size:.0f} bytes"


def parse_duration(text: str) -> float:
    """``"600000 ms"``, ``"10 min"``, ``"1.5"`` -> seconds. A bare number is seconds. Raises ValueError on anything else."""
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"not a duration: {text!r}")
    unit = match[2] or "s"
    if unit.startswith("min"):
        factor = 60.0
    elif unit.startswith("milli"):
        factor = 1e-3
    else:
        factor = _SECONDS.get(unit, _SECONDS.get(unit[:2], 1.0))
    return float(match[1].replace(",", "")) * factor


def format_duration(seconds: float) -> str:
    """Seconds -> ``"350 ms"``, ``"12 s"``, ``"10 min"``, ``"2 h 05 min"``."""
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if seconds < 1:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{sign}{_trim(seconds)} s"
    if seconds < 7200:
        return f"{sign}{_trim(seconds / 60)} min"
    minutes = round(seconds / 60)
    return f"{sign}{minutes // 60} h {minutes % 60:02d} min"


def format_count(number: float) -> str:
    """``1234567`` -> ``"1,234,567"``; fractions keep up to four significant digits."""
    if float(number).is_integer():
        return f"{int(number):,}"
    return f"{number:.4g}"


def format_ranks(ranks: list[int] | tuple[int, ...]) -> str:
    """``[0, 1, 2, 5]`` -> ``"0-2, 5"``."""
    parts: list[str] = []
    run: list[int] = []
    for rank in [*sorted(set(ranks)), None]:
        if rank is not None and run and rank == run[-1] + 1:
            run.append(rank)
            continue
        if run:
            parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" if len(run) > 2 else f"{run[0]}, {run[1]}")
        run = [] if rank is None else [rank]
    return ", ".join(parts)


def _trim(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
