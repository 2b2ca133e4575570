"""Runs the programs of a job until nothing moves any more: which calls were made, which were reached, which ended, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.flight.job import Item, Job

LIMIT = 600.0


@dataclass
class Meeting:
    needed: int
    came: dict[int, Item] = field(default_factory=dict)
    at: float = 0.0
    over: bool = False
    broken: bool = False


@dataclass
class Made:
    """What became of one item on one rank. Times are seconds since the start."""

    created: float
    reached: float | None = None
    ended: float | None = None


@dataclass
class Run:
    """``stops``: rank -> place in its program before which it stops for good; ``stalls``: (group name, number) of a collective, or channel
    and number, that never ends. ``lead``: how many calls a host may be ahead of its GPU. ``late``: a rank that stops and goes on after the limit.
    """

    job: Job
    rng: random.Random
    stops: dict[int, int] = field(default_factory=dict)
    stalls: frozenset[object] = frozenset()
    lead: int = 0
    late: int | None = None

    def __post_init__(self) -> None:
        self.meetings: dict[object, Meeting] = {}
        self.keys: dict[int, list[tuple[tuple[object, int], ...]]] = {rank: self._keys(rank) for rank in self.job.programs}
        self.made: dict[int, dict[int, Made]] = {rank: {} for rank in self.job.programs}
        self.head: dict[int, int] = dict.fromkeys(self.job.programs, 0)
        self._time: dict[int, float] = dict.fromkeys(self.job.programs, 0.0)
        self._stand: dict[object, set[int]] = {}
        self._run(list(self.job.programs))
        self._ahead()
        if self.late is not None:
            self._come_late(self.late)

    def _keys(self, rank: int) -> list[tuple[tuple[object, int], ...]]:
        """For each item the meetings that it belongs to."""
        counts: dict[object, int] = {}
        keys = []
        for item in self.job.programs[rank]:
            names: list[object] = [(sender, receiver) for sender, receiver, _ in item.messages] or [item.group.name]
            own: list[tuple[object, int]] = []
            for name in names:
                counts[name] = counts.get(name, 0) + 1
                own.append((name, counts[name]))
                if own[-1] not in self.meetings:
                    needed = 2 if item.messages else len(item.group.ranks)
                    self.meetings[own[-1]] = Meeting(needed, broken=own[-1] in self.stalls)
            keys.append(tuple(own))
        return keys

    def _end(self, rank: int) -> int:
        return min(self.stops.get(rank, len(self.job.programs[rank])), len(self.job.programs[rank]))

    def _run(self, ready: list[int]) -> None:
        while ready:
            rank = ready.pop()
            while self.head[rank] < self._end(rank):
                place = self.head[rank]
                item = self.job.programs[rank][place]
                if place not in self.made[rank]:
                    self._time[rank] += self.rng.uniform(0.001, 0.004)
                    self.made[rank][place] = Made(self._time[rank], self._time[rank])
                    ready += self._arrive(rank, place, item)
                if item.aside or all(self.meetings[key].over for key in self.keys[rank][place]):
                    self._time[rank] = max(
                        self._time[rank], *(self.meetings[key].at for key in self.keys[rank][place] if not item.aside), 0.0
                    )
                    self.head[rank] += 1
                    continue
                for key in self.keys[rank][place]:
                    self._stand.setdefault(key, set()).add(rank)
                break

    def _arrive(self, rank: int, place: int, item: Item) -> list[int]:
        woken: list[int] = []
        for key in self.keys[rank][place]:
            meeting = self.meetings[key]
            meeting.came[rank] = item
            meeting.at = max(meeting.at, self._time[rank])
            woken += [other for other in self._settle(key) if other != rank]
        return woken

    def _settle(self, key: tuple[object, int]) -> list[int]:
        """End the meeting where it can, and those of its group that stand behind it: a group ends its collectives in order."""
        name, number = key
        woken: list[int] = []
        while True:
            meeting, before = self.meetings.get((name, number)), self.meetings.get((name, number - 1))
            if meeting is None or meeting.over or meeting.broken or len(meeting.came) < meeting.needed:
                return woken
            if (before is not None and not before.over) or not _alike(meeting, (name, number)):
                return woken
            meeting.over = True
            meeting.at = max(meeting.at, before.at if before is not None else 0.0) + 0.002
            woken += self._stand.pop((name, number), ())
            number += 1

    def _ahead(self) -> None:
        """What hosts had called already although their GPU stands at an earlier call; and when each call ended."""
        for rank, program in self.job.programs.items():
            place, time = self.head[rank], self._time[rank]
            left = self.rng.randint(0, self.lead)
            while place < self._end(rank):
                if place not in self.made[rank]:
                    if left == 0:
                        break
                    left -= 1
                    time += 0.0005
                    self.made[rank][place] = Made(time)
                if program[place].blocks and not all(self.meetings[key].over for key in self.keys[rank][place]):
                    break
                place += 1
            for number, made in self.made[rank].items():
                meetings = [self.meetings[key] for key in self.keys[rank][number]]
                if made.reached is not None and all(meeting.over for meeting in meetings):
                    made.ended = max(meeting.at for meeting in meetings)

    def _come_late(self, rank: int) -> None:
        """The rank goes on when the others have just given up: it calls, and nothing ends any more."""
        place = self.stops[rank]
        time = max(self._time.values()) + LIMIT + self.rng.uniform(0.5, 20)
        self.made[rank][place] = Made(time, time)


def _alike(meeting: Meeting, key: tuple[object, int]) -> bool:
    """True where all that came to a meeting do the same, as far as NCCL would notice."""
    items = list(meeting.came.values())
    if items[0].messages:
        sizes = {message[2] for item in items for message in item.messages if (message[0], message[1]) == key[0]}
        return len(sizes) == 1
    return len({(item.op, item.sent, item.received, item.dtype) for item in items}) == 1
