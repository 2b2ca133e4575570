"""Whether two findings can have to do with each other: one job, host, rank, process group or device."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memdoctor.engine.cases import rank_of
from memdoctor.lazy import lazy
from memdoctor.model import Fact

_BUS = lazy(r"([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-9a-f])?$")


def linked(cause: Sequence[Fact], effect: Sequence[Fact], link: str) -> bool:
    """True where the link holds. ``host`` and ``rank`` need both sides known, or both unknown; ``group`` and ``device`` hold if unknown."""
    match link:
        case "host":
            return _share(_hosts(cause), _hosts(effect))
        case "rank":
            return _share(_ranks(cause), _ranks(effect))
        case "group":
            return _may_share(_values(cause, "pg"), _values(effect, "pg"))
        case "device":
            buses = _buses(cause), _buses(effect)
            if not _may_share(_hosts(cause), _hosts(effect)):
                return False
            return bool(buses[0] & buses[1]) if all(buses) else _may_share(_gpus(cause), _gpus(effect))
        case _:
            return True


def nearness(cause: Sequence[Fact], effect: Sequence[Fact]) -> int:
    """0 where both are about one rank, 1 about one host, else 2."""
    if _ranks(cause) & _ranks(effect):
        return 0
    return 1 if _hosts(cause) & _hosts(effect) else 2


def _share(one: set[str], other: set[str]) -> bool:
    return bool(one & other) if one and other else not one and not other


def _may_share(one: set[str], other: set[str]) -> bool:
    return bool(one & other) if one and other else True


def _hosts(facts: Sequence[Fact]) -> set[str]:
    return {fact.host for fact in facts if fact.host}


def _ranks(facts: Sequence[Fact]) -> set[str]:
    return {str(rank) for fact in facts if (rank := rank_of(fact)) is not None}


def _values(facts: Sequence[Fact], name: str) -> set[str]:
    return {str(value).lower() for fact in facts if (value := fact.fields.get(name)) not in (None, "")}


def _buses(facts: Sequence[Fact]) -> set[str]:
    """Bus ids as ``3b:00``: the driver writes 0000:3b:00, nvidia-smi 00000000:3B:00.0, NCCL 3b000."""
    found = set()
    for value in _values(facts, "bus_id"):
        if (match := _BUS.search(value)) is not None:
            found.add(f"{match[1]}:{match[2]}")
        elif re.fullmatch(r"[0-9a-f]{4,10}", value):
            found.add(f"{value[:-3].zfill(2)[-2:]}:{value[-3:-1]}")
        else:
            found.add(value)
    return found


def _gpus(facts: Sequence[Fact]) -> set[str]:
    """GPUs by host and index; an index alone names no device where there are several hosts."""
    return {f"{fact.host}/{gpu}" for fact in facts if fact.host and (gpu := fact.fields.get("gpu")) is not None}
