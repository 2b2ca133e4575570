"""What NCCL's reliability service (RAS, since NCCL 2.24) says of the job: its text protocol, on the port that it listens on.

As src/ras/client.cc of NCCL does it: the client says its protocol, the server its own, then a command is answered and the connection closed.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Mapping

from memdoctor.records import record

DEFAULT = ("localhost", 28028)
VARIABLE = "NCCL_RAS_ADDR"
CONNECT = 2.0  # seconds; the service runs on this machine or not at all
LIMIT = 20.0  # seconds for the whole answer; it asks all processes of the job, and waits 5 s for those that are silent
LONGEST = 8_000_000
PROTOCOL = 2
_HELLO = re.compile(rb"SERVER PROTOCOL (\d+)")


@record
class Answer:
    """``text`` is the report; ``problem`` says why there is none, "" where simply nobody listens."""

    text: str = ""
    problem: str = ""
    address: str = ""


def ask(environ: Mapping[str, str] = os.environ, limit: float = LIMIT) -> Answer:
    """The verbose status of the job that the service of ``NCCL_RAS_ADDR`` (default localhost:28028) belongs to."""
    told = environ.get(VARIABLE, "").strip()
    place = _address(told) if told else DEFAULT
    if place is None:
        return Answer(problem=f"{VARIABLE}={told} is no host:port")
    shown = f"{place[0]}:{place[1]}"
    end = time.monotonic() + limit
    try:
        connection = socket.create_connection(place, CONNECT)
    except OSError as error:
        return Answer(problem=f"nobody listens at {shown} ({error.strerror or error})" if told else "", address=shown)
    with connection:
        try:
            return Answer(_talk(connection, end), "", shown)
        except (OSError, ValueError) as error:
            return Answer(problem=f"{shown} does not speak as NCCL RAS does: {error}", address=shown)


def _address(text: str) -> tuple[str, int] | None:
    host, _, port = text.rpartition(":")
    return (host.strip("[]") or DEFAULT[0], int(port)) if port.isdigit() and 0 < int(port) < 65_536 else None


def _talk(connection: socket.socket, end: float) -> str:
    """Raises OSError (also of a time-out) or ValueError."""
    connection.settimeout(max(0.1, min(CONNECT, end - time.monotonic())))
    connection.sendall(f"CLIENT PROTOCOL {PROTOCOL}\n".encode())
    hello = _line(connection)
    if _HELLO.match(hello) is None:
        raise ValueError("it does not name its protocol")
    connection.sendall(b"VERBOSE STATUS\n")
    parts: list[bytes] = []
    size = 0
    while size < LONGEST:
        left = end - time.monotonic()
        if left <= 0:
            break
        connection.settimeout(left)
        try:
            part = connection.recv(65_536)
        except TimeoutError:
            break  # what came so far counts
        if not part:
            break
        parts.append(part)
        size += len(part)
    text = b"".join(parts).decode("utf-8", "replace")
    if not text.strip():
        raise ValueError("it says nothing")
    return text


def _line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < 200:
        part = connection.recv(1)
        if not part:
            break
        line += part
    return line
