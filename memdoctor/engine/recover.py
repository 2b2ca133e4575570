"""Errors that the run got over: it made progress after them in the same attempt."""

from __future__ import annotations

from collections.abc import Iterable

from memdoctor.engine.cases import Case
from memdoctor.engine.onset import ONE_FILE, SKEW, has_zone
from memdoctor.engine.tiers import matches
from memdoctor.model import AttemptInfo, Fact, Marks, StepMark

_OF_PROGRESS = ("watchdog.working",)  # kinds that tell of the progress of one rank beside others that ended: it is no recovery


def settle_recovered(case: Case, info: AttemptInfo | None) -> None:
    """Mark ``case`` as recovered (or survived), or leave to it only the facts that the run did not get over."""
    if info is None or case.severity != "error":
        return
    completed = info.status == "completed"
    over = [fact for fact in case.facts if completed or (fact.kind not in _OF_PROGRESS and progress_after(fact, info.steps))]
    if not over:
        return
    if matches(case.cause, case.tiers.states):
        case.survived = len(over) == len(case.facts)
    elif len(over) == len(case.facts):
        case.recovered = True
    else:
        case.support = over + case.support
        case.facts = [fact for fact in case.facts if fact not in over]


def progress_after(fact: Fact, steps: Marks) -> bool:
    """True where two step lines with a growing iteration follow ``fact``: of its own rank where that rank prints any, else of the job.

    One line proves nothing: the rank that prints may be a step behind the one that failed.
    """
    own = steps.of_rank(fact.rank)
    if not own and fact.time is None and fact.origin.path is not None:  # nothing but the order of lines in its file can tell
        own = steps.of_path(fact.origin.path)
        if not own:
            return False
    files: dict[str, list[StepMark]] = {}
    for mark in own or steps:
        if _follows(mark, fact):
            files.setdefault(mark.path, []).append(mark)
    return any(_grows(marks) for marks in files.values())


def _grows(marks: Iterable[StepMark]) -> bool:
    lowest: int | None = None
    for mark in sorted(marks, key=lambda mark: mark.seq):
        if lowest is not None and mark.iteration > lowest:
            return True
        lowest = mark.iteration if lowest is None else min(lowest, mark.iteration)
    return False


def _follows(mark: StepMark, fact: Fact) -> bool:
    """True where the step line is certainly later than the fact: further down in its file, or later by more than the skew of clocks."""
    stamp = fact.time or fact.after
    clocked = stamp is not None and mark.epoch is not None and has_zone(stamp) is mark.zoned
    if mark.path == fact.origin.path and fact.seq >= mark.since:
        # Files that were joined one after the other keep no common order; then the times speak against it.
        return mark.seq > fact.seq and not (
            clocked and stamp is not None and mark.epoch is not None and mark.epoch < stamp.epoch - ONE_FILE
        )
    if fact.time is not None and mark.epoch is not None:
        return clocked and mark.epoch > fact.time.epoch + SKEW
    if fact.origin.path is None and stamp is None:
        iteration = fact.fields.get("iteration")
        return isinstance(iteration, int) and mark.iteration > iteration
    return False
