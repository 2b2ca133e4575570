"""Lines of which a sample is enough: timers, readings of memory, progress bars. There may be more of them than of all others.

Small logs are read as a whole. Where such lines are many, only some chunks are looked through for them. Where logs are many, a little of each
is enough, and of those that hold nothing else only some need be looked through: they come from the ranks of one job. What a rank says of
itself is read in all of them, and what one rank says for all is not missed: a kind of line that none of them showed is looked for in the rest.
"""

from __future__ import annotations

import math

ENOUGH = 250.0  # such lines, read before every second, then every fourth, … chunk is left out
NUMBERS = 0.25  # of a line counts one that goes into a table of numbers: it costs so much less than one that becomes a fact
MANY = 64  # logs of which each counts as a whole; of more, each the less
FEW = 64.0  # such lines, however many logs there are, of each in which there is anything else, ...
FEWEST = 4.0  # ... and of any other that is looked through for them:
LOOKED_THROUGH = 64  # about so many, and
RARE = 8  # of those that hold lines which none of all these holds
HEAD = 200  # lines of a log from which is learnt what its lines begin with ...
SHORTEST_HEAD = 12  # ... and however many logs there are
NOTHING: frozenset[int] = frozenset()


def head(logs: int) -> int:
    """How many first lines of each of so many logs are learnt from."""
    return max(SHORTEST_HEAD, HEAD * MANY // max(logs, MANY))


def of_the_sample(number: int, logs: int) -> bool:
    """Whether log ``number`` of ``logs`` is looked through for such lines."""
    return number % (logs // LOOKED_THROUGH | 1) == 0  # an odd number: eight ranks share a node, and all of them are to be among the sample


class Gates:
    """Numbers of gates: ``sampled`` are those of such lines, ``each`` those among them that every log is looked through for, ``late`` those
    that are looked for after an alarm alone.

    Left out are: ``late`` as a rule, ``out`` of a log that may hold nothing else, ``rest`` of a chunk that is none of the sample.
    """

    def __init__(self, sampled: frozenset[int], each: frozenset[int], late: frozenset[int]) -> None:
        self.late, self.out, self.rest = late, sampled - each | late, sampled | late


class Sampling:
    """For one of ``logs``: what of its next chunk is left out, and how many of these lines are read of a chunk (``most``).

    ``brief``: nothing but such lines and step lines is in it.
    """

    def __init__(self, gates: Gates, logs: int, *, brief: bool = False) -> None:
        self.most = math.inf if logs <= MANY else max(FEWEST if brief else FEW, ENOUGH * MANY / logs)
        self._out, self._rest = gates.late, gates.rest
        self.alarmed = False
        self._stride = 1
        self._chunk = 0
        self._read = 0.0

    @property
    def whole(self) -> bool:
        """True as long as nothing was left out."""
        return self._stride == 1

    def alarm(self) -> None:
        """From now on nothing is left out: something happened that lines else of no use explain."""
        self.alarmed, self._out, self._stride = True, NOTHING, 1

    def next(self) -> frozenset[int]:
        """The gates that the next chunk need not be looked through for."""
        self._chunk += 1
        return self._out if self._chunk % self._stride == 0 else self._rest

    def found(self, lines: float) -> None:
        """So many of these lines were in a chunk of the sample."""
        self._read += lines
        if self._read >= ENOUGH and not self.alarmed:
            self._read, self._stride = 0.0, 2 * self._stride
