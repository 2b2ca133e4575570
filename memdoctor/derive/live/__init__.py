"""What a running job waits for, out of its stacks and of NCCL's RAS; the door of this package."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.derive.live.ras import ras_facts
from memdoctor.derive.live.stacks import stack_facts
from memdoctor.derive.live.threads import main_threads
from memdoctor.model import Fact

__all__ = ["KINDS", "live_facts"]

KINDS = ("process.stack", "thread.stack", "ras.section")


def live_facts(own: Sequence[Fact]) -> list[Fact]:
    """Facts ``live.verdict`` of one attempt."""
    return [*stack_facts([*own, *main_threads(own)]), *ras_facts(own)]
