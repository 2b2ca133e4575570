"""A meeting: one collective of one group, or one message between two ranks, to which not everybody has come or which does not end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from memdoctor.model import Call
from memdoctor.records import entity, record


@record
class Fault:
    """Ranks that are in one meeting and do not do the same. ``name`` is that of the verdict."""

    name: str
    ranks: tuple[int, ...]


@entity
class Meeting:
    """``calls`` are what those who came handed over (of a batch, the part that belongs here); ``waiting`` those of them who were not through.

    ``absent`` have a dump and had not come, ``unseen`` have none. ``partial``: some were through already. ``pair``: sender and receiver.
    """

    group: str
    seq: int
    members: tuple[int, ...]
    calls: Mapping[int, Call]
    waiting: tuple[int, ...]
    absent: tuple[int, ...] = ()
    unseen: tuple[int, ...] = ()
    pair: tuple[int, int] | None = None
    partial: bool = False
    fault: Fault | None = None
    outer: Mapping[int, int] = field(default_factory=dict)  # rank -> index of the call that it waits in, which may be a batch

    @property
    def call(self) -> Call:
        """What most of the waiting ranks handed over."""
        calls = [self.calls[rank] for rank in self.waiting if rank in self.calls] or list(self.calls.values())
        most = Counter(call.op for call in calls).most_common(1)[0][0]
        return next(call for call in calls if call.op == most)

    @property
    def since(self) -> float | None:
        """When the first of them began to wait, epoch seconds."""
        return min((call.created for call in self.calls.values() if call.created is not None), default=None)

    @property
    def limit(self) -> float | None:
        return max((call.limit for call in self.calls.values() if call.limit is not None), default=None)
