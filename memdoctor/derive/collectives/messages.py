"""Sends and receives that did not end, matched by sender, receiver and order; of batches, member by member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memdoctor.derive.collectives.comparing import elements
from memdoctor.derive.collectives.meeting import Fault, Meeting
from memdoctor.derive.collectives.world import World
from memdoctor.model import Call

End = tuple[Call, int]  # a send or receive, and the index of the call that the rank waits in
Channel = tuple[str, int, int]  # group, sender, receiver


def messages(world: World) -> Iterator[Meeting]:
    """Every message of which one end was waiting and the other was not through."""
    channels = {
        (call.group, *part.pair): None
        for calls in world.open.values()
        for call in calls
        for part in call.parts or (call,)
        if part.pair is not None and part.pair[0] != part.pair[1] and world.sure(call.group)
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
        for call in world.calls_of[rank]:
            for part in call.parts or (call,):
                if part.pair is not None and (channel := (call.group, *part.pair)) in channels:
                    found.setdefault((channel, part.op), []).append((part, call.index))
    return found


def _aligned(world: World, pair: tuple[int, int], sends: Sequence[End], receives: Sequence[End]) -> list[tuple[End | None, End | None]]:
    """Which send belongs to which receive, from the first that is open; None where one has no other yet.

    Rings are cut at different places, so messages are counted from the last collective that both ranks were through with. Where the rings
    do not reach back so far: a message that was received was sent, so the last ends that are over belong together.
    """
    since = _common(world, *pair)
    if since is not None:
        sends = [end for end in sends if end[1] > since[0]]
        receives = [end for end in receives if end[1] > since[1]]
    first_send, first_receive = _first_open(sends), _first_open(receives)
    if since is not None:
        first_send = first_receive = min(first_send, first_receive)
    count = max(len(sends) - first_send, len(receives) - first_receive)
    return [(_at(sends, first_send + number), _at(receives, first_receive + number)) for number in range(count)]


def _common(world: World, one: int, other: int) -> tuple[int, int] | None:
    """Where in the rings of two ranks the last collective stands that both had behind them; the start of both rings where they are whole."""
    if one not in world.dumps or other not in world.dumps:
        return None
    for call in reversed(world.calls_of[one]):
        if call.done and not call.p2p:
            same = world.call(other, call.group, call.seq)
            if same is not None and same.done:
                return call.index, same.index
    return (-1, -1) if world.dumps[one].whole and world.dumps[other].whole else None


def _first_open(ends: Sequence[End]) -> int:
    return next((place for place, (call, _) in enumerate(ends) if not call.done), len(ends))


def _at(ends: Sequence[End], place: int) -> End | None:
    return ends[place] if 0 <= place < len(ends) else None


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
