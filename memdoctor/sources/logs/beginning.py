"""The first lines of a log, and what they teach: its prefixes, its first moment, the ranks that print them."""

from __future__ import annotations

from functools import cached_property

from memdoctor.model import Stamp
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.prefixes import Prefixes
from memdoctor.sources.logs.sampling import HEAD, MANY, head
from memdoctor.sources.logs.stamps import first_stamp

NAMELESS = 16  # times as many logs are worth as many lines, where no name tells the rank: their lines must
SAMPLE_BYTES = 65_536  # read of a log for it
LATER_BYTES = (
    16_384  # from the middle of the first chunk: a batch script that tells each command of its own talks for long before its job does
)


class Beginning:
    """How ``file``, one of ``logs``, begins. ``read`` comes first. ``ranks`` are those known so far, ``lines`` the first lines, ``first`` their first moment,
    ``machines`` those that their labels name.

    Of many logs whose names tell their ranks only those are learnt from whose prefixes somebody asks for: most hold nothing that needs them.
    """

    def __init__(self, file: LogFile, logs: int) -> None:
        self._file, self._logs = file, logs
        self._mtime: float | None = None
        self._head = self._later = b""
        self.first: Stamp | None = None
        self.ranks: set[int] = set() if file.rank is None else {file.rank}
        self.machines: set[str] = set()

    def read(self, data: bytes, mtime: float | None) -> None:
        """``data`` is the first chunk; ``mtime`` bounds the years of stamps that lack one (seconds since 1970)."""
        end, most = 0, min(len(data), SAMPLE_BYTES)
        for _ in range(head(self._logs) if self._alone else min(HEAD, head(max(1, self._logs // NAMELESS)))):
            end = data.find(b"\n", end, most) + 1
            if not end:
                end = most
                break
        self._head = data[:end]
        if self._logs <= MANY and end < len(data):
            middle = data.find(b"\n", max(end, len(data) // 2)) + 1
            self._later = data[middle : middle + LATER_BYTES] if middle else b""
        self._mtime = mtime
        self.first = first_stamp(self._head, self.year)
        if self._logs <= MANY or not self._alone:
            self.year()

    @property
    def _alone(self) -> bool:
        """True where the name tells that the log is that of one process."""
        return self._file.rank is not None or bool(self._file.group)

    @property
    def lines(self) -> list[str]:
        return [part.decode("utf-8", "replace") for part in self._head.removesuffix(b"\n").split(b"\n")]

    @cached_property
    def prefixes(self) -> Prefixes:
        """What the lines of the log begin with."""
        prefixes = Prefixes(file_rank=self._file.rank, file_host=self._file.host, year_hint=self._file.year, not_after=self._mtime)
        self.ranks |= prefixes.learn(self.lines, self._later.decode("utf-8", "replace").split("\n")[:-1])
        self.machines |= prefixes.machines
        self._later = b""
        return prefixes

    def year(self) -> int | None:
        """The year that the log is in, as far as is known."""
        return self.prefixes.year
