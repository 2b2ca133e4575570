"""One process, and its communicators, as NCCL's INFO lines tell of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Any

from memdoctor.model import Stamp
from memdoctor.records import entity

# How far the set-up of a communicator came: the step at which it is, each waiting for other ranks or for hardware.
STAGES = ("network", "bootstrap", "topology", "graph", "connect", "trees", "finish", "complete")
NETWORK, BOOTSTRAP, TOPOLOGY, GRAPH, CONNECT, TREES, FINISH, COMPLETE = range(8)
MOST_COMMS = 64  # of one process that are kept apart
MOST_VARIABLES = 64
MOST_CARDS = 64


@entity
class Comm:
    """A communicator of one process. ``rank`` and ``size`` are within it, ``line`` is where it was heard of last."""

    pointer: bytes = b""
    id: str = ""
    rank: int | None = None
    size: int | None = None
    gpu: int | None = None
    bus: str | None = None
    stage: int = NETWORK
    started: bool = False
    nodes: int | None = None
    local_ranks: int | None = None
    local: int | None = None
    channels: int | None = None
    seconds: float | None = None
    timings: dict[str, float] = field(default_factory=dict)  # seconds of each part of the set-up
    line: int = 0


@entity
class Process:
    """What is known of a process. ``line`` and ``raw`` are its first line."""

    host: str
    pid: int
    device: int
    line: int
    raw: str
    attempt: int
    rank: int | None
    local: int | None
    time: Stamp | None
    after: Stamp | None
    comms: list[Comm] = field(default_factory=list)
    current: dict[bytes, Comm] = field(default_factory=dict)  # by thread: the communicator that it sets up
    edges: Counter[str] = field(default_factory=Counter)  # channels by the way they take
    peers: dict[str, tuple[int, int]] = field(default_factory=dict)  # one example of each
    lines: dict[str, int] = field(default_factory=dict)  # where something was told first
    variables: dict[str, str] = field(default_factory=dict)
    interface: str | None = None
    address: str | None = None
    network: str | None = None
    cards: tuple[str, ...] | None = None
    socket: str | None = None
    gdr: bool | None = None  # GPUDirect is offered for a card, whatever the way to it
    near: bool = False  # some card is near enough to the GPU for GPUDirect
    far: set[bytes] = field(default_factory=set)  # cards that are not
    nvls: bool | None = None
    read: bool = False  # some edge is read by the receiver: NVLink
    connecting: bool = False  # edges were told, and nothing yet of their being connected

    def reach(self, card: bytes, *, near: bool) -> bool:
        """Keep whether ``card`` is near enough to the GPU for GPUDirect; returns ``near``."""
        self.near = self.near or near
        if not near and len(self.far) < MOST_CARDS:
            self.far.add(card)
        return near

    def offers_gdr(self) -> bool | None:
        """Whether GPUDirect is offered and some card is near enough for it; None where nothing tells."""
        if not self.near and self.far and len(self.far) >= len(self.cards or ()):
            return False
        return True if self.gdr is None and self.near else self.gdr

    def note(self, name: str, line: int) -> None:
        self.lines.setdefault(name, line)

    def comm(self, thread: bytes, line: int) -> Comm:
        """The communicator that ``thread`` is setting up."""
        known = self.current.get(thread)
        if known is None:
            known = self.current[thread] = Comm()
            if len(self.comms) < MOST_COMMS:
                self.comms.append(known)
        known.line = line
        return known

    def by_pointer(self, pointer: bytes, thread: bytes) -> Comm | None:
        """The communicator of that address that is not complete yet, or the one that ``thread`` began without naming it."""
        for known in reversed(self.comms):
            if known.pointer == pointer and known.stage < COMPLETE:
                return known
        current = self.current.get(thread)
        return current if current is not None and not current.pointer else None

    def main(self) -> Comm:
        """The greatest communicator, the first of several."""
        return max(self.comms, key=lambda comm: comm.size or 0) if self.comms else Comm()

    def fields(self) -> dict[str, Any]:
        """The fields of the fact ``nccl.setup``."""
        main = self.main()
        open_ = next((comm for comm in self.comms if comm.stage < COMPLETE and (comm.started or comm.stage > NETWORK)), None)
        behind = open_ if open_ is not None else main
        return {
            "pid": self.pid, "of_pid": self.pid, "local": self.local if self.local is not None else main.local, "gpu": main.gpu if main.gpu is not None else self.device,
            "bus_id": main.bus, "of_rank": main.rank, "world_size": main.size, "comm": main.id or None, "nodes": main.nodes, "local_ranks": main.local_ranks,
            "channels": main.channels, "stage": STAGES[behind.stage] if self.comms else "",
            "open_rank": open_.rank if open_ is not None else None, "open_size": open_.size if open_ is not None else None,
            "open_comm": (open_.id or None) if open_ is not None else None, "open_line": open_.line if open_ is not None else None,
            "begun": any(comm.started or comm.stage > NETWORK for comm in self.comms) or "network" in self.lines, "starts": any(comm.started for comm in self.comms),
            "communicators": len(self.comms), "seconds": main.seconds, "timings": main.timings or None, "interface": self.interface, "address": self.address,
            "network": self.network, "cards": self.cards, "socket": self.socket, "gdr": self.offers_gdr(), "nvls": self.nvls, "nvlink_read": self.read or None,
            "connecting": self.connecting, "edges": dict(self.edges), "variables": dict(self.variables), "lines": dict(self.lines),
        }  # fmt: skip
