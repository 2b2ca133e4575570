"""What memdoctor costs, beside what it is measured against: ``python -m tests.bench`` prints one table, some ten minutes later.

``--short`` does the same with small logs in some seconds and judges nothing: it shows that the benchmark itself works.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.bench.children import MEMDOCTOR, PYTHON, Usage, environment, run
from tests.bench.inputs import SHORT, SMALL_FILE, SMALL_LOG, Inputs, Sizes
from tests.bench.table import Limit, Measure, Row, peak, ratio, show

ROUNDS = 5
IMPORTS = "import click, rich.console, regex, yaml"
TRIES_OF_SMALL = 5  # times as many rounds for what takes a fraction of a second


def main() -> int:
    """0; 1 where a figure is above what is required of it (never with ``--short``)."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="What memdoctor costs, beside what it is measured against.")
    parser.add_argument("--short", action="store_true", help="small logs, nothing is judged")
    parser.add_argument("--rounds", type=int, default=None, help=f"runs of each, in turns (default: {ROUNDS}, with --short 1)")
    parser.add_argument("--rg", default=shutil.which("rg"), help="ripgrep (default: the one in PATH)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the measures whose name holds TEXT")
    parser.add_argument("--folder", type=Path, help="where the logs are made and kept (default: a temporary folder)")
    given = parser.parse_args()
    sizes = SHORT if given.short else Sizes()
    with tempfile.TemporaryDirectory(prefix="memdoctor-bench-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(Inputs(folder, sizes), Path(temporary), given.rg, given.rounds or (1 if given.short else ROUNDS))
        bench.prepare()
        print(bench.about())
        rows = show(measure.take() for measure in bench.measures() if given.only in measure.name)
    return int(not sizes.short and any(row.missed for row in rows))


class Bench:
    """The measures of one run of the benchmark: ``prepare`` comes before them. ``work`` is for what is thrown away after it, ``rg`` None
    where there is none."""

    def __init__(self, inputs: Inputs, work: Path, rg: str | None, rounds: int) -> None:
        self._inputs, self._rg, self._rounds = inputs, rg, rounds
        self._environment = environment(work / "cache")
        self._patterns = work / "patterns.txt"
        self._count = 0

    def prepare(self) -> None:
        """Make the patterns; and what is compiled and kept once, which is no part of any figure."""
        self._count = int(self._run(PYTHON, "-m", "tests.bench.patterns", str(self._patterns)).output)
        for _ in range(2):
            self._memdoctor(self._inputs.log(self._inputs.sizes.cut))

    def about(self) -> str:
        rg = "none" if self._rg is None else self._run(self._rg, "--version").output.split("\n")[0]
        return (
            f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, {rg}. Times are processor time (user and system) "
            f"of a process and its children; in turns, {self._rounds} rounds, medians.\n"
        )

    def measures(self) -> Iterator[Measure]:
        """What is measured, in the order of the table."""
        inputs, sizes = self._inputs, self._inputs.sizes
        yield self._against_rg()
        yield self._peak(sizes.big, Limit(128, 64))
        yield self._peak(sizes.huge, Limit(220, 100))
        yield self._ratio(
            "1,000 signals against 300", Limit(1.3, 1.05), ("1,000", "300"),
            (lambda: self._some_signals(1_000), lambda: self._some_signals(300)),
        )  # fmt: skip
        yield self._ratio(
            f"a log of {_bytes(SMALL_LOG)} against the imports of its libraries", Limit(2.0, 1.3), ("memdoctor", "imports"),
            (lambda: self._memdoctor(inputs.log(SMALL_LOG)), lambda: self._run(PYTHON, "-c", IMPORTS)),
            self._rounds * TRIES_OF_SMALL,
        )  # fmt: skip
        yield self._ratio(
            f"two workers on two files of {_bytes(sizes.big // 2)} against one", Limit(1.2, 1.05), ("two", "one"),
            (lambda: self._memdoctor(*inputs.halves(), workers=2), lambda: self._memdoctor(*inputs.halves())),
        )  # fmt: skip
        for name, packed in ((".gz", inputs.gz), (".zst", inputs.zst)):
            yield self._ratio(f"{name} against plain", Limit(2.0, 1.6), (name, "plain"), (partial(self._packed, packed), self._plain))
        yield self._ratio(
            f"{sizes.cut // SMALL_FILE:,} files of {_bytes(SMALL_FILE)} against one of {_bytes(sizes.cut)}", Limit(3, 2), ("many", "one"),
            (lambda: self._memdoctor(inputs.files()), lambda: self._memdoctor(inputs.log(sizes.cut))),
        )  # fmt: skip

    def _against_rg(self) -> Measure:
        big = self._inputs.sizes.big
        name = f"`logs` on {_bytes(big)} against `rg --no-unicode -a -j1 -c -f PATTERNS` ({self._count:,} patterns)"
        limit = Limit(2.0, 1.3)
        rg = self._rg
        if rg is None:
            return Measure(name, limit, lambda: Row(name, limit, None, "ripgrep is not installed"))
        command = (rg, "--no-config", "--no-unicode", "-a", "-j1", "-c", "-f", str(self._patterns))
        return self._ratio(name, limit, ("memdoctor", "rg"), (self._plain, lambda: self._run(*command, str(self._inputs.log(big)))))

    def _peak(self, size: int, limit: Limit) -> Measure:
        name = f"peak memory at {_bytes(size)}"
        return Measure(name, limit, lambda: peak(name, limit, lambda: self._memdoctor(self._inputs.log(size))))

    def _ratio(
        self,
        name: str,
        limit: Limit,
        names: tuple[str, str],
        runs: tuple[Callable[[], Usage], Callable[[], Usage]],
        rounds: int | None = None,
    ) -> Measure:
        return Measure(name, limit, lambda: ratio(name, limit, names, runs, rounds or self._rounds))

    def _memdoctor(self, *logs: Path, workers: int = 1) -> Usage:
        several = ("--workers", str(workers)) if workers > 1 else ()
        return run((*MEMDOCTOR, "logs", *several, *map(str, logs)), self._environment, codes=(0, 1))  # 1: it found something

    def _plain(self) -> Usage:
        return self._memdoctor(self._inputs.log(self._inputs.sizes.big))

    def _packed(self, made: Callable[[], Path]) -> Usage:
        return self._memdoctor(made())

    def _some_signals(self, count: int) -> Usage:
        used = self._run(PYTHON, "-m", "tests.bench.some_signals", str(self._inputs.log(self._inputs.sizes.big)), str(count))
        return replace(used, seconds=float(used.output))

    def _run(self, *command: str) -> Usage:
        return run(command, self._environment)


def _bytes(size: int) -> str:
    """1 GB, 100 MB, 10 KB: decimal."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} B"


if __name__ == "__main__":
    sys.exit(main())
