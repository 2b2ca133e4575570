"""Who is in a process group: from the rank in the group that lines tell beside the global one, and from the layout of the job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from memdoctor.derive.hangs.axes import MOST_RANKS, Axes, axes_named
from memdoctor.records import record

NODE = 8  # GPUs of a node, mostly
SMALL = (2, 4)  # and of small machines
Pairs = Mapping[int, int]  # global rank → rank in the group


@record
class Group:
    """``members`` are global ranks in ascending order. ``whole`` is False where there may be more than those; ``round`` where they are as many
    all the same as a job mostly has: whole nodes, or the few GPUs of a small machine."""

    members: tuple[int, ...]
    whole: bool = True
    round: bool = False


def everyone(axes: Axes, seen: Iterable[int]) -> Group:
    """The group of all ranks; of a job whose size nobody tells, up to the highest rank that was seen, or one more where that makes whole nodes."""
    if axes.world is not None:
        return Group(tuple(range(axes.world)))
    ranks = sorted(seen)
    last = ranks[-1] if ranks else -1
    last += (last + 2) % NODE == 0
    return Group(tuple(range(last + 1)) if last < MOST_RANKS else tuple(ranks), whole=False, round=_round(last + 1, axes))


def _round(number: int, axes: Axes) -> bool:
    if axes.several:
        return False
    return (number in SMALL and axes.nodes < 2) or (number > 0 and number % NODE == 0)


def group_of(pairs: Pairs, desc: str, axes: Axes) -> Group | None:
    """The group in which ranks have these places; None where they fit no single group."""
    if not pairs:
        return None
    first = min(pairs)
    named = axes_named(desc)
    families = [named] if named else []
    families += [axes_ for axes_ in sorted(axes.families(), key=lambda one: _length(axes, one, first)) if axes_ != named]
    for family in families:
        members = axes.group(family, first)
        if members is not None and len(members) > 1 and _fits(members, pairs):
            return Group(members)
    return _even(pairs, axes)


def split(pairs: Sequence[tuple[int, int]], axes: Axes) -> list[Pairs]:
    """Ranks whose lines give one number to different groups, by group. One part where all fit into one group, or nothing tells them apart."""
    together = dict(pairs)
    if len({place for _, place in pairs}) == len(pairs) and group_of(together, "", axes) is not None:
        return [together]
    for step, size in _strides(max(place for _, place in pairs) + 1, axes, max(together) + 1):
        if all(rank % (step * size) // step == place for rank, place in pairs):
            parts: dict[tuple[int, int], dict[int, int]] = {}
            for rank, place in pairs:
                parts.setdefault((rank // (step * size), rank % step), {})[rank] = place
            return [parts[key] for key in sorted(parts)]
    return [together]


def _length(axes: Axes, family: frozenset[str], rank: int) -> int:
    return len(axes.group(family, rank) or ())


def _fits(members: Sequence[int], pairs: Pairs) -> bool:
    return all(place < len(members) and members[place] == rank for rank, place in pairs.items())


def _even(pairs: Pairs, axes: Axes) -> Group | None:
    """Members at an even distance, as in all groups of a grid; as many as divide the job evenly."""
    ordered = sorted(pairs.items(), key=lambda pair: pair[1])
    if len(ordered) < 2:
        return None
    (low, at), (high, to) = ordered[0], ordered[-1]
    if to == at or (high - low) % (to - at):
        return None
    step = (high - low) // (to - at)
    base = low - step * at
    if step < 1 or base < 0 or any(rank != base + step * place for rank, place in pairs.items()):
        return None
    size, whole = to + 1, False
    if axes.world is not None:
        fitting = [count for count in range(to + 1, axes.world // step + 1) if axes.world % (count * step) == 0]
        size = next((count for count in fitting if base + step * (count - 1) < axes.world), size)
        whole = bool(fitting)
    return Group(tuple(base + step * place for place in range(size)), whole, size in SMALL or size % NODE == 0)


def _strides(least: int, axes: Axes, ranks: int) -> Iterator[tuple[int, int]]:
    """Distance between neighbours and number of members that groups may have: those of the axes, then whatever divides the job evenly."""
    step = 1
    for size in axes.sizes.values():
        if size >= least:
            yield step, size
        step *= size
    world = axes.world or ranks
    divisors = [number for number in range(1, world + 1) if world % number == 0]
    for step in divisors:
        for size in divisors:
            if size >= max(2, least) and world % (step * size) == 0:
                yield step, size
