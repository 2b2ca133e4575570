"""From what probes read of one machine or of many to what follows from it; pure. The door of this package."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from memdoctor.derive.machine.facts import by_host
from memdoctor.derive.machine.gpus import complete_gpus
from memdoctor.derive.machine.nodes import differences
from memdoctor.derive.machine.settings import complete_cpu, verdicts
from memdoctor.derive.machine.stack import compare_stack
from memdoctor.derive.machine.summary import summaries
from memdoctor.derive.machine.xids import name_xids
from memdoctor.model import Fact

__all__ = ["DERIVED", "derive_machine", "summaries"]

# Derived kind -> the kinds that it is derived from.
DERIVED = {
    "env.variable": ("env.setting",),
    "gpu.state": ("gpu.device",),
    "stack.driver": ("stack.torch", "gpu.driver"),
    "stack.arch": ("stack.torch", "gpu.device"),
    "stack.nvcc": ("stack.torch", "stack.tool"),
    "stack.clash": ("stack.library",),
}


def derive_machine(facts: Sequence[Fact], *, expect_gpus: int | None = None, looked: Collection[str] = ()) -> tuple[Fact, ...]:
    """``facts`` of one or several hosts, completed from the tables, and what is derived from them; ``seq`` is numbered anew.

    ``looked`` are hosts whose variables were looked at, though they may have none.
    """
    result: list[Fact] = []
    for own in by_host(facts).values():
        own = name_xids(complete_cpu(complete_gpus(own, expect_gpus)))
        result += [*own, *compare_stack(own), *verdicts(own)]
    result += differences(result, looked)
    return tuple(_numbered(result))


def _numbered(facts: Sequence[Fact]) -> list[Fact]:
    return [replace(fact, seq=number) for number, fact in enumerate(facts)]
