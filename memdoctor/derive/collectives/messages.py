"""Sends and receives that did not end, matched by sender, receiver and order; of batches, member by member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from memdoctor.derive.collectives.comparing import elements
from memdoctor.derive.collectives.meeting import Fault, Meeting
from memdoctor.derive.collectives.world import World
from memdoctor.model import Call

COMPARED = 32  # messages that are compared to find how two cut-off lists belong together
FEWEST = 4
CLEARLY = 3.0  # how much better another alignment must fit before it is believed

End = tuple[Call, int]  # a send or receive, and the index of the call that the rank waits in
Channel = tuple[str, int, int]  # group, sender, receiver


def messages(world: World) -> Iterator[Meeting]:
    """Every message of which one end was waiting and the other was not through."""
    channels = {
        (call.group, *part.pair): None
        for calls in world.open.values()
        for call in calls
        for part in call.parts or (call,)
        if part.pair is not None and part.pair[0] != part.pair[1]
    }
    ends = _ends(world, set(channels))
    for key, sender, receiver in sorted(channels):
        sends, receives = ends.get(((key, sender, receiver), "send"), []), ends.get(((key, sender, receiver), "recv"), [])
        for send, receive in _aligned(world, (sender, receiver), sends, receives):
            meeting = _meeting(world, (key, sender, receiver), send, receive)
            if meeting is not None:
                yield meeting


def _ends(world: World, channels: set[Channel]) -> dict[tuple[Channel, str], list[End]]:
    found: dict[tuple[Channel, str], list[End]] = {}
    for rank in {rank for _, *pair in channels for rank in pair if rank in world.dumps}:
        for call in world.dumps[rank].calls:
            for part in call.parts or (call,):
                if part.pair is not None and (channel := (call.group, *part.pair)) in channels:
                    found.setdefault((channel, part.op), []).append((part, call.index))
    return found


def _aligned(world: World, pair: tuple[int, int], sends: Sequence[End], receives: Sequence[End]) -> list[tuple[End | None, End | None]]:
    """Which send belongs to which receive, from the first that is open; None where one has no other yet."""
    first_send, first_receive = _first_open(sends), _first_open(receives)
    if all(rank in world.dumps and world.dumps[rank].whole for rank in pair):
        start, shift = min(first_send, first_receive), 0
        first_send = first_receive = start
    else:
        # Rings are cut at different places. A message that was received was sent, so the last ends that are over belong together, unless
        # a batch that waits for another of its members hides that this one is over.
        shift = _shift(sends[:first_send], receives[:first_receive])
        first_send, first_receive = first_send + min(0, shift), first_receive - max(0, shift)
    count = max(len(sends) - first_send, len(receives) - first_receive)
    return [(_at(sends, first_send + number), _at(receives, first_receive + number)) for number in range(count)]


def _first_open(ends: Sequence[End]) -> int:
    return next((place for place, (call, _) in enumerate(ends) if not call.done), len(ends))


def _at(ends: Sequence[End], place: int) -> End | None:
    return ends[place] if 0 <= place < len(ends) else None


def _shift(sends: Sequence[End], receives: Sequence[End]) -> int:
    """By how many places the two lists of ends that are over are shifted: +1 where the last receive belongs to a send that is still open."""
    far = {}
    for shift in (0, 1, -1):
        one = sends[: len(sends) + min(0, shift)][::-1][:COMPARED]
        other = receives[: len(receives) - max(0, shift)][::-1][:COMPARED]
        gaps = [
            abs(send.created - receive.created)
            for (send, _), (receive, _) in zip(one, other, strict=False)
            if send.created is not None and receive.created is not None
        ]
        if len(gaps) >= FEWEST:
            far[shift] = median(gaps)
    if 0 not in far:
        return 0
    best = min(far, key=lambda shift: far[shift])
    return best if far[best] * CLEARLY < far[0] else 0


def _meeting(world: World, channel: Channel, send: End | None, receive: End | None) -> Meeting | None:
    key, sender, receiver = channel
    ends = {rank: end for rank, end in ((sender, send), (receiver, receive)) if end is not None}
    waiting = tuple(rank for rank, (call, _) in ends.items() if not call.done)
    if not waiting or len(waiting) < len(ends):
        return None  # one end is through, so the message went over
    calls = {rank: call for rank, (call, _) in ends.items()}
    missing = [rank for rank in (sender, receiver) if rank not in ends]
    fault = None
    if not missing and _differ(calls[sender], calls[receiver]):
        fault = Fault("p2p_mismatch", tuple(sorted((sender, receiver))))
    return Meeting(
        group=key,
        seq=next(iter(calls.values())).seq,
        members=(sender, receiver),
        calls=calls,
        waiting=waiting,
        absent=tuple(rank for rank in missing if rank in world.dumps),
        unseen=tuple(rank for rank in missing if rank not in world.dumps),
        pair=(sender, receiver),
        fault=fault,
        outer={rank: index for rank, (_, index) in ends.items()},
    )


def _differ(send: Call, receive: Call) -> bool:
    sent, received = elements(send.inputs or send.outputs), elements(receive.outputs or receive.inputs)
    if sent is not None and received is not None and sent != received:
        return True
    return bool(send.dtypes and receive.dtypes) and set(send.dtypes) != set(receive.dtypes)
