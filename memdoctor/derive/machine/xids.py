"""What the Xids in the kernel log mean, from rules/tables/xids.yaml, and which GPU they are about."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.derive.machine.facts import completed, of_kind, table
from memdoctor.model import Fact


def name_xids(facts: Sequence[Fact]) -> list[Fact]:
    if not of_kind(facts, "gpu.xid"):
        return list(facts)
    names = table("xids").get("xids") or {}
    buses = {_bus(fact.get("bus_id")): fact.get("gpu") for fact in of_kind(facts, "gpu.device")}
    result = []
    for fact in facts:
        if fact.kind == "gpu.xid":
            entry = names.get(fact.get("number")) or {}
            fact = completed(
                fact,
                what=entry.get("name"),
                class_=None,
                asks=entry.get("asks"),
                fatal=entry.get("fatal"),
                gpu=buses.get(_bus(fact.get("bus_id"))),
            )
            fact = completed(fact, **({"class": entry["class"]} if "class" in entry else {}))
        result.append(fact)
    return result


def _bus(text: object) -> str:
    """``00000000:3B:00.0`` and ``0000:3b:00`` are one device."""
    return ":".join(part for part in str(text or "").lower().partition(".")[0].split(":"))[-5:]
