"""When something began, as far as a log tells, and which of two came first.

Clocks of hosts differ, tracebacks carry no time, and a time-out is printed minutes after what it tells of. So an order is claimed only where
the times leave no doubt; everything else is "unknown", which contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from memdoctor.lazy import lazy
from memdoctor.model import Fact, Stamp
from memdoctor.records import record

SKEW = 60.0  # seconds by which clocks of different hosts (or lines that different programs buffer) may differ
ONE_FILE = 5.0  # the same, where both lines stand in one file
_ZONE = lazy(r"(?:Z|[+-]\d\d:?(?:\d\d)?)$")


@record
class Span:
    """The beginning of a finding. Times are epoch seconds, None where nothing tells.

    ``first``: it did not begin before; for a time-out the moment of the call that never returned. ``exact``: and it began then.
    ``printed``: by then its first line had been written. ``wait``: the finding is a time-out. ``zoned``: the times have a zone; times with
    and without one do not compare. ``seqs``: the first line in each file, in reading order.
    """

    first: float | None
    exact: bool
    printed: float | None
    wait: bool
    zoned: bool | None
    seqs: Mapping[str, int]


def waited(fact: Fact) -> float:
    """Seconds that a time-out had waited when it was printed; 0 for any other fact."""
    for name in ("ran", "limit", "limit_ms"):
        value = fact.fields.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9:
            return float(value)
    return 0.0


def has_zone(stamp: Stamp) -> bool:
    return _zoned(stamp.iso)


@lru_cache(maxsize=4_096)
def _zoned(iso: str) -> bool:
    return "T" in iso and _ZONE.search(iso.split("T", 1)[1]) is not None


def onset_key(fact: Fact) -> tuple[float, int]:
    """Sorts facts by when they began; those without any time come last, in reading order."""
    stamp = fact.time or fact.after
    return (stamp.epoch - waited(fact) if stamp is not None else float("inf"), fact.seq)


def span_of(facts: Sequence[Fact]) -> Span:
    """The beginning of what ``facts`` tell together."""
    stamps = [fact.time or fact.after for fact in facts]
    known = [(fact, stamp) for fact, stamp in zip(facts, stamps, strict=True) if stamp is not None]
    zones = {has_zone(stamp) for _, stamp in known}
    comparable = len(zones) == 1
    first = min((stamp.epoch - waited(fact) for fact, stamp in known), default=None)
    exact = all(fact.time is not None for fact in facts)
    seqs: dict[str, int] = {}
    for fact in facts:
        if fact.origin.path is not None:
            seqs[fact.origin.path] = min(fact.seq, seqs.get(fact.origin.path, fact.seq))
    return Span(
        first=first if comparable and len(known) == len(facts) else None,
        exact=exact and comparable,
        printed=min((fact.time.epoch for fact in facts if fact.time is not None), default=None) if comparable else None,
        wait=bool(facts) and all(waited(fact) > 0 for fact in facts),
        zoned=next(iter(zones)) if comparable else None,
        seqs=seqs,
    )


def clearly_before(one: Span, other: Span, *, by: float | None = None) -> bool:
    """True where the times leave no doubt that ``one`` was over and printed before ``other`` began, so ``other`` cannot be its cause.

    What happens while a rank waits can be the cause of its time-out, so a time-out counts from its printing; two time-outs compare from
    the calls that never returned.
    """
    if one.zoned is not other.zoned or other.first is None:
        return False
    end = one.first if one.wait and other.wait and one.exact else one.printed
    if end is None:
        return False
    if by is None:
        by = ONE_FILE if other.exact and one.seqs.keys() & other.seqs.keys() else SKEW
    return end + by < other.first


def printed_before(one: Span, other: Span) -> bool:
    """True where ``one`` was printed so much earlier than ``other`` that it is no consequence of what ``other`` reports."""
    if one.printed is None or other.printed is None or one.zoned is not other.zoned:
        return False
    return one.printed + (ONE_FILE if one.seqs.keys() & other.seqs.keys() else SKEW) < other.printed


def waited_before(effect: Span, cause: Span) -> bool:
    """True where ``effect`` is a wait that had begun before ``cause``, or nothing tells when that was.

    It is meant for causes that end all ranks at once: they leave nobody the minutes that a time-out takes.
    """
    if not effect.wait:
        return False
    if effect.first is not None and cause.first is not None and effect.zoned is cause.zoned:
        exact = effect.exact and cause.exact and bool(effect.seqs.keys() & cause.seqs.keys())
        return effect.first + (ONE_FILE if exact else SKEW) < cause.first
    return file_order(effect, cause) <= 0


def within(cause: Span, effect: Span, before: float | None) -> bool:
    """False where ``effect`` began more than ``before`` seconds after ``cause``; unknown times hold."""
    if (
        before is None
        or cause.first is None
        or effect.first is None
        or not (cause.exact and effect.exact)
        or cause.zoned is not effect.zoned
    ):
        return True
    return effect.first - cause.first <= before


def file_order(one: Span, other: Span) -> int:
    """-1 where ``one`` is first in a file that both stand in, 1 where ``other`` is, 0 where they share no file (or the files disagree)."""
    signs = {(one.seqs[path] > other.seqs[path]) - (one.seqs[path] < other.seqs[path]) for path in one.seqs.keys() & other.seqs.keys()}
    return signs.pop() if len(signs) == 1 else 0
