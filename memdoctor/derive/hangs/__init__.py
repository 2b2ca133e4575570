"""What time-outs tell together: which rank the others waited for, and whether a peer had gone long before. The door is ``hang_facts``."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.derive.hangs.axes import axes_of
from memdoctor.derive.hangs.clues import Clues, ended_nameless, own_ends
from memdoctor.derive.hangs.gone import gone_first
from memdoctor.derive.hangs.hosts import hosts_of
from memdoctor.derive.hangs.picture import picture
from memdoctor.derive.hangs.short import short_limits
from memdoctor.derive.hangs.suspects import suspects
from memdoctor.derive.hangs.telling import tell
from memdoctor.derive.hangs.waits import spoken
from memdoctor.derive.hangs.working import ABSENT, at_work
from memdoctor.model import Fact, FileRead, StepMark

__all__ = ["hang_facts"]


def hang_facts(
    facts: Sequence[Fact], everything: Sequence[Fact] = (), files: Sequence[FileRead] = (), marks: Sequence[StepMark] = ()
) -> list[Fact]:
    """``facts`` and ``marks`` (its steps) are those of one attempt, ``everything`` those of the whole log (the layout may stand in the first
    attempt alone), with their ranks filled in. Yields ``collective.odd`` and ``watchdog.verdict`` for each rank that held up the others (``watchdog.working`` for one that was at work), ``watchdog.short``
    for each time-out whose limit was too short, and ``peer.gone_first`` for each connection that was lost long before anybody timed out."""
    everything = everything or facts
    said = spoken(facts)
    axes = axes_of(everything)
    others = [*short_limits(facts, everything), *gone_first(facts)]
    if not said.waits:
        return others
    shown = picture(said, axes, frozenset(fact.rank for fact in facts if fact.rank is not None))
    own, aborted = own_ends(facts)
    found = suspects(shown, axes, own - said.ranks, aborted - said.ranks)
    if ended_nameless(facts):
        found = [suspect for suspect in found if suspect.name != "silent"]
    hosts = hosts_of(everything, axes.world)
    working = at_work(found, facts, marks, files, shown, hosts)
    if working:  # it is alive and had not come, so the others are not the ones
        found = [suspect for suspect in found if suspect.name not in ABSENT]
    return [*working, *tell(shown, found, axes, hosts, Clues(facts, files, shown, axes)), *others]
