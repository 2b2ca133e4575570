"""The progress bar of reading: bytes and rate, on stderr, for people who wait."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 2.0  # seconds of silence before the bar appears: most logs are read in less


class ByteBar:
    """Shows how many bytes have been read. Silent where stderr is no terminal; rich is imported only once the bar is shown."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._mute = not sys.stderr.isatty()
        self._total: int | None = None
        self._done = 0
        self._begun = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def start(self, total_bytes: int | None) -> None:
        """``total_bytes`` is None where it is not known (stdin)."""
        self._total, self._done, self._begun = total_bytes, 0, time.monotonic()

    def advance(self, amount: int) -> None:
        """``amount`` further bytes have been read."""
        self._done += amount
        if self._mute:
            return
        if self._bar is None:
            if time.monotonic() - self._begun < self._patience:
                return
            self._show()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def stop(self) -> None:
        """Take the bar away; harmless where none is shown."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        columns = (TextColumn("reading"), BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("reading", total=self._total)
        self._bar.start()
