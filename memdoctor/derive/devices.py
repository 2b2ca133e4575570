"""Xid facts with what the number means and asks for, from rules/tables/xids.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memdoctor.model import Fact
from memdoctor.resources import rules_path
from memdoctor.tables import read

_ADDED = {"name": "what", "class": "class", "asks": "asks", "fatal": "fatal", "remedy": "remedy"}  # key of the table -> field


def name_xids(facts: Sequence[Fact]) -> list[Fact]:
    """Facts, with ``what``, ``class``, ``asks``, ``fatal`` and ``remedy`` added to each Xid whose number the table knows.

    What the driver itself asks for (``recovery``, of Xid 154) goes before the table: for that line, and for the faults of the same GPU before it.
    """
    if not any(fact.kind == "xid" for fact in facts):
        return list(facts)
    table = _table()
    xids = {int(number): entry for number, entry in (table.get("xids") or {}).items()}
    result: list[Fact] = []
    faults: dict[tuple[object, ...], list[int]] = {}  # those of a GPU so far, as places in the result
    for fact in facts:
        if fact.kind == "xid":
            entry = xids.get(fact.fields.get("number", -1)) or {}
            if entry.get("fatal") and fact.fields.get("fatal") is False:
                entry = {**entry, **(table.get("survived") or {})}
            fact = _named(fact, entry)
            gpu = (fact.host, fact.attempt, fact.origin.path, str(fact.fields.get("bus_id")).lower())
            recovery = fact.fields.get("recovery")
            if recovery is not None:
                asked = (table.get("recovery") or {}).get(recovery) or {}
                fact = replace(fact, fields={**fact.fields, **asked})
                for place in faults.pop(gpu, ()) if asked.get("remedy", "watch") != "watch" else ():
                    own = result[place].fields
                    added = asked if own.get("remedy") != asked["remedy"] else {}
                    result[place] = replace(result[place], fields={**own, **added, "recovery": recovery})
            elif fact.fields.get("class") in ("hardware", "nvlink") and fact.fields.get("fatal"):
                faults.setdefault(gpu, []).append(len(result))
        result.append(fact)
    return result


def _named(fact: Fact, entry: Mapping[str, Any]) -> Fact:
    """The line's own words go before those of the table."""
    added = {field: entry[key] for key, field in _ADDED.items() if entry.get(key) is not None}
    return replace(fact, fields={**added, **fact.fields}) if added else fact


def _table() -> Mapping[str, Any]:
    """rules/tables/xids.yaml, read when a log first holds an Xid."""
    path = rules_path("tables", "xids.yaml")
    return read(path) if os.path.exists(path) else {}
