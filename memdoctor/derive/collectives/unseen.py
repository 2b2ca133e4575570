"""Ranks without a dump: which of them explain why the others wait."""

from __future__ import annotations

from collections.abc import Sequence


def suspects(waits: Sequence[frozenset[int]]) -> dict[int, tuple[int, ...]]:
    """The fewest ranks of which each set holds one: rank -> the places of the sets that it explains. Equally good ones are all named.

    ``waits`` are, for each meeting that lacks nobody else, the members without a dump.
    """
    left = set(range(len(waits)))
    found: dict[int, tuple[int, ...]] = {}
    for place in sorted(left, key=lambda place: len(waits[place])):
        if place not in left:
            continue
        if len(waits[place]) == 1:
            (rank,) = waits[place]
            found[rank] = tuple(other for other in range(len(waits)) if rank in waits[other])
            left -= set(found[rank])
    while left:
        explained = {rank: frozenset(place for place in left if rank in waits[place]) for place in left for rank in waits[place]}
        most = max(len(places) for places in explained.values())
        best = {rank: places for rank, places in explained.items() if len(places) == most}
        first = min(best.values(), key=sorted)
        for rank, places in best.items():
            if places == first:
                found[rank] = tuple(sorted(places))
        left -= first
    return found
