"""Facts in bounded memory: the first and last few of each kind, name, rank and attempt; exact counts of all.

The limits keep the facts of a log on which every line matches below some tens of megabytes, and never let many facts of one
kind crowd out the first of another. A fact among the last few is built only once it is known that none follows: most never are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from memdoctor.model import Fact

FIRST = 8  # kept from the start of each key
LAST = 8  # and from its end
PER_NAME = 17_000  # of one (kind, name), over all ranks and attempts
ALL = 50_000
ALWAYS = 64  # of each (kind, name), even when ALL is reached

Key = tuple[str, str, int | None, int]
Place = tuple[Key, object]


class Store:
    """Collects facts; ``counts`` tells how many of each (kind, name, rank, attempt) there were."""

    def __init__(self) -> None:
        self.counts: dict[Key, int] = {}
        self._first: dict[Place, list[Fact]] = {}
        self._last: dict[Place, deque[Callable[[], Fact]]] = {}
        self._names: dict[tuple[str, str], int] = {}
        self._all = 0

    def offer(self, key: Key, who: object, build: Callable[[], Fact]) -> None:
        """Count a fact, and keep it while it is among the first or the last few of ``key`` and ``who``.

        ``who`` tells the facts of different processes apart where no rank does.
        """
        self.counts[key] = self.counts.get(key, 0) + 1
        self._keep((key, who), build)

    def join(self, later: Store) -> None:
        """Take over what ``later`` collected, as if it had been offered after all that is here."""
        for key, count in later.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
        for place, facts in later._first.items():
            for fact in facts:
                self._keep(place, partial(_same, fact))
            for build in later._last.get(place, ()):
                self._keep(place, build)

    def settle(self) -> None:
        """Build what is kept, so that the store can go from one process to another."""
        for ring in self._last.values():
            for place in range(len(ring)):
                ring[place] = partial(_same, ring[place]())

    def _keep(self, place: Place, build: Callable[[], Fact]) -> None:
        ring = self._last.get(place)
        if ring is not None and len(ring) == LAST:
            ring.append(build)
            return
        kind = place[0][:2]
        if not self._room(kind):
            return
        if ring is not None:
            ring.append(build)
        else:
            first = self._first.setdefault(place, [])
            if len(first) < FIRST:
                first.append(build())
            else:
                self._last[place] = deque([build], maxlen=LAST)
        self._all += 1
        self._names[kind] = self._names.get(kind, 0) + 1

    def __iter__(self) -> Iterator[Fact]:
        """The kept facts in reading order."""
        kept = [fact for facts in self._first.values() for fact in facts]
        kept.extend(build() for ring in self._last.values() for build in ring)
        return iter(sorted(kept, key=lambda fact: fact.seq))

    def _room(self, kind: tuple[str, str]) -> bool:
        held = self._names.get(kind, 0)
        return held < ALWAYS or (held < PER_NAME and self._all < ALL)


def _same(fact: Fact) -> Fact:
    return fact
