"""Lines of which a sample is enough: timers, readings of memory, progress bars. There may be more of them than of all others.

Small logs are read as a whole. Where such lines are many, only some chunks are looked through for them. Where logs are many, a little of each
is enough: they come from the ranks of one job.
"""

from __future__ import annotations

import math

ENOUGH = 250.0  # such lines, read before every second, then every fourth, … chunk is left out
NUMBERS = 0.25  # of a line counts one that goes into a table of numbers: it costs so much less than one that becomes a fact
MANY = 64  # logs of which each counts as a whole; of more, each the less
FEWEST = 4.0  # such lines, however many logs there are
HEAD = 200  # lines of a log from which is learnt what its lines begin with ...
SHORTEST_HEAD = 32  # ... and however many logs there are


def head(logs: int) -> int:
    """How many first lines of each of so many logs are learnt from."""
    return max(SHORTEST_HEAD, HEAD * MANY // max(logs, MANY))


class Sampling:
    """For one file of ``logs``: whether its next chunk belongs to the sample, and how many of these lines are read of a chunk (``most``)."""

    def __init__(self, logs: int = 1) -> None:
        self.most = math.inf if logs <= MANY else max(FEWEST, ENOUGH * MANY / logs)
        self._stride = 1
        self._chunk = 0
        self._read = 0.0

    @property
    def whole(self) -> bool:
        """True as long as nothing was left out."""
        return self._stride == 1

    def next(self) -> bool:
        self._chunk += 1
        return self._chunk % self._stride == 0

    def found(self, lines: float) -> None:
        """So many of these lines were in a chunk of the sample."""
        self._read += lines
        if self._read >= ENOUGH:
            self._read, self._stride = 0.0, 2 * self._stride
