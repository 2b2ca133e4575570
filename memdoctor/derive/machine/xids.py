"""What the Xids in the kernel log mean, from rules/tables/xids.yaml, and which GPU they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.derive.machine.facts import completed, of_kind, table
from memdoctor.lazy import lazy
from memdoctor.model import Fact

_RECOVERY = lazy(r"GPU recovery action changed from 0x\w+ \([^)]{1,40}\) to 0x\w+ \(([^)]{1,60})\)")


def name_xids(facts: Sequence[Fact]) -> list[Fact]:
    if not of_kind(facts, "gpu.xid"):
        return list(facts)
    names = table("xids").get("xids") or {}
    buses = {_bus(fact.get("bus_id")): fact.get("gpu") for fact in of_kind(facts, "gpu.device")}
    result = []
    for fact in facts:
        if fact.kind == "gpu.xid":
            entry = {**(names.get(fact.get("number")) or {}), **_asked(fact)}
            fact = completed(
                fact,
                what=entry.get("name"),
                class_=None,
                asks=entry.get("asks"),
                fatal=entry.get("fatal"),
                remedy=entry.get("remedy"),
                gpu=buses.get(_bus(fact.get("bus_id"))),
            )
            fact = completed(fact, **({"class": entry["class"]} if "class" in entry else {}))
        result.append(fact)
    return result


def _asked(fact: Fact) -> Mapping[str, Any]:
    """What the driver itself asks for in the line of Xid 154, as the table tells it."""
    words = _RECOVERY.search(fact.origin.excerpt or "")
    asked = (table("xids").get("recovery") or {}).get(words[1]) if words else None
    return {} if asked is None else {**asked, "fatal": asked["remedy"] != "watch"}


def _bus(text: object) -> str:
    """``00000000:3B:00.0`` and ``0000:3b:00`` are one device."""
    return ":".join(part for part in str(text or "").lower().partition(".")[0].split(":"))[-5:]
