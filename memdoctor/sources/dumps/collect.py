"""Reading dumps: paths in, one ``RankDump`` a rank out. The door of this package."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from memdoctor.model import InputFile, RankDump, Skip
from memdoctor.records import record
from memdoctor.sources.dumps.groups import Ranks
from memdoctor.sources.dumps.names import rank_in
from memdoctor.sources.dumps.recorder import rank_dump
from memdoctor.sources.dumps.unpacking import MOST_BYTES, NotADump, no_collector, unpack
from memdoctor.units import format_duration, format_size

STALE = 3_600.0  # seconds: the ranks of one job write their dumps within minutes


@record
class Dumps:
    """What was read: the dumps of one moment of one job, by rank; every file read; and what was left out, with the reason."""

    ranks: tuple[RankDump, ...]
    inputs: tuple[InputFile, ...]
    skips: tuple[Skip, ...]


def read_dumps(paths: Sequence[str], on_bytes: Callable[[int], None] | None = None) -> Dumps:
    """Read the dumps at ``paths``. One that cannot be read is a Skip; where a rank has several, the newest moment counts."""
    with no_collector():
        return _read(paths, on_bytes)


def _read(paths: Sequence[str], on_bytes: Callable[[int], None] | None) -> Dumps:
    known: Ranks = {}
    found: list[RankDump] = []
    inputs: list[InputFile] = []
    skips: list[Skip] = []
    for path in paths:
        shown = path if path.isprintable() else ascii(path)[1:-1]
        try:
            data, written = _load(path)
            if on_bytes is not None:
                on_bytes(len(data))
            dump = rank_dump(unpack(data), shown, rank_in(path), len(data), known)
        except NotADump as error:
            skips.append(Skip(shown, str(error)))
            continue
        except OSError as error:
            skips.append(Skip(shown, f"cannot be read: {error.strerror or error}"))
            continue
        found.append(replace(dump, written=written))
        inputs.append(InputFile(shown, len(data), 0))
    kept, left = _one_moment(found)
    return Dumps(tuple(sorted(kept, key=lambda dump: dump.rank)), tuple(inputs), (*skips, *left))


def _load(path: str) -> tuple[bytes, float]:
    with open(path, "rb") as stream:
        info = os.fstat(stream.fileno())
        if info.st_size > MOST_BYTES:
            raise NotADump(f"{format_size(info.st_size)}: far larger than a flight recorder's dump")
        data = stream.read(MOST_BYTES)
    return (_expanded(data) if data[:2] == b"\x1f\x8b" else data), info.st_mtime


def _expanded(data: bytes) -> bytes:
    codec = zlib.decompressobj(31)  # 31: a gzip header is expected
    try:
        result = codec.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise NotADump(f"the gzip archive is damaged: {error}") from error
    if not codec.eof:
        raise NotADump("the gzip archive is cut off" if not codec.unconsumed_tail else "the gzip archive holds far more than a dump")
    return result


def _one_moment(found: Sequence[RankDump]) -> tuple[list[RankDump], list[Skip]]:
    """The dumps that belong together: of each rank the newest, and none that was left over from a run long before."""
    best: dict[int, RankDump] = {}
    skips: list[Skip] = []
    for dump in found:
        other = best.get(dump.rank)
        if other is None:
            best[dump.rank] = dump
            continue
        newer, older = sorted((other, dump), key=_worth, reverse=True)
        best[dump.rank] = newer
        skips.append(Skip(older.path, f"another dump of rank {dump.rank}; {newer.path} was taken"))
    newest = max((dump.newest for dump in best.values() if dump.newest is not None), default=None)
    written = max((dump.written for dump in best.values() if dump.written is not None), default=None)
    for rank, dump in list(best.items()):
        # Copying a folder changes the times of files, so both clocks must say that it is old.
        if dump.newest is None or newest is None or dump.written is None or written is None:
            continue
        age = newest - dump.newest
        longest = max((call.limit or 0.0 for call in dump.calls), default=0.0)
        if age > STALE + longest and written - dump.written > STALE + longest:
            del best[rank]
            skips.append(Skip(dump.path, f"{format_duration(age)} older than the newest dump: left over from an earlier run"))
    return list(best.values()), skips


def _worth(dump: RankDump) -> tuple[float, int, int]:
    """Sorts dumps of one rank: the later moment, then the one with stacks."""
    return (dump.newest or 0.0, sum(bool(call.frame) for call in dump.calls), dump.entries)
