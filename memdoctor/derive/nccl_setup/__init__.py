"""What is wrong with the way NCCL set itself up, out of the facts ``nccl.setup`` of one attempt; the door of this package."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memdoctor.derive.nccl_setup.likeness import duplicates, interfaces, miscounted, odd_ones
from memdoctor.derive.nccl_setup.members import Member, members_of
from memdoctor.derive.nccl_setup.mixed import mixed
from memdoctor.derive.nccl_setup.paths import few_channels, gdr_off, shared_memory, sockets
from memdoctor.derive.nccl_setup.still import ended_in_it, stands_still
from memdoctor.derive.nccl_setup.stops import absent, stop_of, tell_stop
from memdoctor.model import Ended, Fact, FileRead, StepMark

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


def setup_facts(
    own: Sequence[Fact], marks: Sequence[StepMark], status: Ended, world: int | None, files: Sequence[FileRead] = (), *, last: bool = True
) -> list[Fact]:
    """Facts ``nccl.verdict`` and ``nccl.odd`` of one attempt, one for each rank at fault.

    ``own``: the attempt's facts, placed; ``marks``: its steps; ``world``: how many ranks the job has, where the log says so; ``files``: all that
    were read; ``last``: no later attempt follows.
    """
    members = members_of(own)
    if not members:
        return []
    found = [] if any(map(_ends_a_set_up, own)) else _not_over(members, marks, status, world, files, last)
    told = {_process(fact) for fact in found if fact.fields["name"] == "mixed"}
    found += [fact for fact in sockets(members) if _process(fact) not in told]  # that sockets are slow is not the matter there
    for look in (gdr_off, shared_memory, few_channels, interfaces, miscounted, duplicates, odd_ones):
        found += look(members)
    return found


def _process(fact: Fact) -> str:
    """Host and number of the process that a verdict is about."""
    return fact.event.split(":", 2)[2]


def _not_over(
    members: Sequence[Member], marks: Sequence[StepMark], status: Ended, world: int | None, files: Sequence[FileRead], last: bool
) -> list[Fact]:
    """What holds up a set-up that is not over. ``unfinished`` where nothing shows that it stands still."""
    stop, sure = stop_of(members, marks, status, world), ended_in_it(status)
    if stop is None:
        return mixed(members, None, sure=sure) if sure and not marks else []
    if not stands_still(stop.waiting, files, status, last=last):
        return tell_stop(stop, members, sure=False, name="unfinished")
    odd = [] if any(absent(stop, members)) else mixed(members, stop, sure=sure)
    return odd or tell_stop(stop, members, sure=sure)
