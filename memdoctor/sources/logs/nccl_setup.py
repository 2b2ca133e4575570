"""What NCCL's INFO lines tell of each process: its communicators and how far their set-up came, its network, its channels.

A job prints hundreds of such lines for each rank. They are summed up by process while they are read, and one fact ``nccl.setup`` for each process
comes out at the end. The wordings are those of NCCL 2.4 to 2.30, as its source prints them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from memdoctor import catalog
from memdoctor.model import Fact, Origin
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.making import FactMaker
from memdoctor.sources.logs.nccl_lines import HEADER, reader
from memdoctor.sources.logs.nccl_process import Process
from memdoctor.sources.logs.place import Place
from memdoctor.sources.logs.store import Store

MOST = 20_000  # processes of one file


class NcclSetup:
    """Sums up the NCCL INFO lines of one file. ``take`` lines as they are read; ``close`` yields the facts."""

    def __init__(self, place: Place, maker: FactMaker, store: Store, file: LogFile) -> None:
        self._place, self._maker, self._store, self._file = place, maker, store, file
        self._processes: dict[tuple[bytes, bytes], Process] = {}

    def take(self, raw: bytes, line: int) -> None:
        """Read a segment that holds one of the gates; one that is no such line after all is left alone."""
        found = HEADER.search(raw)
        glued = 0
        while found is not None:
            end = found.end()
            after = HEADER.search(raw, end) if raw.find(b" NCCL INFO ", end) >= 0 else None  # lines of two processes may be glued
            message = raw[end:] if after is None else raw[end : after.start() + _glued(after[1])]
            host, read = found[1][glued:], reader(message)
            if read is not None:
                process = self._processes.get((host, found[2])) or self._meet(host, found[2], found[4], raw, line, found.start())
                if process is not None:
                    read(process, found[3], message, line)
            found, glued = after, 0 if after is None else _glued(after[1])

    def _meet(self, host: bytes, pid: bytes, device: bytes, raw: bytes, line: int, prefix: int) -> Process | None:
        """A process that has not been heard of in this attempt; ``prefix`` is how many bytes stand before what NCCL itself prints."""
        if len(self._processes) >= MOST:
            return None
        place = self._place
        text = raw.decode("utf-8", "replace")
        stripped = place.prefixes.strip(text) if prefix else Line(text, self._file.rank)
        known = self._processes[host, pid] = Process(
            host=host.decode("utf-8", "replace"), pid=int(pid), device=int(device), line=line, raw=text, attempt=self._maker.epoch,
            rank=None if stripped.rank == self._file.rank else stripped.rank, local=stripped.local_rank, time=stripped.time, after=place.stamp_before(stripped),
        )  # fmt: skip
        return known

    def close(self, whole: bool) -> None:
        """Make the facts. ``whole``: every line was read, not a part."""
        alone = Counter(process.attempt for process in self._processes.values())
        for process in self._processes.values():
            fields: dict[str, Any] = {**process.fields(), "whole": whole}
            rank = process.rank
            if alone[process.attempt] == 1:
                fields["file_rank"] = self._file.rank
            fact = Fact(
                kind="nccl.setup",
                fields=catalog.with_computed("nccl.setup", {key: value for key, value in fields.items() if value is not None}),
                origin=Origin("log", self._file.path, process.line, process.raw),
                rank=rank,
                host=process.host,
                time=process.time,
                attempt=process.attempt,
                seq=self._maker.seq(process.line, 0),
                event=f"nccl:{self._file.path}:{process.host}:{process.pid}",
                after=process.after,
            )
            self._store.offer(("nccl.setup", "", rank, process.attempt), (process.host, process.pid), partial(_same, fact))
        self._processes.clear()


def _glued(host: bytes) -> int:
    """How many bytes of ``host`` are the last word of the message before it, that lost its line end."""
    return next((len(word) for word in (b"COMPLETE", b"START") if host.startswith(word) and len(host) > len(word)), 0)


def _same(fact: Fact) -> Fact:
    return fact
