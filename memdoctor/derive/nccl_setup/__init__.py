"""What is wrong with the way NCCL set itself up, out of the facts ``nccl.setup`` of one attempt; the door of this package."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memdoctor.derive.nccl_setup.likeness import duplicates, interfaces, miscounted, odd_ones
from memdoctor.derive.nccl_setup.members import members_of
from memdoctor.derive.nccl_setup.paths import few_channels, gdr_off, shared_memory, sockets
from memdoctor.derive.nccl_setup.stops import stopped
from memdoctor.model import Ended, Fact, StepMark

__all__ = ["setup_facts"]
# What ends a process, or tells by itself why it cannot go on: that the others wait then is no news.
_ENDS = (
    "nccl.warn", "nccl.error", "cuda.oom", "cuda.error", "cublas.error", "gpu.error", "xid", "sxid", "host.oom", "shm.error", "pinned.error", "native.crash",
    "import.error", "build.error", "abi.error", "env.error", "config.error", "file.error", "checkpoint.error", "port.in_use", "peer.gone",
)  # fmt: skip
_WAITED = re.compile(r"time[d-]? ?out|Dist(?:Backend|Store|Network)Error", re.IGNORECASE)


def _ends_a_set_up(fact: Fact) -> bool:
    if fact.kind == "exception":
        return not _WAITED.search(f"{fact.fields.get('type')}: {fact.fields.get('message')}")
    return fact.kind in _ENDS


def setup_facts(own: Sequence[Fact], marks: Sequence[StepMark], status: Ended, world: int | None) -> list[Fact]:
    """Facts ``nccl.verdict`` and ``nccl.odd`` of one attempt, one for each rank at fault.

    ``own``: the attempt's facts, placed; ``marks``: its steps; ``world``: how many ranks the job has, where the log says so.
    """
    members = members_of(own)
    if not members:
        return []
    found = [] if any(map(_ends_a_set_up, own)) else stopped(members, marks, status, world)
    for look in (sockets, gdr_off, shared_memory, few_channels, interfaces, miscounted, duplicates, odd_ones):
        found += look(members)
    return found
