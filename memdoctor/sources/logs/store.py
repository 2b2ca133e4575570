"""Facts in bounded memory: the first and last few of each kind, name, rank and attempt; exact counts of all.

The limits keep the facts of a log on which every line matches below some tens of megabytes, and never let many facts of one
kind crowd out the first of another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from memdoctor.model import Fact

FIRST = 8  # kept from the start of each key
LAST = 8  # and from its end
PER_NAME = 6_000  # of one (kind, name), over all ranks and attempts
ALL = 50_000
ALWAYS = 64  # of each (kind, name), even when ALL is reached

Key = tuple[str, str, int | None, int]
_WHO = ("pg_rank", "of_rank", "local_rank", "pid")  # tells the facts of different processes apart where no rank does


class Store:
    """Collects facts; ``counts`` tells how many of each (kind, name, rank, attempt) there were."""

    def __init__(self) -> None:
        self.counts: dict[Key, int] = {}
        self._first: dict[tuple[Key, int | None], list[Fact]] = {}
        self._last: dict[tuple[Key, int | None], deque[Fact]] = {}
        self._names: dict[tuple[str, str], int] = {}
        self._all = 0

    def wants(self, kind: str, name: str, rank: int | None, attempt: int) -> bool:
        """False when a fact of this key would only be counted: then its costly parts need not be built."""
        return self._room(kind, name) or any(key[0] == (kind, name, rank, attempt) for key in self._last)

    def count(self, kind: str, name: str, rank: int | None, attempt: int) -> None:
        """Count a fact that is not kept."""
        key = (kind, name, rank, attempt)
        self.counts[key] = self.counts.get(key, 0) + 1

    def add(self, fact: Fact) -> None:
        name = str(fact.fields.get("name", ""))
        counted = (fact.kind, name, fact.rank, fact.attempt)
        self.counts[counted] = self.counts.get(counted, 0) + 1
        key = (
            counted,
            None if fact.rank is not None else next((fact.fields[who] for who in _WHO if fact.fields.get(who) is not None), None),
        )
        first = self._first.get(key)
        if first is not None and len(first) < FIRST and self._room(fact.kind, name):
            first.append(fact)
        elif first is None and self._room(fact.kind, name):
            self._first[key] = [fact]
        else:
            ring = self._last.get(key)
            if ring is not None and len(ring) == LAST:
                ring.append(fact)
                return
            if not self._room(fact.kind, name):
                return
            if ring is None:
                ring = self._last[key] = deque(maxlen=LAST)
            ring.append(fact)
        self._all += 1
        self._names[(fact.kind, name)] = self._names.get((fact.kind, name), 0) + 1

    def __iter__(self) -> Iterator[Fact]:
        """The kept facts in reading order."""
        kept = [fact for facts in self._first.values() for fact in facts]
        kept.extend(fact for ring in self._last.values() for fact in ring)
        return iter(sorted(kept, key=lambda fact: fact.seq))

    def _room(self, kind: str, name: str) -> bool:
        held = self._names.get((kind, name), 0)
        return held < ALWAYS or (held < PER_NAME and self._all < ALL)
