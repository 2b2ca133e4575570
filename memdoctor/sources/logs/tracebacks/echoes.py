"""One traceback printed by several processes into one stream, line by line: runs of equal lines, or one process some lines ahead.

All print the same lines, so the foremost process tells the whole traceback and each other one is a place in it. A line that is next
at some place moves that process on; any other line is new, printed by a foremost one.
"""

from __future__ import annotations

MAX_PROCESSES = 1_024
_KEY = 400  # characters of a line that are compared


class Echoes:
    """``lines`` of the traceback so far, and how many processes stand at which place in it."""

    __slots__ = ("_places", "joined", "lines")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._places: dict[int, int] = {0: 1}
        self.joined = 1  # processes that printed a head

    def add(self, text: str) -> None:
        """A line that only the foremost process has printed so far."""
        self._move(len(self.lines))
        self.lines.append(text[:_KEY])

    def follow(self, text: str) -> int | None:
        """The place of ``text`` in the traceback where a process behind the foremost goes on with it; None where none does."""
        if len(self._places) == 1:
            return None
        key = text[:_KEY]
        for place in sorted(self._places, reverse=True):
            if place < len(self.lines) and self.lines[place] == key:
                self._move(place)
                return place
        return None

    def join(self) -> None:
        """Another process prints the head."""
        if self.joined < MAX_PROCESSES:
            self._places[1] = self._places.get(1, 0) + 1
            self.joined += 1

    def step_over(self, place: int) -> bool:
        """Whether a process stands at ``place``; it then goes past it, with a line of its own."""
        if place not in self._places:
            return False
        self._move(place)
        return True

    def behind(self, place: int) -> bool:
        """Whether some process has not printed the line at ``place`` yet."""
        return any(other <= place for other in self._places)

    def _move(self, place: int) -> None:
        left = self._places.get(place, 1) - 1
        if left:
            self._places[place] = left
        else:
            self._places.pop(place, None)
        self._places[place + 1] = self._places.get(place + 1, 0) + 1
