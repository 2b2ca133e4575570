"""Lives: the file of one rank holds the last words of several processes, one after the other; where the next one begins.

A process ends once. Its last words are an exception, time-outs of the watchdog and the abort, in that order at most; what stands behind
an abort and does not belong to it is said by the next process, and what comes much later, too. An exception followed by a time-out may be
either: it counts as two lives where the job is known to have had as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise

from memdoctor.lazy import lazy
from memdoctor.model import Fact

DYING = 120.0  # seconds that the last words of one process may take (a dump of the flight recorder, then the abort)
ENDS_PROCESS = ("exception", "watchdog.timeout", "native.crash")
_NUMBERS = lazy(r"\d+")
_AT_ONCE = 12  # lines that the last words of one process may be apart where it prints an abort twice


class Gap(IntEnum):
    """What lies between two last words: the next life surely, likely, perhaps, or none."""

    NONE = 0
    PERHAPS = 1
    LIKELY = 2
    SURE = 3


def lives(facts: Sequence[Fact], wanted: int) -> list[int]:
    """The seq at which the second, third, … life of one rank begins; ``wanted`` of them where the file can be read so.

    ``facts`` are those of one file, in reading order.
    """
    over: dict[str, int] = {}
    for fact in facts:
        over[fact.event] = max(fact.seq, over.get(fact.event, 0))
    gaps = [(over[before.event] + 1, gap) for before, gap in _gaps(_last_words(facts))]
    sure = [seq for seq, gap in gaps if gap is Gap.SURE]
    for least in (Gap.LIKELY, Gap.PERHAPS):
        if len(sure) >= wanted:
            break
        more = sorted({*sure, *(seq for seq, gap in gaps if gap >= least)})
        if len(more) <= wanted:
            sure = more
    return sure


def aborts(facts: Sequence[Fact]) -> int:
    """How often a process aborted and another one was heard of after it."""
    return sum(gap is Gap.SURE and _aborts(before) for before, gap in _gaps(_last_words(facts)))


def collectives(facts: Sequence[Fact]) -> set[tuple[object, object]]:
    """What the watchdog names of the collectives that timed out: all ranks that died with it name the same."""
    return {
        (fact.fields["op"], fact.fields["seq"])
        for fact in facts
        if fact.kind == "watchdog.timeout" and fact.fields.get("seq") is not None and fact.fields.get("op") is not None
    }


def _last_words(facts: Sequence[Fact]) -> list[Fact]:
    """The first fact of each event that ends a process."""
    found: list[Fact] = []
    events: set[str] = set()
    for fact in facts:
        if fact.kind in ENDS_PROCESS and not fact.fields.get("logged") and fact.event not in events:
            events.add(fact.event)
            found.append(fact)
    return found


def _gaps(words: Sequence[Fact]) -> list[tuple[Fact, Gap]]:
    """Each of the last words but the last, with what lies between it and the next."""
    result: list[tuple[Fact, Gap]] = []
    life: list[Fact] = []  # words of the process since it surely began
    for before, after in pairwise(words):
        life.append(before)
        gap = _gap(life, after)
        if gap is Gap.SURE:
            life.clear()
        result.append((before, gap))
    return result


def _gap(life: Sequence[Fact], after: Fact) -> Gap:
    before = life[-1]
    seconds = _between(before, after)
    if seconds is not None:
        return Gap.SURE if seconds > DYING else Gap.NONE
    crash = next((word for word in reversed(life) if _aborts(word)), None)
    if crash is not None:
        return Gap.NONE if _belongs(crash, after) else Gap.SURE
    if after.kind == "native.crash":
        return Gap.NONE
    if before.kind == "watchdog.timeout" and after.kind == "watchdog.timeout":
        told, form = collectives(life), _form(after)
        if told and collectives([after]) <= told:  # one process tells of one collective once in the same words
            return Gap.LIKELY if any(_form(word) == form for word in life) else Gap.NONE
        return Gap.PERHAPS if told else Gap.NONE
    if before.kind == "watchdog.timeout":
        return Gap.NONE if after.fields.get("site") == "collective" else Gap.PERHAPS
    return Gap.LIKELY


def _form(fact: Fact) -> str:
    """The words of a line, without its numbers."""
    return _NUMBERS.sub("", fact.origin.excerpt)


def _aborts(fact: Fact) -> bool:
    return fact.kind == "native.crash" or "what():" in fact.origin.excerpt


def _belongs(crash: Fact, after: Fact) -> bool:
    """True where ``after`` is said by the process of ``crash``: what its abort was about, or another word of the same end."""
    if "what():" in after.origin.excerpt:
        return True
    apart = (after.origin.line or 0) - (crash.origin.line or 0)
    return after.kind == "native.crash" and after.fields.get("name") != crash.fields.get("name") and apart <= _AT_ONCE


def _between(before: Fact, after: Fact) -> float | None:
    """Seconds between two facts of one file where the log tells; where it tells that they are far apart, at least so many."""
    if before.time is not None and after.time is not None:
        return after.time.epoch - before.time.epoch
    if before.time is not None and after.after is not None and after.after.epoch - before.time.epoch > DYING:
        return after.after.epoch - before.time.epoch
    if before.after is not None and after.time is not None and 0 <= after.time.epoch - before.after.epoch <= DYING:
        return after.time.epoch - before.after.epoch
    return None
