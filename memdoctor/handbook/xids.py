"""The table of Xids as the guide prints it: numbers that mean and ask for the same stand in one row."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from memdoctor.handbook.guide_entries import XidRow
from memdoctor.resources import rules_path
from memdoctor.tables import read

_UNIT = re.compile(r" in unit \w+$")


def read_xids() -> tuple[XidRow, ...]:
    """The rows of rules/tables/xids.yaml, by their first number. Raises RuleError where it cannot be read."""
    path = rules_path("tables", "xids.yaml")
    entries = (read(path).get("xids") or {}) if os.path.exists(path) else {}
    rows: dict[tuple[str, str], list[int]] = {}
    for number, entry in sorted((int(number), entry) for number, entry in entries.items()):
        rows.setdefault((_UNIT.sub("", entry["name"]), entry["asks"]), []).append(number)
    return tuple(XidRow(", ".join(_spans(numbers)), what, asks) for (what, asks), numbers in rows.items())


def _spans(numbers: Iterable[int]) -> Iterator[str]:
    """``1, 2, 3, 7`` as ``1-3``, ``7``."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    for span in spans:
        yield from (f"{span[0]}-{span[-1]}",) if len(span) > 2 else map(str, span)
