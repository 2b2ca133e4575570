"""A stand-in for the RAS of NCCL: a server on a free port that speaks its text protocol and answers with a recorded report."""

from __future__ import annotations

import socket
import threading
from types import TracebackType

HEAD = """\
NCCL version 2.27.5 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Gathering data about the RAS network (timeout 5s)... obtained a result in 0.004s
 Collected data about 8 unidirectional connections

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
"""
GOOD = HEAD + "    0         1         2         4         8         8   RUNNING      OK\n\nErrors\n======\n\nWarnings\n========\n\n"
BEHIND = (
    HEAD
    + """\
    0         1         2         4         8         8   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  6 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649
  Rank 2 -- GPU 2 managed by process 4751 on node 172.16.64.210
  Rank 5 -- GPU 1 managed by process 9931 on node 172.16.64.213

"""
)
SILENT = (
    HEAD
    + """\
    0         1         2       3-4         8         8   RUNNING  INCOMPLETE

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 4771 on node 172.16.64.210 managing GPU 3

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 3 -- GPU 3 managed by process 4771 on node 172.16.64.210

Warnings
========

"""
)


class Server:
    """Serves one connection after the other while it is open. ``mode``: "" as NCCL does; "mute" accepts and says nothing; "web" speaks HTTP."""

    def __init__(self, report: str = GOOD, mode: str = "") -> None:
        self.report, self.mode = report, mode
        self.asked: list[str] = []

    def __enter__(self) -> Server:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self._held:
            connection.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if self.mode == "mute":
                self._held.append(connection)
                continue
            with connection, connection.makefile("rw", newline="\n") as stream:
                self.asked.append(stream.readline().strip())
                if self.mode == "web":
                    stream.write("HTTP/1.1 400 Bad Request\r\n\r\n")
                    stream.flush()
                    continue
                stream.write("SERVER PROTOCOL 2\n")
                stream.flush()
                self.asked.append(stream.readline().strip())
                stream.write(self.report)
                stream.flush()
