"""Lines of which a sample is enough: timers, readings of memory, progress bars. There may be more of them than of all others.

Small logs are read as a whole. Where such lines are many, only some chunks are looked through for them.
"""

from __future__ import annotations

ENOUGH = 500.0  # such lines, read before every second, then every fourth, … chunk is left out
NUMBERS = 0.25  # of a line counts one that goes into a table of numbers: it costs so much less than one that becomes a fact


class Sampling:
    """For one file: whether its next chunk belongs to the sample."""

    def __init__(self) -> None:
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
