"""Feeds arbitrary bytes to the reader and the scan, guided by coverage (atheris). Nothing but a clean end is right.

atheris is no dependency of memdoctor. How to run, from the top of the checkout:

    python -m venv /tmp/fuzz && /tmp/fuzz/bin/pip install atheris -e .
    mkdir -p /tmp/fuzz/reader
    /tmp/fuzz/bin/python scripts/fuzz_reader.py /tmp/fuzz/reader fixtures -max_total_time=600 -max_len=16384 -rss_limit_mb=2048 -timeout=20

Inputs that are worth keeping go to the first folder; further folders are seeds. An input that breaks something is written to the
working folder as ``crash-…`` (``timeout-…``, ``oom-…``); give its path in place of the folders to see it break again.
"""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found,unused-ignore]

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))

with atheris.instrument_imports(include=["memdoctor"]):
    from memdoctor.engine.load import load
    from memdoctor.resources import rules_dir
    from memdoctor.sources.logs import scan as scanning
    from memdoctor.sources.logs.index import SignalIndex
    from memdoctor.sources.logs.inputs import LogFile
    from memdoctor.sources.logs.kinds import LOOK, foreign
    from memdoctor.sources.logs.plain import PlainLogs
    from memdoctor.sources.logs.reading import Reader
    from memdoctor.sources.logs.sampling import Gates, Sampling
    from memdoctor.sources.logs.scan import FileScan
    from memdoctor.sources.logs.step_batches import Known, StepReader
    from memdoctor.sources.logs.steps import Series, read_step
    from memdoctor.sources.logs.store import Store

LOGS = 10_000
CUT = b"\xfe\xff\n"
FOLDER = Path(tempfile.mkdtemp(prefix="memdoctor-fuzz-"))
SIGNALS = load([rules_dir()]).signals
INDEX = SignalIndex(SIGNALS)
STEPS = (
    " [2026-03-01 10:00:01.250] iteration        7/ 5000 | elapsed time per iteration (ms): 5200.5 | lm loss: 2.5E+00 | loss scale: 1.0 |",
    "[2026-03-01 10:00:01,250] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1.2e-05], mom=[(0.9, 0.95)]",
)


class Bytes:
    """A raw stream over ``data`` that never gives more than ``most`` bytes at once."""

    def __init__(self, data: bytes, most: int) -> None:
        self._rest, self._most = memoryview(data), most

    def readinto(self, view: memoryview, /) -> int:
        got = min(len(view), len(self._rest), self._most)
        view[:got], self._rest = self._rest[:got], self._rest[got:]
        return got

    def close(self) -> None:
        self._rest = memoryview(b"")


def one_input(data: bytes) -> None:
    """Read ``data`` as a log, scan it, and build every fact."""
    file, store = LogFile("fuzz.log"), Store()
    reader = Reader(file, raw=Bytes(data, 1 + len(data) % 4_099))
    scan = FileScan(file, 0, INDEX, store)
    scan.run(reader)
    facts = list(store)
    assert reader.bytes_read <= len(data)
    assert all(fact.origin.line is not None and 1 <= fact.origin.line <= max(1, reader.lines) for fact in facts)


class LeavingOut(Sampling):
    """Leaves out of a log what plain logs are not looked through for."""

    def __init__(self, gates: Gates, logs: int, *, brief: bool = False) -> None:
        super().__init__(gates, logs, brief=brief)
        if brief:
            self._out, self.most = gates.out, math.inf


def learn(known: Known) -> None:
    """Let ``known`` know the forms of ``STEPS``."""
    reader = StepReader(Series(""), 0, known)
    for line in STEPS:
        found = read_step(line.encode())
        assert found is not None
        reader.learn(found[0], line.encode())


def some_of_many(data: bytes) -> None:
    """Read the parts of ``data`` as small logs of a big job, at one stroke, and each by itself: both must tell the same."""
    known, some = Known(), []
    learn(known)
    for number, part in enumerate(data.split(CUT, 3), 1):
        if foreign(part[:LOOK]) is not None:
            continue  # no log: it is sorted out before anything is read
        path = FOLDER / f"worker-{number}.log"
        path.write_bytes(part)
        some.append((number, LogFile(str(path), rank=number)))
    for (number, file), read in zip(some, PlainLogs(INDEX, known, LOGS).read(some)[0], strict=True):
        store = Store()
        scan, reader = FileScan(file, number, INDEX, store, LOGS, known, brief=True), Reader(file)
        scan.run(reader)
        if read is not None:
            found, told = read
            assert (found.bytes, found.lines, told.ends_mid_line) == (reader.bytes_read, reader.lines, reader.ends_mid_line)
            assert reader.skip is None
            assert not list(store)
            assert numbers(told.series) == numbers(scan.series)


def numbers(series: Series) -> list[tuple[str, str]]:
    """All rows of all shapes, as text: a NaN is like any other."""
    return [
        (name, repr([list(table.line), list(table.epoch), *(list(table.column(column)) for column in sorted(table.spoken))]))
        for name, table in series
    ]


def either(data: bytes) -> None:
    (some_of_many if CUT in data else one_input)(data)


def words() -> str:
    """The texts that signals look for, as a dictionary of libFuzzer."""
    texts = sorted({text for signal in SIGNALS for text in (*signal.gates, *signal.has)})
    texts += [*(line.split("|")[0] for line in STEPS), *STEPS]
    cut = "".join(f"\\x{byte:02x}" for byte in CUT)
    return f'"{cut}"\n' + "".join('"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"\n' for text in texts)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(SystemExit):
        dictionary = Path(folder, "words")
        dictionary.write_text(words())
        scanning.Sampling = LeavingOut  # type: ignore[misc]
        atheris.Setup([*sys.argv, f"-dict={dictionary}"], either)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
