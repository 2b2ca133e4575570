"""NCCL INFO logs made up from a seed, of 8 to 64 ranks and of NCCL 2.4 to 2.30: healthy ones, and ones with a single fault planted.

The wordings and their order are those that NCCL's source of each version prints; the ranks' lines are mixed as ranks mix them. ``make(fault, version,
seed)`` gives the text with the cause that is right and the ranks at fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

VERSIONS = (
    (2, 4, 8), (2, 7, 8), (2, 10, 3), (2, 12, 12), (2, 14, 3), (2, 17, 1), (2, 18, 3), (2, 19, 3), (2, 20, 5), (2, 21, 5), (2, 22, 3), (2, 23, 4), (2, 24, 3),
    (2, 26, 2), (2, 27, 5), (2, 28, 9), (2, 29, 2), (2, 30, 4),
)  # fmt: skip
STEP = (
    " [2026-03-14 02:31:{0:02d}] iteration {1:8d}/    5000 | consumed samples: {2:12d} | elapsed time per iteration (ms): 2001.0 | "
    "learning rate: 1.000000E-05 | global batch size:    64 | lm loss: {3:.6E} | loss scale: 1.0 | grad norm: 1.300 | "
    "number of skipped iterations:   0 | number of nan iterations:   0 |"
)


@dataclass
class Rank:
    """One rank, with everything that a fault may change."""

    number: int
    host: str
    local: int
    address: str
    pid: int
    interface: str = "eth0"
    network: str = "IB"
    cards: int = 8
    gdr: bool = True
    nvls: bool | None = None  # None: says nothing of it
    variables: dict[str, str] = field(default_factory=dict)
    bus: str = ""
    shm: frozenset[int] = frozenset()  # local neighbours that it reaches through host memory
    stops: str = ""  # the step at which its lines end
    nodes: int | None = None
    local_ranks: int | None = None
    absent: bool = False


@dataclass
class Job:
    """A job before it prints. ``read``: NVLink between all GPUs of a machine, of Ampere or later."""

    version: tuple[int, int, int]
    random: random.Random
    machines: int
    per: int
    read: bool = True
    channels: int = 16
    ranks: list[Rank] = field(default_factory=list)
    style: str = "plain"
    trains: bool = True
    steps: int = 29
    end: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.machines * self.per

    def on(self, machine: int) -> list[Rank]:
        return self.ranks[machine * self.per : (machine + 1) * self.per]

    def all(self) -> list[int]:
        return [rank.number for rank in self.ranks]


@dataclass(frozen=True)
class MadeLog:
    """``causes``: any of them is right; none: nothing above a note. ``ranks`` are those at fault."""

    text: str
    causes: frozenset[str]
    ranks: tuple[int, ...]


Fault = Callable[[Job], tuple[set[str], list[int]]]


def job(version: tuple[int, int, int], seed: int, machines: int | None = None, per: int = 8) -> Job:
    """A job in good health: NVLink inside the machines, InfiniBand between them."""
    rng = random.Random(seed)
    made = Job(version, rng, machines or rng.choice([1, 2, 2, 4, 8]), per, style=rng.choice(["plain", "plain", "tee", "srun", "rank"]))
    name = rng.choice(["node-{0:02d}", "gpu{0:03d}", "dgx-a{0}", "worker-{0}"])
    for machine in range(made.machines):
        for local in range(per):
            number = machine * per + local
            made.ranks.append(
                Rank(
                    number, name.format(machine + 1), local, f"10.0.{7 + machine // 200}.{machine + 1}", 21_000 + number * 3,
                    bus=f"{0x19 + 8 * local:x}000", nvls=True if version >= (2, 17, 1) and rng.random() < 0.5 else None,
                )
            )  # fmt: skip
    nvls = made.ranks[0].nvls
    for rank in made.ranks:
        rank.nvls = nvls
    return made


STEPS = ("network", "bootstrap", "topology", "graph", "connect", "trees", "finish", "complete")


def lines_of(made: Job, rank: Rank) -> list[tuple[str, str]]:
    """The lines of one rank in their order, each with the step that it belongs to."""
    version, me, size, out = made.version, rank.number, made.size, []
    pid, comm = rank.pid, f"0x55d1{me:04x}c0"
    thread = pid + 500
    head = f"{rank.host}:{pid}:{thread} [{rank.local}] NCCL INFO "
    colon = "Bootstrap: " if version >= (2, 24, 0) else "Bootstrap : "

    def say(step: str, text: str, own: str = head) -> None:
        out.append((step, own + text))

    say("network", f"{colon}Using {'[0]' if version < (2, 8, 0) else ''}{rank.interface}:{rank.address}<0>")
    if me == 0:
        out.append(("network", f"NCCL version {'.'.join(map(str, version))}+cuda12.4"))
    for name, value in rank.variables.items():
        say("network", f"{name} set by environment to {value}.")
    if rank.cards and rank.variables.get("NCCL_IB_DISABLE") != "1":
        cards = " ".join(f"[{card}]mlx5_{card}:1/IB" for card in range(rank.cards))
        say("network", f"NET/IB : Using {cards} [RO]; OOB {rank.interface}:{rank.address}<0>")
    elif rank.variables.get("NCCL_IB_DISABLE") != "1":
        say("network", "NET/IB : No device found.")
    if rank.network == "Socket":
        say("network", f"NET/Socket : Using [0]{rank.interface}:{rank.address}<0>")
    if version >= (2, 28, 0):
        say("network", f"Initialized NET plugin {rank.network}")
        say("network", f"Assigned NET plugin {rank.network} to comm")
    if version >= (2, 5, 0):
        say("network", f"Using network {rank.network}")
    identity = f"comm {comm} rank {me} nranks {size} cudaDev {rank.local}"
    identity += f" nvmlDev {rank.local}" if version < (2, 5, 0) or version >= (2, 18, 0) else ""
    identity += f" busId {rank.bus}" if version >= (2, 5, 0) else ""
    identity += " commId 0x8ba2d0f7a1b2c3d4" if version >= (2, 16, 0) else ""
    function = "" if version < (2, 21, 0) else "ncclCommInitRank " if version < (2, 24, 0) else "ncclCommInitRankConfig "
    if version >= (2, 18, 0):
        tag = f"[Rank {me}] " if version >= (2, 29, 0) else ""
        say("bootstrap", f"{tag}{function}{identity} - Init START")
    say("topology", f"Setting affinity for GPU {rank.local} to ffff,ffffffff")
    if rank.nvls is not None and version >= (2, 17, 0):
        say("topology", f"NVLS multicast support is {'available' if rank.nvls else 'not available'} on dev {rank.local}")
    if version >= (2, 14, 0) and rank.cards and rank.network != "Socket":
        for card in range(rank.cards):
            say("topology", f"NET/{rank.network} : GPU Direct RDMA {'Enabled' if rank.gdr else 'Disabled'} for HCA {card} 'mlx5_{card}'")
    if version >= (2, 20, 0):
        nodes = rank.nodes or made.machines
        local = rank.local if (rank.local_ranks or made.per) > 1 else 0
        say(
            "graph",
            f"comm {comm} rank {me} nRanks {size} nNodes {nodes} localRanks {rank.local_ranks or made.per} localRank {local} MNNVL 0",
        )
    if me == 0:
        for channel in range(made.channels):
            order = " ".join(f"{number:4d}" for number in range(min(size, 24)))
            say("graph", f"Channel {channel:02d}/{made.channels:02d} : {order}")
    say(
        "graph",
        f"Trees [0] {me + 1 if me + 1 < size else -1}/-1/-1->{me}->{me - 1} [1] {me + 1 if me + 1 < size else -1}/-1/-1->{me}->{me - 1}",
    )
    if version >= (2, 20, 0):
        say("graph", "P2P Chunksize set to 524288")
    finish = f"{made.channels} coll channels, "
    finish += f"{made.channels} collnet channels, " if version >= (2, 20, 0) else ""
    finish += "0 nvls channels, " if version >= (2, 17, 0) else ""
    finish += f"{made.channels} p2p channels, 2 p2p channels per peer"
    connect = edges(made, rank, head)
    if version >= (2, 22, 0):
        say("finish", "threadThresholds 8/8/64 | 64/8/64 | 512 | 512")
        say("finish", finish)
        say("complete", f"{function}{identity} - Init COMPLETE")
        parts = "kernels 0.20, alloc 0.10, bootstrap 0.30, allgathers 0.05, topo 0.20, graphs 0.03, connections 0.01, rest 0.04"
        say("complete", f"Init timings - {function.strip()}: rank {me} nranks {size} total 0.93 ({parts})" if version >= (2, 24, 0)
            else f"Init timings: rank {me} nranks {size} total 0.93 ({parts})")  # fmt: skip
        out += [("first", line) for line in connect]
        say("rings", "Connected all rings" + (f", use ring PXN 0 GDR {int(rank.gdr)}" if version >= (2, 24, 0) else ""))
        return out
    out += [("connect", line) for line in connect]
    if version >= (2, 10, 0):
        say("trees", "Connected all rings")
        say("finish", "Connected all trees")
    if version >= (2, 5, 0):
        say("finish", finish)
    say("complete", f"{function}{identity} - Init COMPLETE")
    return out


def edges(made: Job, rank: Rank, head: str) -> list[str]:
    """The channels of a rank: along the machine, and over the network where the ring leaves it. Channel c leaves at GPU c of each machine."""
    version, lines, per = made.version, [], made.per
    word = "Ring" if version < (2, 5, 0) else "Channel"

    def place(other: Rank) -> str:
        if version >= (2, 18, 0):
            return f"{other.number}[{other.local}]"
        return f"{other.number}[{other.bus}]" if version >= (2, 5, 0) else f"{other.number}[{other.local}]"

    for channel in range(made.channels):
        number = f"{channel:02d}/0" if version >= (2, 12, 0) else f"{channel:02d}"
        leaves = channel % per
        if rank.local == leaves and made.machines > 1:
            ahead = made.ranks[(rank.number + per) % made.size]
            behind = made.ranks[(rank.number - per) % made.size]
            tail = f"NET/{rank.network}/{channel % max(1, rank.cards)}" + ("/GDRDMA" if rank.gdr and rank.network != "Socket" else "")
            a, b, c = (f"{one.number}" if version < (2, 5, 0) else place(one) for one in (behind, rank, ahead))
            lines.append(f"{head}{word} {number} : {a} -> {b} [receive] via {tail}")
            lines.append(f"{head}{word} {number} : {b} -> {c} [send] via {tail}")
        if per == 1 or ((rank.local + 1) % per == leaves and made.machines > 1):
            continue
        neighbour = made.on(rank.number // per)[(rank.local + 1) % per]
        if neighbour.local in rank.shm:
            way = "SHM/direct/direct" if version >= (2, 14, 0) else "direct shared memory"
            number = f"{channel:02d}"
        else:
            way = "P2P/CUMEM" if version >= (2, 19, 0) else "P2P/IPC"
            way += "/read" if made.read and version >= (2, 8, 0) else ""
        lines.append(f"{head}{word} {number} : {place(rank)} -> {place(neighbour)} via {way}")
    return lines


def text_of(made: Job) -> str:
    """The log: the ranks' lines mixed within each step, then training or the end."""
    order = (*STEPS, "first", "rings")
    by_step: dict[str, list[list[str]]] = {step: [] for step in order}
    for rank in made.ranks:
        if rank.absent:
            continue
        last = order.index(rank.stops) if rank.stops else len(order)
        mine: dict[str, list[str]] = {}
        for step, line in lines_of(made, rank):
            if order.index(step) <= last:
                mine.setdefault(step, []).append(_prefixed(made, rank, line))
        for step, lines in mine.items():
            by_step[step].append(lines)
    result: list[str] = []
    for step in order:
        queues = by_step[step]
        while queues:
            queue = made.random.choice(queues)
            take = made.random.randint(1, 6)
            result += queue[:take]
            del queue[:take]
            queues = [one for one in queues if one]
    if made.trains:
        result += [STEP.format(index, index * 10, index * 640, 7.0 - index / 10) for index in range(1, made.steps + 1)]
        result.append("[after training is done] datetime: 2026-03-14 02:34:01 ")
    return "\n".join([*result, *made.end]) + "\n"


def _prefixed(made: Job, rank: Rank, line: str) -> str:
    if made.style == "tee" and made.machines == 1:
        return f"[default{rank.local}]:{line}"
    if made.style == "srun":
        return f"{rank.number:>{len(str(made.size - 1))}}: {line}"
    if made.style == "rank":
        return f"[rank{rank.number}]: {line}"
    return line


def make(fault: Fault | None, version: tuple[int, int, int], seed: int, machines: int | None = None, per: int = 8) -> MadeLog:
    """A log of ``version`` with ``fault`` in it; None: a healthy one."""
    made = job(version, seed, machines, per)
    causes, ranks = fault(made) if fault is not None else (set(), [])
    return MadeLog(text_of(made), frozenset(causes), tuple(sorted(ranks)))
