"""The wordings of NCCL's INFO lines, each with what it tells of its process. The readers are found by the first five bytes of a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from memdoctor.sources.logs.nccl_process import BOOTSTRAP, COMPLETE, CONNECT, FINISH, GRAPH, MOST_VARIABLES, TOPOLOGY, TREES, Comm, Process

# "host:pid:thread [device] NCCL INFO "; the device is that of the thread, not always the process's own.
HEADER = re.compile(rb"([^\s:\[\]()|]{1,255}):(\d{1,9}):(\d{1,9}) \[(-?\d{1,4})\] NCCL INFO ")

_COMM = re.compile(
    rb"comm (0x[0-9a-f]+|\(nil\)) rank (\d{1,7}) nranks (\d{1,7}) cudaDev (\d{1,4})(?: nvmlDev (\d{1,4}))?(?: busId ([0-9a-f]+))?"
    rb"(?:.{0,160}? commId (0x[0-9a-f]+))?.{0,160}?- ?Init (START|COMPLETE)"
)
_PLACE = re.compile(rb"comm (0x[0-9a-f]+) rank (\d{1,7}) nRanks (\d{1,7}) nNodes (\d{1,6}) localRanks (\d{1,4}) localRank (\d{1,4})")
_EDGE = re.compile(
    rb"\d{1,4}(?:/(\d{1,4}))? : (\d{1,7})(?:\[\w+\])? -> (\d{1,7})(?:\[\w+\])?(?: \[(send|receive)\])? via (P2P/|SHM/|NET/|direct shared memory)(.{0,80})"
)
_TREES = re.compile(rb"Trees \[0\] -?\d+(?:/-?\d+)*->(\d{1,7})->")
_CHANNELS = re.compile(rb"(\d{1,4}) coll channels, ")
_RINGS = re.compile(rb"use ring PXN \d GDR (\d)")
_NAMED = re.compile(rb"Using network (.{1,40})")
_ASSIGNED = re.compile(rb"Assigned NET plugin (.{1,40}?) to comm")
_BOOTSTRAP = re.compile(rb"Bootstrap ?: Using (?:\[\d+\])?([\w.@-]+):(\S+?)<\d+>")
_SOCKET = re.compile(rb"NET/Socket : Using (?:\[\d+\])?([\w.@-]+):(\S+?)<\d+>")
_CARD = re.compile(rb"\[\d+\](?:\{\S+?\} ?)?([\w.+-]+):\d+/(\w+)")
_GDR = re.compile(rb"GPU Direct RDMA (Enabled|Disabled) for (?:GPU \S+ / )?HCA \d+ '")
_DISTANCE = re.compile(rb"GPU Direct RDMA (Enabled|Disabled) for GPU \S+ / HCA (\S+) \(distance ")
_VARIABLE = re.compile(rb"(NCCL_\w{1,60}) set by environment to (.{1,200}?)\.?\s*$")
_TIMINGS = re.compile(rb"rank (\d+) nranks (\d+) total ([\d.]+) \((.{1,200}?)\)")
_PART = re.compile(rb"(\w+) ([\d.]+)")

Reader = Callable[[Process, bytes, bytes, int], None]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip()


def _comm(process: Process, thread: bytes, message: bytes, line: int) -> None:
    found = _COMM.search(message)
    if found is None:
        return
    pointer, rank, size, gpu, _, bus, id_, word = found.groups()
    if word == b"START":
        known = Comm(pointer, started=True, stage=BOOTSTRAP)
        waiting = process.current.get(thread)
        if waiting is not None and not waiting.started and waiting.stage < BOOTSTRAP:
            process.comms = [comm for comm in process.comms if comm is not waiting]  # what chose the network was this one
        process.current[thread] = known
        if len(process.comms) < 64:
            process.comms.append(known)
    else:
        known = process.by_pointer(pointer, thread) or process.comm(thread, line)
        known.stage, known.pointer = COMPLETE, pointer
        if process.current.get(thread) is known:
            del process.current[thread]
        process.note("complete", line)
    known.rank, known.size, known.gpu, known.line = int(rank), int(size), int(gpu), line
    known.bus = bus.decode() if bus is not None else known.bus
    known.id = id_.decode() if id_ is not None else known.id
    process.note("comm", line)


def _place(process: Process, thread: bytes, message: bytes, line: int) -> None:
    found = _PLACE.search(message)
    if found is None:
        _comm(process, thread, message, line)
        return
    pointer, rank, size, nodes, local_ranks, local = found.groups()
    known = process.by_pointer(pointer, thread) or process.comm(thread, line)
    known.pointer, known.rank, known.size, known.line = pointer, int(rank), int(size), line
    known.nodes, known.local_ranks, known.local = int(nodes), int(local_ranks), int(local)
    known.stage = max(known.stage, GRAPH) if known.stage < COMPLETE else known.stage
    process.note("nodes", line)


def _edge(process: Process, thread: bytes, message: bytes, line: int) -> None:
    found = _EDGE.search(message)
    if found is None:
        return
    connection, source, target, way, transport, rest = found.groups()
    if transport == b"NET/":
        name = rest.split(b"/", 1)[0].strip()
        kind = "socket" if name == b"Socket" else "net"
        if kind == "net":
            process.edges["net_gdr" if b"GDRDMA" in rest else "net_host"] += 1
            process.note("net_gdr" if b"GDRDMA" in rest else "net_host", line)
        process.network = process.network or _text(name)
    elif transport == b"P2P/":
        kind = "p2p"
        process.read = process.read or b"/read" in rest
    else:
        kind = "shm"
    process.edges[kind] += 1
    if kind not in process.lines:
        process.lines[kind] = line
        process.peers[kind] = (int(source), int(target))
    comm = process.current.get(thread)
    if comm is None:
        # Since NCCL 2.22 the first collective makes the connections; 1 is for sends and receives, which nothing is told of afterwards.
        process.connecting = process.connecting or (connection in (None, b"0") and "complete" in process.lines)
    elif comm.stage < COMPLETE:
        comm.stage, comm.line = max(comm.stage, CONNECT), line
        if comm.rank is None:
            comm.rank = int(target if way == b"receive" else source)


def _connected(process: Process, thread: bytes, message: bytes, line: int) -> None:
    process.connecting = False
    if process.gdr is None and process.edges.get("net"):
        rings = _RINGS.search(message)
        process.gdr = rings[1] == b"1" if rings is not None else None
    comm = process.current.get(thread)
    if comm is not None and comm.stage < COMPLETE:
        comm.stage, comm.line = max(comm.stage, TREES if b"rings" in message else FINISH), line


def _trees(process: Process, thread: bytes, message: bytes, line: int) -> None:
    comm = process.comm(thread, line)
    comm.stage = max(comm.stage, CONNECT)
    if comm.rank is None:
        found = _TREES.match(message)
        comm.rank = int(found[1]) if found is not None else None


def _digits(process: Process, thread: bytes, message: bytes, line: int) -> None:
    """How many channels a communicator has."""
    found = _CHANNELS.match(message)
    if found is not None:
        comm = process.comm(thread, line)
        comm.channels, comm.stage = int(found[1]), max(comm.stage, FINISH)
        process.note("channels", line)


def _nvls(process: Process, thread: bytes, message: bytes, line: int) -> None:
    if b"multicast support is " in message:
        process.nvls = b"is available" in message
        process.note("nvls", line)
        comm = process.current.get(thread)
        if comm is not None:
            comm.stage, comm.line = max(comm.stage, TOPOLOGY), line


def _network(process: Process, thread: bytes, message: bytes, line: int) -> None:
    found = _NAMED.match(message) or _ASSIGNED.match(message)
    if found is not None:
        process.network = _text(found[1])
        process.note("network", line)
        process.comm(thread, line)


def _bootstrap(process: Process, _thread: bytes, message: bytes, line: int) -> None:
    found = _BOOTSTRAP.match(message)
    if found is not None:
        process.interface, process.address = _text(found[1]), _text(found[2])
        process.note("bootstrap", line)


def _net(process: Process, thread: bytes, message: bytes, line: int) -> None:
    if message.startswith(b"NET/Socket"):
        found = _SOCKET.match(message)
        if found is not None:
            process.socket = _text(found[1])
            process.note("socket_interface", line)
    elif message.startswith(b"NET/IB : No device"):
        process.cards = ()
        process.note("no_cards", line)
    elif message.startswith(b"NET/IB : Using"):
        process.cards = tuple(f"{_text(name)}/{_text(layer)}" for name, layer in _CARD.findall(message))
        process.note("cards", line)
    else:
        found = _GDR.search(message)
        if found is not None:
            process.gdr = found[1] == b"Enabled" or bool(process.gdr)
            process.note("gdr", line)


def _distance(process: Process, _thread: bytes, message: bytes, line: int) -> None:
    """Whether a card is near enough to the GPU: NCCL 2.10 - 2.28 say so of each pair."""
    found = _DISTANCE.match(message)
    if found is not None and not process.reach(found[2], near=found[1] == b"Enabled"):
        process.note("gdr_far", line)


def _variable(process: Process, _thread: bytes, message: bytes, line: int) -> None:
    found = _VARIABLE.match(message)
    if found is not None and len(process.variables) < MOST_VARIABLES:
        name = _text(found[1])
        process.variables.setdefault(name, _text(found[2]))
        process.note(name, line)


def _timings(process: Process, _thread: bytes, message: bytes, line: int) -> None:
    found = _TIMINGS.search(message)
    if found is None:
        return
    size, total = int(found[2]), float(found[3])
    comm = next((comm for comm in reversed(process.comms) if comm.size == size and comm.seconds is None), None)
    if comm is not None:
        comm.seconds = total
        parts = {_text(name): float(value) for name, value in _PART.findall(found[4])}
        comm.timings = parts
        process.note("timings", line)


_READERS: Mapping[bytes, Reader] = {
    b"comm ": _place, b"ncclC": _comm, b"[Rank": _comm, b"Chann": _edge, b"Ring ": _edge, b"Conne": _connected, b"Trees": _trees, b"NVLS ": _nvls,
    b"Using": _network, b"Assig": _network, b"Boots": _bootstrap, b"NCCL_": _variable, b"Init ": _timings,
    b"GPU D": _distance,
}  # fmt: skip


def reader(message: bytes) -> Reader | None:
    """Who reads ``message``; None where it tells nothing that is asked for."""
    known = _READERS.get(message[:5])
    if known is None and message[:1].isdigit():
        return _digits
    return _net if known is None and message.startswith(b"NET/") else known
