"""What lets a line of NCCL through to nccl_setup.py. Apart from it, because every start needs the gates and few logs the readers."""

from __future__ import annotations

from memdoctor.sources.logs.matcher import Gate

# Lines that come once for each process or communicator.
GATES = tuple(map(Gate, (
    b"- Init START", b"- Init COMPLETE", b"NCCL INFO Using network ", b"Assigned NET plugin ", b"NET/IB : ", b"NET/Socket : Using", b" : GPU Direct RDMA ",
    b"NCCL INFO Bootstrap", b" set by environment to ", b"NCCL INFO Init timings",
)))  # fmt: skip
# Lines that come with every communicator or even every channel: of very many a part is read.
SAMPLED_GATES = tuple(map(Gate, (
    b" via P2P/", b" via SHM/", b" via NET/", b" via direct shared memory", b"NCCL INFO Trees [0]", b"NCCL INFO Connected ", b" coll channels, ",
    b" localRanks ", b"NVLS multicast support is ", b"NCCL INFO GPU Direct RDMA ",
)))  # fmt: skip
WEIGHT = 0.01  # of one such line, towards the number from which on a part is enough: 50,000, the set-up of several hundred ranks
