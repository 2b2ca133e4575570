"""The logs that are measured, made with one seed in one folder; what is there already is used again."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import zstandard

from tests.bench.generate import pieces

SMALL_FILE = 10_000
SMALL_LOG = 100_000


@dataclass(frozen=True)
class Sizes:
    """Bytes of the big log, of the huge one, and of the one that is also there in files of SMALL_FILE; ``short``: nothing is judged."""

    big: int = 1_000_000_000
    huge: int = 4_000_000_000
    cut: int = 100_000_000
    short: bool = False


SHORT = Sizes(big=4_000_000, huge=8_000_000, cut=2_000_000, short=True)


class Inputs:
    """Paths of the logs in ``folder``; each is made when it is first asked for."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self._folder, self.sizes = folder, sizes

    def log(self, size: int, seed: int = 1) -> Path:
        """One log of ``size`` bytes."""
        return self._made(f"log-{size}-{seed}.log", lambda path: _write(path, size, seed))

    def halves(self) -> list[Path]:
        """Two logs that are as big as the big one together."""
        return [self.log(self.sizes.big // 2, seed) for seed in (1, 2)]

    def gz(self) -> Path:
        return self._made(
            f"log-{self.sizes.big}.log.gz", lambda path: _copy(self.log(self.sizes.big), gzip.open(path, "wb", compresslevel=6))
        )

    def zst(self) -> Path:
        compress = zstandard.ZstdCompressor(level=3).stream_writer
        return self._made(f"log-{self.sizes.big}.log.zst", lambda path: _copy(self.log(self.sizes.big), compress(path.open("wb"))))

    def files(self) -> Path:
        """A folder with the lines of the log of ``cut`` bytes, in files of about SMALL_FILE bytes each."""
        return self._made(f"files-{self.sizes.cut}", lambda path: _cut(self.log(self.sizes.cut), path))

    def _made(self, name: str, make: Callable[[Path], None]) -> Path:
        path = self._folder / name
        if not path.exists():
            unfinished = self._folder / f"unfinished-{name}"
            make(unfinished)
            unfinished.rename(path)
        return path


def _write(path: Path, size: int, seed: int) -> None:
    with path.open("wb") as file:
        file.writelines(pieces(size, seed))


def _copy(source: Path, target: gzip.GzipFile | zstandard.ZstdCompressionWriter) -> None:
    with source.open("rb") as file, target:
        shutil.copyfileobj(file, target, 1 << 20)


def _cut(source: Path, folder: Path) -> None:
    """Cut at the ends of lines and of the redraws of a bar, each file as long as may be."""
    folder.mkdir()
    with source.open("rb") as file:
        number = 0
        while data := file.read(SMALL_FILE):
            end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1 or len(data)
            file.seek(end - len(data), os.SEEK_CUR)
            number += 1
            (folder / f"worker-{number:05d}.log").write_bytes(data[:end])
