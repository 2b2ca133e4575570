"""Who waits for whom: a graph of meetings and ranks, and the knots at its ends, which wait for nothing outside themselves.

A meeting waits for the ranks that have not come, and for the earlier call in which a rank that has come is still held up. A rank that
has not come waits in the meetings of its own open calls. Whatever is on the way to an end is a victim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memdoctor.derive.collectives.meeting import Meeting
from memdoctor.derive.collectives.world import World
from memdoctor.records import record

Node = tuple[str, int]  # ("meeting", place in the list) or ("rank", rank)


@record
class Knot:
    """Ranks and meetings that hold each other, and nothing else holds. ``waiting`` are all ranks that wait for them in the end."""

    ranks: tuple[int, ...]
    meetings: tuple[Meeting, ...]
    waiting: tuple[int, ...]


class Waits:
    def __init__(self, world: World, meetings: Sequence[Meeting]) -> None:
        self.meetings = meetings
        self._of_call: dict[tuple[int, int], list[int]] = {}
        self._index(world)
        self.edges: dict[Node, list[Node]] = {}
        for place, meeting in enumerate(meetings):
            self.edges["meeting", place] = [] if meeting.fault is not None else self._from_meeting(world, place, meeting)
        for rank in {rank for meeting in meetings for rank in meeting.absent}:
            ends = [("meeting", place) for call in world.open.get(rank, ()) for place in self._of_call.get((rank, call.index), ())]
            self.edges["rank", rank] = list(dict.fromkeys(ends))

    def _index(self, world: World) -> None:
        """Which meetings hold up each open call: a collective those of its group that come before it, too."""
        holding: dict[str, int] = {}
        for place, meeting in enumerate(self.meetings):
            if meeting.pair is None:
                holding[meeting.group] = place
            else:
                for rank, index in meeting.outer.items():
                    self._of_call.setdefault((rank, index), []).append(place)
        for rank, calls in world.open.items():
            for call in calls:
                at = holding.get(call.group)
                if not call.p2p and at is not None and self.meetings[at].seq <= call.seq:
                    self._of_call.setdefault((rank, call.index), []).append(at)

    def _from_meeting(self, world: World, place: int, meeting: Meeting) -> list[Node]:
        ends: list[Node] = [("rank", rank) for rank in meeting.absent]
        for rank, index in meeting.outer.items():
            if meeting.calls[rank].started:
                continue  # it is on the GPU, so nothing before it holds it up
            earlier = (self._of_call.get((rank, call.index), ()) for call in world.open.get(rank, ()) if call.index < index)
            first = next((places for places in earlier if places), ())
            ends += [("meeting", other) for other in first if other != place]
        return list(dict.fromkeys(ends))

    def knots(self) -> list[Knot]:
        """The ends of the graph."""
        parts = components(self.edges)
        part_of = {node: number for number, part in enumerate(parts) for node in part}
        back: dict[Node, list[Node]] = {}
        for node, ends in self.edges.items():
            for end in ends:
                back.setdefault(end, []).append(node)
        found = []
        for number, part in enumerate(parts):
            if all(part_of[end] == number for node in part for end in self.edges[node]):
                meetings = tuple(self.meetings[place] for kind, place in sorted(part) if kind == "meeting")
                ranks = tuple(sorted(rank for kind, rank in part if kind == "rank"))
                found.append(Knot(ranks, meetings, self._behind(part, back)))
        return found

    def _behind(self, part: Sequence[Node], back: Mapping[Node, Sequence[Node]]) -> tuple[int, ...]:
        seen, left = set(part), list(part)
        while left:
            for node in back.get(left.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    left.append(node)
        return tuple(sorted({rank for kind, place in seen if kind == "meeting" for rank in self.meetings[place].waiting}))


def components(edges: Mapping[Node, Sequence[Node]]) -> list[list[Node]]:
    """The strongly connected components (Tarjan's algorithm, without recursion: a chain may be as long as there are ranks)."""
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    result: list[list[Node]] = []
    for root in edges:
        if root in number:
            continue
        work: list[tuple[Node, int]] = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                number[node] = low[node] = len(number)
                stack.append(node)
                on_stack.add(node)
            ends = edges[node]
            while at < len(ends):
                end = ends[at]
                at += 1
                if end not in number:
                    work += [(node, at), (end, 0)]
                    break
                if end in on_stack:
                    low[node] = min(low[node], number[end])
            else:
                if low[node] == number[node]:
                    part: list[Node] = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on_stack.discard(part[-1])
                    result.append(part)
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
    return result
