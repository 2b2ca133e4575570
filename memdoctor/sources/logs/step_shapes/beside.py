"""Lines that stand beside step lines: memory, throughput, timers, validation, profilers.

Each kind fills a table of its own. ``GATES`` are plain texts, one of which every such line holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes import profiles
from memdoctor.sources.logs.step_shapes.numbers import NAN, Step, number
from memdoctor.sources.logs.table import Table

MIB = 1024.0**2
GIB = 1024.0**3
_UNITS = {b"KB": 1024.0, b"MB": MIB, b"GB": GIB, b"TB": 1024.0**4}
LEAST_PERCENT = 5.0  # of a smaller share the one digit behind the point does not tell the whole
MOST_TIMERS = 32  # names of timers that get a table
MOST_ROWS = 400_000  # of one table; from there on every second, fourth, … row is kept

COLUMNS: Mapping[str, Mapping[str, str]] = {
    # Bytes, of one rank (NaN: none named) after an iteration (NaN: none named); ``host`` is what the machine uses, of ``whole``.
    "memory": {
        "rank": "f", "iteration": "d", "allocated": "d", "max_allocated": "d", "reserved": "d", "max_reserved": "d", "device": "d", "host": "d", "whole": "d",
    },
    # DeepSpeed's throughput line: samples per second of the job, bytes of rank 0.
    "throughput": {"iteration": "d", "rate": "f", "allocated": "d", "max_allocated": "d"},
    "validation": {"iteration": "d", "loss": "f"},
}  # fmt: skip
TIMER = {"low": "f", "high": "f"}  # ms, over ranks
TIMERS = frozenset(
    b"""batch-generator forward-backward optimizer fwd bwd bwd_inner bwd_allreduce step forward backward backward_inner backward_allreduce
    optimizer_step optimizer_swap_in_state optimizer_swap_out_state batch_input train_batch pipe_recv_input pipe_recv_grad pipe_send_output
    pipe_send_grad swap_in_gradient swap_out_gradient""".split()
)

_MEMORY = lazy(rb"\[Rank (\d+)\] \((?:after (\d+) iterations|[^)]*?iteration (\d+))?[^)]*\) memory \(MB\) \|(.*)")
_MEMORY_KEYS = {
    b"allocated": "allocated",
    b"max allocated": "max_allocated",
    b"reserved": "reserved",
    b"max reserved": "max_reserved",
    b"total device memory used": "device",
}
_USAGE = lazy(rb"\bMA ([\d.]+) GB\s+Max_MA ([\d.]+) GB\s+CA ([\d.]+) GB\s+Max_CA ([\d.]+) GB")
_HOST = lazy(rb"CPU Virtual Memory:\s+used = ([\d.]+) GB, percent = ([\d.]+)%")
_THROUGHPUT = lazy(
    rb"global_step=(\d+), RunningAvgSamplesPerSec=[\d.einfa+-]+, CurrSamplesPerSec=([\d.einfa+-]+)"
    rb"(?:, MemAllocated=([\d.]+)([KMGT]B), MaxMemAllocated=([\d.]+)([KMGT]B))?"
)
_TIMES = lazy(rb"time \(ms\) \| (.*)")
_TIMER = lazy(rb"(?:^|\s)([\w-]+) \.+: \(?([\d.]+)(?:, ([\d.]+)\))?")  # behind whatever label a launcher puts in front
_VALIDATION = lazy(rb"loss at iteration (\d+)[^|]*\| *(?:\w+ )?loss value: (\S+)")
_EVALUATED = lazy(rb"['\"]eval_loss['\"]: ['\"]?([-+\w.]+)")

GATES = (
    b"memory (MB)", b"Max_MA", b"CPU Virtual Memory", b"CurrSamplesPerSec", b"time (ms) | ", b"batch-generator ..", b"forward-backward ..",
    b"    optimizer ..", b"loss value: ", b"eval_loss", *profiles.GATES,
)  # fmt: skip


OF_A_RANK = (b"memory (MB)", b"Max_MA")  # gates of lines in which each rank speaks of itself


class Beside:
    """The tables of one file, made as their lines come. ``timers`` are by name, ``profiles`` what profilers summed up."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.timers: dict[str, Table] = {}
        self.profile_lines: dict[str, int] = {}
        self.profiles: dict[str, list[dict[str, float | str]]] = {}
        self._stride: dict[int, tuple[int, int]] = {}

    def read(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        """True where ``raw`` is such a line. ``rest`` gives the lines after it, as far as they are at hand."""
        for gate, reader in _READERS:
            if gate in raw:
                return reader(self, raw, line, epoch, rest)
        return False

    def _add(self, kind: str, line: int, epoch: float, row: Step) -> bool:
        table = self.tables.get(kind)
        if table is None:
            table = self.tables[kind] = Table(COLUMNS[kind])
        self._keep(table, line, epoch, row)
        return True

    def _keep(self, table: Table, line: int, epoch: float, row: Step) -> None:
        stride, seen = self._stride.get(id(table), (1, 0))
        if seen % stride == 0:
            table.add(line, epoch, row)
            if len(table) >= MOST_ROWS:
                table.halve()
                stride *= 2
        self._stride[id(table)] = (stride, seen + 1)

    def _memory(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        match = _MEMORY.search(raw)
        if match is None:
            return False
        row: Step = {"rank": float(match[1]), "iteration": number(match[2] or match[3] or b"")}
        for part in match[4].split(b"|"):
            key, _, value = part.partition(b":")
            column = _MEMORY_KEYS.get(key.strip())
            if column is not None:
                row[column] = number(value) * MIB
        return self._add("memory", line, epoch(raw), row)

    def _usage(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        match = _USAGE.search(raw)
        if match is None:
            return False
        allocated, most, reserved = (number(match[group]) * GIB for group in (1, 2, 3))  # Max_CA is rounded to whole GB
        return self._add("memory", line, NAN, {"allocated": allocated, "max_allocated": most, "reserved": reserved})

    def _host(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        match = _HOST.search(raw)
        if match is None:
            return False
        used, percent = number(match[1]) * GIB, number(match[2])
        return self._add("memory", line, NAN, {"host": used, "whole": 100 * used / percent if percent >= LEAST_PERCENT else NAN})

    def _throughput(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        match = _THROUGHPUT.search(raw)
        if match is None:
            return False
        row: Step = {"iteration": float(match[1]), "rate": number(match[2])}
        if match[3] is not None:
            row.update(allocated=number(match[3]) * _UNITS[match[4]], max_allocated=number(match[5]) * _UNITS[match[6]])
        return self._add("throughput", line, epoch(raw), row)

    def _times(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        match = _TIMES.search(raw)
        if match is None:
            return False
        for part in match[1].split(b"|"):
            name, _, value = part.partition(b":")
            if name.strip() in TIMERS:
                self._timer(name.strip(), line, number(value), number(value))
        return True

    def _megatron_timer(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        match = _TIMER.search(raw)
        if match is None or match[1] not in TIMERS:
            return False
        low = number(match[2])
        self._timer(match[1], line, low, number(match[3]) if match[3] is not None else low)
        return True

    def _timer(self, name: bytes, line: int, low: float, high: float) -> None:
        table = self.timers.get(name.decode())
        if table is None:
            if len(self.timers) >= MOST_TIMERS:
                return
            table = self.timers[name.decode()] = Table(TIMER)
        self._keep(table, line, NAN, {"low": low, "high": high})

    def _validation(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        match = _VALIDATION.search(raw)
        return match is not None and self._add("validation", line, epoch(raw), {"iteration": float(match[1]), "loss": number(match[2])})

    def _evaluated(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        match = _EVALUATED.search(raw)
        return match is not None and self._add("validation", line, NAN, {"loss": number(match[1])})

    def _profile(self, raw: bytes, line: int, epoch: Callable[[bytes], float], rest: Callable[[], bytes]) -> bool:
        found = profiles.read(raw, rest())
        if found is None:
            return False
        self.profiles[found[0]] = found[1]  # the latest one counts
        self.profile_lines[found[0]] = line
        return True


_Reader = Callable[[Beside, bytes, int, Callable[[bytes], float], Callable[[], bytes]], bool]
_READERS: tuple[tuple[bytes, _Reader], ...] = (
    (b" ..", Beside._megatron_timer),
    (b"time (ms) | ", Beside._times),
    (b"CurrSamplesPerSec", Beside._throughput),
    (b"memory (MB)", Beside._memory),
    (b"Max_MA", Beside._usage),
    (b"CPU Virtual Memory", Beside._host),
    (b"loss value: ", Beside._validation),
    (b"eval_loss", Beside._evaluated),
    *((gate, Beside._profile) for gate in profiles.GATES),
)
