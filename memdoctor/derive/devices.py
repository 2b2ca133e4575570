"""Xid facts with what the number means and asks for, from rules/tables/xids.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from memdoctor.model import Fact
from memdoctor.resources import rules_path
from memdoctor.tables import read


@lru_cache(maxsize=1)
def xid_table() -> Mapping[int, Mapping[str, Any]]:
    """Xid number -> name, class (app, hardware, nvlink, info), fatal, asks; read when a log first holds an Xid."""
    path = rules_path("tables", "xids.yaml")
    data = read(path) if os.path.exists(path) else {}
    return {int(number): entry for number, entry in (data.get("xids") or {}).items()}


def name_xids(facts: Sequence[Fact]) -> list[Fact]:
    """Facts, with ``what``, ``class``, ``asks`` and ``fatal`` added to each Xid whose number the table knows."""
    result = []
    for fact in facts:
        entry = xid_table().get(fact.fields.get("number", -1)) if fact.kind == "xid" else None
        if entry is not None:
            added = {"what": entry.get("name"), "class": entry.get("class"), "asks": entry.get("asks"), "fatal": entry.get("fatal")}
            fact = replace(fact, fields={**{key: value for key, value in added.items() if value is not None}, **fact.fields})
        result.append(fact)
    return result
