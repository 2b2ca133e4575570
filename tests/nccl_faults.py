"""Faults for tests/nccl_logs.py: each changes a healthy job and says which causes are right and which ranks are at fault."""

from __future__ import annotations

from collections.abc import Callable

from tests.nccl_logs import VERSIONS, Fault, Job

LOCAL = {"hang.p2p"}


def _kill(made: Job) -> None:
    """The job is ended by the scheduler while it still waits."""
    made.trains = False
    made.end = ("slurmstepd: error: *** STEP 4711.0 ON node-01 CANCELLED AT 2026-03-14T03:00:00 ***",)


def ib_disabled(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.network, rank.variables = "Socket", {"NCCL_IB_DISABLE": "1"}
    return {"net.fallback"}, made.all()


def no_card_on_one(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.on(1):
        rank.network, rank.cards = "Socket", 0
    return {"net.fallback"}, [rank.number for rank in made.on(1)]


def cards_unused(made: Job) -> tuple[set[str], list[int]]:
    """NCCL_NET asks for sockets on machines that have cards."""
    for rank in made.ranks:
        rank.network, rank.variables = "Socket", {"NCCL_NET": "Socket"}
    return {"net.fallback"}, made.all()


def gdr_off(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.gdr = False
    return {"net.fallback"}, made.all()


def gdr_off_on_one(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.on(0):
        rank.gdr = False
    return {"net.fallback"}, [rank.number for rank in made.on(0)]


def gdr_level(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.gdr, rank.variables = False, {"NCCL_NET_GDR_LEVEL": "LOC"}
    return {"net.fallback"}, made.all()


def shm_on_one(made: Job) -> tuple[set[str], list[int]]:
    everywhere = frozenset(range(made.per))
    for rank in made.on(1):
        rank.shm = everywhere
    return {"net.fallback"}, [rank.number for rank in made.on(1)]


def shm_pair(made: Job) -> tuple[set[str], list[int]]:
    """One pair of GPUs of one machine without a direct way."""
    culprit = made.on(made.machines - 1)[2]
    culprit.shm = frozenset({3})
    return {"net.fallback"}, [culprit.number]


def few_channels(made: Job) -> tuple[set[str], list[int]]:
    made.channels = 2
    for rank in made.ranks:
        rank.nvls = True if made.version >= (2, 17, 0) else None
    return {"net.fallback"}, made.all()


def channels_limited(made: Job) -> tuple[set[str], list[int]]:
    made.channels = 1
    name = "NCCL_MAX_NCHANNELS" if made.version < (2, 17, 0) else "NCCL_MAX_CTAS"
    for rank in made.ranks:
        rank.variables = {name: "1"}
    return {"env.variable"}, made.all()


def loopback(made: Job) -> tuple[set[str], list[int]]:
    """One machine offers its loopback address; nobody can reach it."""
    for rank in made.on(1):
        rank.interface, rank.address = "lo", "127.0.0.1"
    for rank in made.ranks:
        rank.stops = "bootstrap"
    _kill(made)
    return {"net.interface"}, [rank.number for rank in made.on(1)]


def docker_bridge(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.interface, rank.address, rank.stops = "docker0", "172.17.0.1", "bootstrap"
    _kill(made)
    return {"net.interface"}, made.all()


def other_network(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.on(2):
        rank.interface, rank.address = "eno2", "192.168.40.17"
    return {"net.interface"}, [rank.number for rank in made.on(2)]


def card_gone(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.on(1):
        rank.cards = 7
    return {"env.skew"}, [rank.number for rank in made.on(1)]


def no_nvls_on_one(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.nvls = rank not in made.on(0)
    return {"env.skew"}, [rank.number for rank in made.on(0)]


def protocol_on_one(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.variables = {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_PROTO": "Simple"}
    made.ranks[5].variables = {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_PROTO": "LL"}
    return {"env.skew"}, [5]


def variable_on_one(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.variables = {"NCCL_SOCKET_IFNAME": "eth0"}
    made.ranks[3].variables = {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_ALGO": "Ring"}
    return {"env.skew"}, [3]


def split_machine(made: Job) -> tuple[set[str], list[int]]:
    """Each process of the first machine in a container that hides the machine's identity."""
    for rank in made.ranks:
        rank.nodes = made.machines - 1 + made.per
    for rank in made.on(0):
        rank.local_ranks = 1
    return {"net.fallback"}, [rank.number for rank in made.on(0)]


def merged_machines(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.nodes = made.machines - 1
    for rank in (*made.on(0), *made.on(1)):
        rank.local_ranks = 2 * made.per
    return {"env.skew"}, [rank.number for rank in (*made.on(0), *made.on(1))]


def host_id(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.nodes, rank.local_ranks, rank.variables = 1, made.size, {"NCCL_HOSTID": "cluster"}
    return {"env.variable"}, made.all()


def duplicate_gpu(made: Job) -> tuple[set[str], list[int]]:
    first, second = made.on(0)[1], made.on(0)[2]
    second.bus = first.bus
    for rank in made.ranks:
        rank.stops = "topology"
    _kill(made)
    return {"nccl.duplicate_gpu"}, [first.number, second.number]


def all_on_gpu_0(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.bus, rank.stops = made.ranks[0].bus, "topology"
    _kill(made)
    return {"nccl.duplicate_gpu"}, made.all()


def rank_missing(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.stops = "bootstrap"
    made.ranks[6].absent = True
    _kill(made)
    return {"hang.rendezvous"}, [6]


def rank_before_bootstrap(made: Job) -> tuple[set[str], list[int]]:
    """One rank chooses its network and comes no further."""
    for rank in made.ranks:
        rank.stops = "bootstrap"
    made.ranks[4].stops = "network"
    made.style = "rank"
    _kill(made)
    return {"hang.rendezvous"}, [4]


def nobody_meets(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.stops = "bootstrap"
    _kill(made)
    return {"hang.rendezvous"}, made.all()


def connect_pair(made: Job) -> tuple[set[str], list[int]]:
    """Two ranks of different machines do not get their channel; the others wait for the trees."""
    for rank in made.ranks:
        rank.stops = "trees"
    stuck = [made.on(0)[3], made.on(1)[3]]
    for rank in stuck:
        rank.stops = "connect"
    _kill(made)
    return {"net.ib"}, [rank.number for rank in stuck]


def connect_all(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.stops = "connect"
    _kill(made)
    return {"net.ib"}, made.all()


def connect_sockets(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.network, rank.cards, rank.stops = "Socket", 0, "connect"
    made.channels = 2
    _kill(made)
    return {"hang.rendezvous"}, made.all()


def connect_local(made: Job) -> tuple[set[str], list[int]]:
    for rank in made.ranks:
        rank.stops = "trees"
    made.ranks[2].stops = made.ranks[3].stops = "connect"
    _kill(made)
    return LOCAL, [2, 3]


def first_collective(made: Job) -> tuple[set[str], list[int]]:
    """NCCL 2.22 and later make the channels at the first collective: it never ends."""
    for rank in made.ranks:
        rank.stops = "first"
    _kill(made)
    return {"net.ib"}, made.all()


def topology_rank(made: Job) -> tuple[set[str], list[int]]:
    """A rank that does not come back from looking at its machine."""
    for rank in made.ranks:
        rank.stops = "graph"
    made.ranks[7].stops = "topology"
    _kill(made)
    return {"hang.gpu_fault"}, [7]


def just_ends(made: Job) -> tuple[set[str], list[int]]:
    """As rank_missing, and the log says nothing of an end."""
    found = rank_missing(made)
    made.end = ()
    return found


# A fault, and a (version, machines) for each log of it.
LOGS: tuple[tuple[Fault, tuple[tuple[tuple[int, int, int], int], ...]], ...] = (
    (ib_disabled, (((2, 7, 8), 2), ((2, 21, 5), 4))),
    (no_card_on_one, (((2, 18, 3), 2), ((2, 27, 5), 8))),
    (cards_unused, (((2, 24, 3), 2),)),
    (gdr_off, (((2, 10, 3), 2), ((2, 26, 2), 4), ((2, 4, 8), 2))),
    (gdr_off_on_one, (((2, 14, 3), 4), ((2, 30, 4), 2))),
    (gdr_level, (((2, 19, 3), 2),)),
    (shm_on_one, (((2, 12, 12), 2), ((2, 28, 9), 4))),
    (shm_pair, (((2, 20, 5), 2), ((2, 23, 4), 1))),
    (few_channels, (((2, 18, 3), 1), ((2, 22, 3), 2))),
    (channels_limited, (((2, 14, 3), 2), ((2, 29, 2), 1))),
    (loopback, (((2, 21, 5), 2),)),
    (docker_bridge, (((2, 24, 3), 4),)),
    (other_network, (((2, 17, 1), 4), ((2, 30, 4), 8))),
    (card_gone, (((2, 12, 12), 4), ((2, 27, 5), 8))),
    (no_nvls_on_one, (((2, 20, 5), 4),)),
    (protocol_on_one, (((2, 14, 3), 2), ((2, 28, 9), 4))),
    (variable_on_one, (((2, 22, 3), 2),)),
    (split_machine, (((2, 21, 5), 2),)),
    (merged_machines, (((2, 24, 3), 4),)),
    (host_id, (((2, 20, 5), 2),)),
    (duplicate_gpu, (((2, 18, 3), 2), ((2, 29, 2), 1))),
    (all_on_gpu_0, (((2, 21, 5), 1),)),
    (rank_missing, (((2, 19, 3), 2), ((2, 27, 5), 8))),
    (rank_before_bootstrap, (((2, 26, 2), 2),)),
    (nobody_meets, (((2, 23, 4), 4),)),
    (connect_pair, (((2, 12, 12), 2), ((2, 21, 5), 4))),
    (connect_all, (((2, 20, 5), 2), ((2, 10, 3), 2))),
    (connect_sockets, (((2, 18, 3), 4),)),
    (connect_local, (((2, 19, 3), 1),)),
    (first_collective, (((2, 22, 3), 2), ((2, 30, 4), 8))),
    (topology_rank, (((2, 18, 3), 2),)),
    (just_ends, (((2, 24, 3), 2),)),
)  # fmt: skip


# --- healthy jobs of every kind -----------------------------------------------------------------------------------------


def plain(made: Job) -> None:
    """NVLink and InfiniBand."""


def ethernet_cloud(made: Job) -> None:
    """Machines without RDMA: TCP is all there is."""
    made.channels = 2
    for rank in made.ranks:
        rank.network, rank.cards = "Socket", 0


def alone_with_leftover(made: Job) -> None:
    """One machine, on which it does not matter that InfiniBand is off."""
    for rank in made.ranks:
        rank.network, rank.variables = "Socket", {"NCCL_IB_DISABLE": "1"}


def pcie_halves(made: Job) -> None:
    """PCIe alone: the two halves of a machine reach each other through host memory, and two channels are all."""
    made.read, made.channels = False, 2
    for rank in made.ranks:
        rank.nvls = False if rank.nvls is not None else None
        rank.shm = frozenset({0, made.per // 2})


def bridged_pairs(made: Job) -> None:
    """Bridges join two GPUs each."""
    made.channels = 2
    for rank in made.ranks:
        rank.nvls = False if rank.nvls is not None else None
        rank.shm = frozenset(range(0, made.per, 2))


def consumer_cards(made: Job) -> None:
    """No peer-to-peer at all."""
    made.read, made.channels = False, 2
    for rank in made.ranks:
        rank.nvls, rank.shm, rank.network, rank.cards = None, frozenset(range(made.per)), "Socket", 0


def consumer_cards_on_roce(made: Job) -> None:
    """As consumer_cards, with a network card that their driver does not let near them."""
    consumer_cards(made)
    for rank in made.ranks:
        rank.network, rank.cards, rank.gdr = "IB", 1, False


def one_card(made: Job) -> None:
    """One network card for eight GPUs bears two channels."""
    made.channels = 2
    for rank in made.ranks:
        rank.cards = 1


def elastic_fabric(made: Job) -> None:
    """A cloud's own network, without GPUDirect."""
    for rank in made.ranks:
        rank.network, rank.cards, rank.gdr = "AWS Libfabric", 0, False


def far_half(made: Job) -> None:
    """The card is near one half of the GPUs on every machine; the others go without GPUDirect."""
    for rank in made.ranks:
        rank.gdr = rank.local < made.per // 2


def one_name(made: Job) -> None:
    """The containers of all machines have one host name."""
    for rank in made.ranks:
        rank.host = "trainer"


def names_differ(made: Job) -> None:
    """Interfaces have other names on some machines, in one network."""
    for rank in made.on(0):
        rank.interface = "ens3"


def variables_everywhere(made: Job) -> None:
    for rank in made.ranks:
        rank.variables = {"NCCL_SOCKET_IFNAME": "=eth0", "NCCL_IB_HCA": "mlx5", "NCCL_PROTO": "Simple", "NCCL_MAX_NCHANNELS": "16"}


def interface_per_node(made: Job) -> None:
    """A variable that differs rightly from machine to machine."""
    for rank in made.ranks:
        rank.variables = {"NCCL_SOCKET_IFNAME": f"eth{rank.number // made.per % 2}"}


def lines_lost(made: Job) -> None:
    """The last line of one rank was torn by those of others."""
    made.ranks[3].stops = "finish"


HEALTHY: tuple[tuple[Callable[[Job], None], tuple[tuple[tuple[int, int, int], int], ...]], ...] = (
    (plain, tuple((version, 1 + number % 4) for number, version in enumerate(VERSIONS))),
    (plain, (((2, 21, 5), 8), ((2, 30, 4), 8))),
    (ethernet_cloud, (((2, 10, 3), 2), ((2, 21, 5), 4), ((2, 28, 9), 2))),
    (alone_with_leftover, (((2, 14, 3), 1), ((2, 27, 5), 1))),
    (pcie_halves, (((2, 12, 12), 1), ((2, 18, 3), 2), ((2, 29, 2), 2))),
    (bridged_pairs, (((2, 17, 1), 1), ((2, 23, 4), 2))),
    (consumer_cards, (((2, 7, 8), 1), ((2, 21, 5), 2))),
    (consumer_cards_on_roce, (((2, 23, 4), 2),)),
    (one_card, (((2, 20, 5), 2), ((2, 26, 2), 4))),
    (elastic_fabric, (((2, 12, 12), 2), ((2, 24, 3), 4))),
    (far_half, (((2, 19, 3), 4),)),
    (one_name, (((2, 20, 5), 2), ((2, 27, 5), 4))),
    (names_differ, (((2, 22, 3), 4),)),
    (variables_everywhere, (((2, 18, 3), 2), ((2, 30, 4), 2))),
    (interface_per_node, (((2, 21, 5), 4),)),
    (lines_lost, (((2, 21, 5), 2), ((2, 29, 2), 1))),
)  # fmt: skip
