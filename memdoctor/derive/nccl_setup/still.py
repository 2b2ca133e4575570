"""Whether a set-up that is not over stands still, or the log merely ends while it goes on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memdoctor.derive.nccl_setup.members import Member
from memdoctor.model import Ended, FileRead, Stamp

QUIET = 1800.0  # seconds without a new line in any file: as long as the longest limit that torch sets by default (store, groups before 2.2)
GAP = 600.0  # seconds from the first word of a process to the last of its file: torch's limit of NCCL's groups; set-ups take seconds to minutes
_ZONE = re.compile(r"T.*(?:Z|[+-]\d\d:?(?:\d\d)?)$")


def ended_in_it(status: Ended) -> bool:
    """True where the log says how the job ended: what was open then had not come to its end."""
    return status in ("failed", "killed")


def stands_still(waiting: Sequence[Member], files: Sequence[FileRead], status: Ended, *, last: bool) -> bool:
    """True where an end, a restart, the age of the files or a gap in their times shows that ``waiting`` wait for something that does not come.

    A log that ends in the middle of a set-up shows nothing by that: it was cut, copied meanwhile, or the job goes on.
    """
    return ended_in_it(status) or not last or (status != "cut" and _quiet(files)) or _gap(waiting, files)


def _quiet(files: Sequence[FileRead]) -> bool:
    ages = [file.age for file in files]
    return bool(ages) and all(age is not None and age >= QUIET for age in ages)


def _gap(waiting: Sequence[Member], files: Sequence[FileRead]) -> bool:
    """True where lines go on long after all of ``waiting`` began. Of a process with several communicators only the first word has a time."""
    ends = {file.path: file.last for file in files if file.last is not None}
    gaps = [_since(member, ends) for member in waiting]
    return bool(gaps) and all(gap is not None and gap >= GAP for gap in gaps)


def _since(member: Member, ends: Mapping[str, Stamp]) -> float | None:
    time, end = member.fact.time, ends.get(member.fact.origin.path or "")
    if time is None or end is None or (member.communicators or 0) > 1 or bool(_ZONE.search(time.iso)) is not bool(_ZONE.search(end.iso)):
        return None
    return end.epoch - time.epoch
