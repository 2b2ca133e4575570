"""Reading logs: paths in, facts out. The door of this package."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from memdoctor.errors import InputError
from memdoctor.model import FileRead, InputFile, LogFacts, Signal, Skip
from memdoctor.sources.logs.index import SignalIndex
from memdoctor.sources.logs.inputs import sort_out
from memdoctor.sources.logs.reading import Reader
from memdoctor.sources.logs.scan import FileScan
from memdoctor.sources.logs.store import Store

NAMED = 5  # inputs named in an error that is about all of them


def read_logs(paths: Sequence[str], signals: Sequence[Signal], on_bytes: Callable[[int], None] | None = None) -> LogFacts:
    """Read files, folders, globs or "-" (stdin) and return what they tell; flight-recorder dumps among them are only named.

    Raises InputError when nothing could be read; what could not be read beside something readable is a Skip.
    """
    named = sort_out(paths)
    files, skips = named.logs, named.skips
    index, store = SignalIndex(signals), Store()
    inputs: list[InputFile] = []
    read: list[FileRead] = []
    unread: list[Skip] = []
    for number, file in enumerate(files):
        reader = Reader(file, on_bytes)
        scan = FileScan(file, number, index, store)
        scan.run(reader)
        if reader.skip is not None:
            unread.append(reader.skip)
            if reader.lines == 0:
                continue
        inputs.append(InputFile(file.path, reader.bytes_read, reader.lines))
        read.append(
            FileRead(
                path=file.path,
                number=number,
                rank=file.rank,
                attempt=file.attempt,
                first=scan.first,
                last=scan.last,
                epochs=scan.epochs,
                lines=reader.lines,
                truncated=reader.truncated,
                ends_mid_line=reader.ends_mid_line,
                age=None if reader.mtime is None else time.time() - reader.mtime,
                ranks=frozenset(scan.ranks),
                series=scan.series,
            )
        )
    if not inputs and not named.dumps:
        said = "; ".join(f"{skip.source}: {skip.reason}" for skip in [*skips, *unread][:NAMED])
        raise InputError(f"no log could be read: {said}" if said else "nothing to read: name a log file, a folder, or - for standard input")
    return LogFacts(tuple(store), tuple(inputs), (*skips, *unread), store.counts, tuple(read), tuple(named.dumps))
