"""Do all ranks of a collective do the same? The majority is right; where there is none, everybody is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping

from memdoctor.derive.collectives.meeting import Fault
from memdoctor.derive.collectives.world import World
from memdoctor.model import Call

# Operations in which sizes rightly differ between ranks.
UNEVEN = ("all_to_all", "all_to_allv", "alltoall", "alltoall_base", "gather", "scatter")
AHEAD = 16  # calls after a mismatch in which the same calls in another order are looked for


def elements(shapes: tuple[tuple[int, ...], ...]) -> int | None:
    """How many elements tensors of these shapes have; the shape itself is nothing to a collective."""
    if not shapes:
        return None
    total = 0
    for shape in shapes:
        product = 1
        for size in shape:
            product *= size
        total += product
    return total


def volume(call: Call) -> tuple[int | None, int | None] | None:
    """Elements in and out; None where they may differ or are not known."""
    if call.op in UNEVEN or not (call.inputs or call.outputs):
        return None
    return elements(call.inputs), elements(call.outputs)


def _kinds(call: Call) -> tuple[str, ...] | None:
    return tuple(sorted(set(call.dtypes))) or None


_LEVELS: tuple[tuple[str, Callable[[Call], Hashable | None]], ...] = (
    ("mismatch_type", lambda call: call.op or None),
    ("mismatch_dtype", _kinds),
    ("mismatch_size", volume),
)


def compare(calls: Mapping[int, Call]) -> Fault | None:
    """In what the calls of one collective differ, operation before element type before size; None where they agree."""
    for name, look in _LEVELS:
        seen = {rank: value for rank, call in calls.items() if (value := look(call)) is not None}
        odd = minority(seen)
        if odd:
            return Fault(name, odd)
    return None


def minority(values: Mapping[int, Hashable]) -> tuple[int, ...]:
    """The ranks that differ from the most common value; all of them where two values are equally common; none where all agree."""
    counted = Counter(values.values()).most_common(2)
    if len(counted) < 2:
        return ()
    if counted[0][1] == counted[1][1]:
        return tuple(sorted(values))
    return tuple(sorted(rank for rank, value in values.items() if value != counted[0][0]))


def in_other_order(world: World, key: str, seq: int, fault: Fault) -> bool:
    """True where the odd ranks make the call of the others a little later, or the others theirs: the same calls, in another order."""
    calls = {rank: call for rank in world.members[key] if rank in world.dumps and (call := world.call(rank, key, seq)) is not None}
    odd = {calls[rank].op for rank in fault.ranks if rank in calls}
    right = {call.op for rank, call in calls.items() if rank not in fault.ranks} or odd
    for rank in calls:
        wanted = right if rank in fault.ranks else odd
        later = world.calls(rank, key)
        own = calls[rank].op
        if any(later[number].op in wanted - {own} for number in range(seq + 1, seq + 1 + AHEAD) if number in later):
            return True
    return False
