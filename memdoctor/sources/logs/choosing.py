"""Which matcher looks through the data: the plain one as long as little was read, then the fast one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from memdoctor.sources.logs.block_matcher import BlockMatcher, Unavailable
from memdoctor.sources.logs.matcher import Gate, Hit, Matcher, PlainMatcher

# Bytes times gates above which the fast matcher pays for its start, some 4 ms once it is in the cache; the plain one needs 0.2 ns for a byte and a gate.
WORTH = 20_000_000


class GrowingMatcher:
    """Begins as ``PlainMatcher`` and becomes ``fast`` once that is worth it; stays plain where ``fast`` is not to be had.

    ``sampled``: numbers of gates that need not be looked for in all of the data.
    """

    def __init__(
        self,
        gates: Sequence[Gate],
        sampled: Collection[int] = (),
        fast: Callable[[Sequence[Gate], Collection[int]], Matcher] = BlockMatcher,
    ) -> None:
        self._gates, self._sampled, self._fast = gates, sampled, fast
        self._matcher: Matcher = PlainMatcher(gates)
        self._sparing: Matcher | None = None
        self._left = WORTH // max(1, len(gates))  # bytes until the change

    def hits(self, data: bytes, *, sample: bool = True) -> Sequence[Hit]:
        """As ``Matcher.hits``. ``sample``: the sampled gates count, too; otherwise they are left out."""
        if self._left >= 0:
            self._left -= len(data)
            if self._left < 0:
                self._matcher = self._make(())
        if sample:
            return self._matcher.hits(data)
        if self._sparing is None:
            self._sparing = self._make(self._sampled)
        return self._sparing.hits(data)

    def _make(self, without: Collection[int]) -> Matcher:
        try:
            return self._fast(self._gates, without)
        except Unavailable:
            return PlainMatcher(self._gates, without)
