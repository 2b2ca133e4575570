"""Flags of a training script: are they there today, and do they take the values that they are given?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.known import GONE, OF_FRAMEWORK

_SHAPES = {"int": r"[-+]?\d+", "float": r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", "flag": "True|False|true|false"}


def of_flags(words: list[str], framework: str | None) -> Iterator[str]:
    """Flags of a training script, each with its values."""
    own = OF_FRAMEWORK.get(framework or "")
    tables = [own] if own is not None else list(OF_FRAMEWORK.values())
    given: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("--"):
            flag, sign, value = word.partition("=")
            given.append((flag, [value] if sign else []))
        elif given:
            given[-1][1].append(word)
    is_list = any(flag.endswith(",") for flag, _ in given)  # flags told by their names
    for flag, values in given:
        flag = flag.rstrip(",")
        found = [entry for table in tables if (entry := table.get(flag)) is not None and not GONE & set(entry)]
        if not found:
            yield f"no flag {flag} in today's {framework or 'frameworks'}"
        elif not is_list and not any(_takes(entry, values) for entry in found):
            yield f"{flag} does not take {values or 'no value'}"


def _takes(entry: Mapping[str, Any], values: list[str]) -> bool:
    """Does a flag of this entry take these values? A word in capitals or in <> stands for one to fill in."""
    many, type_ = entry.get("many"), entry["type"]
    if type_ in ("switch", "flag", "optional") and not values:
        return True
    if type_ == "switch":
        return False
    if isinstance(many, int):
        enough = len(values) == many
    else:
        enough = bool(values) if many == "+" else many == "*" or type_ == "list" or len(values) == 1
    filled = [value for value in values if not re.fullmatch(r"[A-Z_]+", value)]
    shape = "|".join(re.escape(str(value)) for value in entry.get("values", ())) or _SHAPES.get(type_, ".*")
    return enough and all(re.fullmatch(shape, value) for value in filled)
