"""What is said in the end about one rank, or about a meeting that nobody is to blame for."""

from __future__ import annotations

from memdoctor.derive.collectives.meeting import Meeting
from memdoctor.records import record

NAMES = (
    "missing", "late", "not_seen", "extra", "mismatch_type", "mismatch_dtype", "mismatch_size", "order", "cycle", "p2p_mismatch",
    "not_started", "stuck_all", "undecided", "ok",
)  # fmt: skip


@record
class Verdict:
    """``name`` is one of NAMES; ``rank`` is None for the last three. ``waiting`` are all ranks that wait for it in the end.

    ``others`` are the ranks at fault beside it; ``late`` the seconds by which it came too late.
    """

    name: str
    rank: int | None
    meeting: Meeting | None
    waiting: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    late: float | None = None
