"""Faults for tests/nccl_logs.py in which the ranks' networks differ, and what only looks like it."""

from __future__ import annotations

from tests.nccl_faults import _kill
from tests.nccl_logs import Fault, Job

FALLBACK, PLUGIN = {"net.fallback"}, {"net.plugin"}


def _odd(made: Job, stops: str) -> list[int]:
    for rank in made.on(1):
        rank.network, rank.cards = "Socket", 0
    for rank in made.ranks:
        rank.stops = stops
    _kill(made)
    return [rank.number for rank in made.on(1)]


def odd_in_topology(made: Job) -> tuple[set[str], list[int]]:
    return FALLBACK, _odd(made, "topology")


def odd_in_graph(made: Job) -> tuple[set[str], list[int]]:
    return FALLBACK, _odd(made, "graph")


def odd_in_connect(made: Job) -> tuple[set[str], list[int]]:
    return FALLBACK, _odd(made, "connect")


def odd_in_finish(made: Job) -> tuple[set[str], list[int]]:
    return FALLBACK, _odd(made, "finish")


def odd_in_bootstrap(made: Job) -> tuple[set[str], list[int]]:
    return FALLBACK, _odd(made, "bootstrap")


def odd_in_first_collective(made: Job) -> tuple[set[str], list[int]]:
    return FALLBACK, _odd(made, "first")


def odd_is_behind(made: Job) -> tuple[set[str], list[int]]:
    ranks = _odd(made, "trees")
    for rank in made.on(1):
        rank.stops = "connect"
    return FALLBACK, ranks


def odd_and_just_ends(made: Job) -> tuple[set[str], list[int]]:
    """The log says nothing of an end; its file is old."""
    ranks = _odd(made, "finish")
    made.end = ()
    return FALLBACK, ranks


def odd_by_variable(made: Job) -> tuple[set[str], list[int]]:
    ranks = _odd(made, "connect")
    for rank in made.on(1):
        rank.cards, rank.variables = 8, {"NCCL_IB_DISABLE": "1"}
    return FALLBACK, ranks


def odd_has_the_cards(made: Job) -> tuple[set[str], list[int]]:
    """All nodes but one were told to use sockets."""
    for rank in made.ranks:
        rank.stops = "connect"
        if rank not in made.on(1):
            rank.network, rank.variables = "Socket", {"NCCL_NET": "Socket"}
    _kill(made)
    return FALLBACK, [rank.number for rank in made.on(1)]


def odd_lacks_the_plugin(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.network, rank.stops = "IB" if rank in made.on(0) else "IBext_v8", "connect"
    _kill(made)
    return PLUGIN, [rank.number for rank in made.on(0)]


# --- what looks like it ---------------------------------------------------------------------------------------------------


def missing_beside_odd(made: Job) -> tuple[set[str], list[int]]:
    """One node runs on sockets, but a rank never came: the others wait for that one."""
    _odd(made, "bootstrap")
    made.ranks[6].absent = True
    return {"hang.rendezvous"}, [6]


def driver_beside_odd(made: Job) -> tuple[set[str], list[int]]:
    """One node runs on sockets, but a rank of another one does not come back from its driver."""
    _odd(made, "graph")
    made.ranks[2].stops = "topology"
    return {"hang.gpu_fault"}, [2]


def sockets_everywhere(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.network, rank.cards, rank.stops = "Socket", 0, "connect"
    made.channels = 2
    _kill(made)
    return {"hang.rendezvous"}, made.all()


# A fault, and a (version, machines) for each log of it.
MIXED: tuple[tuple[Fault, tuple[tuple[tuple[int, int, int], int], ...]], ...] = (
    (odd_in_topology, (((2, 18, 3), 2), ((2, 21, 5), 3))),
    (odd_in_graph, (((2, 20, 5), 3), ((2, 28, 9), 2))),
    (odd_in_connect, (((2, 4, 8), 3), ((2, 12, 12), 2), ((2, 19, 3), 4))),
    (odd_in_finish, (((2, 22, 3), 3), ((2, 27, 5), 2))),
    (odd_in_bootstrap, (((2, 19, 3), 3), ((2, 26, 2), 2))),
    (odd_in_first_collective, (((2, 22, 3), 4), ((2, 30, 4), 2))),
    (odd_is_behind, (((2, 14, 3), 4),)),
    (odd_and_just_ends, (((2, 23, 4), 3),)),
    (odd_by_variable, (((2, 21, 5), 3), ((2, 29, 2), 4))),
    (odd_has_the_cards, (((2, 24, 3), 4),)),
    (odd_lacks_the_plugin, (((2, 18, 3), 3), ((2, 26, 2), 2))),
    (missing_beside_odd, (((2, 21, 5), 2), ((2, 27, 5), 4))),
    (driver_beside_odd, (((2, 20, 5), 2),)),
    (sockets_everywhere, (((2, 18, 3), 3),)),
)  # fmt: skip
