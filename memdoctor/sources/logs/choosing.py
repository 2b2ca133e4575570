"""Which matcher looks through the data: the plain one as long as little was read, then the fast one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from memdoctor.sources.logs.block_matcher import BlockMatcher, Unavailable
from memdoctor.sources.logs.matcher import Gate, Hit, Matcher, PlainMatcher

# Bytes times gates above which the fast matcher pays for its start (import and compilation, some 20 ms; the plain one needs 0.2 ns for a byte and a gate).
WORTH = 100_000_000


class GrowingMatcher:
    """Begins as ``PlainMatcher`` and becomes ``fast`` once that is worth it; stays plain where ``fast`` is not to be had."""

    def __init__(self, gates: Sequence[Gate], fast: Callable[[Sequence[Gate]], Matcher] = BlockMatcher) -> None:
        self._gates, self._fast = gates, fast
        self._matcher: Matcher = PlainMatcher(gates)
        self._left = WORTH // max(1, len(gates))  # bytes until the change

    def hits(self, data: bytes) -> Sequence[Hit]:
        if self._left >= 0:
            self._left -= len(data)
            if self._left < 0:
                self._grow()
        return self._matcher.hits(data)

    def _grow(self) -> None:
        with contextlib.suppress(Unavailable):
            self._matcher = self._fast(self._gates)
