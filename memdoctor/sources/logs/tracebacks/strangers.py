"""Lines that stand within a traceback and are not of it: other processes write to the same stream."""

from __future__ import annotations

MAX_IN_A_ROW, MAX_IN_ALL = 5, 40


class Strangers:
    """Counts them. ``took``: the last line was the traceback's own. ``last``: the newest that might be an exception line."""

    __slots__ = ("_all", "_row", "last", "took")

    def __init__(self) -> None:
        self._row = self._all = 0
        self.took = True
        self.last: tuple[str, int] | None = None

    def home(self) -> bool:
        self._row, self.took, self.last = 0, True, None
        return True

    def another(self) -> bool:
        """Whether one more is bearable."""
        self._row += 1
        self._all += 1
        self.took = False
        return self._row <= MAX_IN_A_ROW and self._all <= MAX_IN_ALL
