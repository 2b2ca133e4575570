"""Which matcher looks through the data: the plain one as long as little was read, then the fast one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from memdoctor.sources.logs.block_matcher import BlockMatcher, Unavailable
from memdoctor.sources.logs.matcher import Gate, Hit, Matcher, PlainMatcher
from memdoctor.sources.logs.sampling import NOTHING

# Bytes times gates above which the fast matcher pays for its start, some 4 ms once it is in the cache; the plain one needs 0.2 ns for a byte and a gate.
WORTH = 20_000_000


class GrowingMatcher:
    """Begins as ``PlainMatcher`` and becomes ``fast`` once that is worth it; stays plain where ``fast`` is not to be had.

    ``fast`` makes the fast matcher of gates and the numbers of those left out.
    """

    def __init__(
        self,
        gates: Sequence[Gate],
        fast: Callable[[Sequence[Gate], Collection[int]], Matcher] = BlockMatcher,
    ) -> None:
        self._gates, self._fast = gates, fast
        self._left = WORTH // max(1, len(gates))  # bytes until the change
        self._matchers: dict[frozenset[int], Matcher] = {}

    def hits(self, data: bytes, without: frozenset[int] = NOTHING) -> Sequence[Hit]:
        """As ``Matcher.hits``. ``without``: numbers of gates that are not looked for; there are few such sets."""
        if self._left >= 0:
            self._left -= len(data)
            if self._left < 0:
                self._matchers.clear()
        matcher = self._matchers.get(without)
        if matcher is None:
            matcher = self._matchers[without] = self._make(without)
        return matcher.hits(data)

    def _make(self, without: frozenset[int]) -> Matcher:
        if self._left >= 0:
            return PlainMatcher(self._gates, without)
        try:
            return self._fast(self._gates, without)
        except Unavailable:
            return PlainMatcher(self._gates, without)


def sparing(gates: Sequence[Gate], without: frozenset[int], once: frozenset[int]) -> Matcher:
    """A matcher that need tell of the gates ``once`` only where each is first, and does not tell of those ``without``."""
    try:
        return BlockMatcher(gates, without, once)
    except Unavailable:
        return PlainMatcher(gates, without)
