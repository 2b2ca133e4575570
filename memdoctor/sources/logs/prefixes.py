"""Takes the prefixes off a log line, outermost first, and keeps what they say.

The stream of a line is named by its tags alone: what a wrapper puts on every line of a process (torchrun's tee, ``srun -l``, Ray, mpirun,
pdsh, a pod, a journal). So a process's own prints and its traceback share a stream although only the traceback carries ``[rankN]: `` as
well; ``[rankN]: `` names it only where nothing outside it does. Headers (time, level, logger, also c10's ``[rank3]:[E1023 ...]``, DeepSpeed's
``[Rank 0]`` and the pid in torchrun's own lines) never do: the lines that follow a header without one of their own must stay with it.
NCCL prefixes each of its lines itself; where no wrapper names the process, its host and pid do.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence

from memdoctor.lazy import lazy
from memdoctor.sources.logs.clock import Clock
from memdoctor.sources.logs.learning import recognise
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.margins import hides, recognise_margin
from memdoctor.sources.logs.peeling import PLAIN, Found, Table, walk
from memdoctor.sources.logs.prefix_table import FAMILIES, NCCL, Family
from memdoctor.sources.logs.stamps import find_with_year, read_moment

_LEVELS = {
    **dict.fromkeys(("V", "D", "T", "TRACE", "CALL"), "DEBUG"),
    **dict.fromkeys(("I", "SUCCESS", "NOTICE", "VERSION"), "INFO"),
    **dict.fromkeys(("W", "WARN"), "WARNING"),
    **dict.fromkeys(("E", "EXCEPTION", "ABORT"), "ERROR"),
    **dict.fromkeys(("F", "C", "FATAL", "critical"), "CRITICAL"),
    "debug": "DEBUG",
    "info": "INFO",
    "warning": "WARNING",
    "error": "ERROR",
    "exception": "ERROR",
}
MARGINS = 4  # of one log
MEETINGS = 64  # lines of one log in which an unknown one is looked for
TRACEBACK = 6  # lines of one that are enough to see that each has a label
_TORCHRUN = ("torch/distributed/run.py", "torch.distributed.run", "torch.distributed.launcher")  # one of them per node
_DATED = lazy(r"\D?\d{4}-\d\d-\d\d[ T]")
_MEMORY = lazy(r"\[Rank (\d{1,7})\] \(.{1,80}?\) memory \(MB\)|rank=(\d{1,7}) time \(ms\)", re.A)


class Prefixes:
    """The prefixes of one log.

    ``file_rank`` and ``file_host`` are what the file's name says, for lines that do not say it; ``year_hint`` is the year of stamps that lack
    one (unless the sample tells), ``not_after`` an upper bound for them in epoch seconds, where there is no hint.
    """

    def __init__(
        self, file_rank: int | None = None, file_host: str | None = None, year_hint: int | None = None, not_after: float | None = None
    ) -> None:
        self._rank, self._host = file_rank, file_host
        self._clock = Clock(year_hint, not_after)
        self._hints = (year_hint, not_after)
        self._table = PLAIN
        self._tasks_are_nodes = False
        self.machines: set[str] = set()  # that labels of the first lines name
        self._taken: dict[str, Family] = {}
        self._margins: tuple[Family, ...] = ()
        self._sample: Sequence[str] = ()
        self._meetings = MEETINGS
        self.curious = True  # whether ``meet`` is to be told

    @property
    def year(self) -> int | None:
        """The year that the log is in, as far as is known."""
        return self._clock.year

    @property
    def dated(self) -> bool:
        """Whether the log itself told that year; else it is assumed, of the time at which the file was changed last."""
        return self._clock.dated

    def learn(self, sample: Sequence[str], later: Sequence[str] = ()) -> set[int]:
        """Decide from the first lines which ambiguous prefixes the log uses, and the year; returns the ranks that print them.

        ``later`` are lines from further on, which are asked where the first ones teach no prefix.
        """
        lines = [raw for raw in sample if raw.strip()]
        self._sample = lines
        walked, taught = self._recognise(lines)
        if not taught:
            labelled = [raw for raw in later if raw.strip()]
            if recognise(labelled, frozenset(), numbers=True) is not None and self._recognise(labelled, numbers=True)[1]:
                walked = self._walk([*lines, *labelled])
        nodes = self._tasks_are_nodes
        ranks = [self._rank_on(*line) for line in walked]
        if self._tasks_are_nodes != nodes:  # a tag inside srun's shows that srun's numbers are nodes
            ranks = [self._rank_on(*line) for line in walked]
        self.machines = {name for _, _, found in walked if found is not None for name in self._machine(found)}
        self._clock = self._set_clock(walked)
        for text in self._undated(walked):
            self._clock.read(text)
        return {rank for rank in ranks if rank is not None}

    def _arrange(self) -> None:
        # Learnt ones first: "[3] " must not be looked for after what it contains, and they are known to be right. Margins when nothing else is there.
        self._table = Table((*self._taken.values(), *FAMILIES, *self._margins))

    def meet(self, raw: str, near: Callable[[], Sequence[str]]) -> None:
        """``raw`` has a tag or a traceback behind its first character: learn what stands before it, where that is a margin. ``near``: the lines
        that follow. Asked only so often in a log: mostly it is one of the known prefixes."""
        self._meetings -= 1
        self.curious = self._meetings > 0
        rest = raw[self.end(raw) :]
        if not hides(rest) or len(self._margins) >= MARGINS:
            return
        lines = [rest, *(line[self.end(line) :] for line in near() if line.strip())]
        # The launcher, whose lines have no label, may have filled the sample: those of a traceback have one each.
        label = recognise(lines[:TRACEBACK], frozenset(self._taken), numbers=True)
        if label is not None:
            self._taken[label.name] = label
            self._arrange()
            return
        family = recognise_margin([line[self.end(line) :] for line in self._sample], lines)
        if family is not None:
            self._margins += (family,)
            self._arrange()

    def _recognise(self, lines: Sequence[str], *, numbers: bool = False) -> tuple[list[tuple[str, int, Found | None]], bool]:
        """Learn the ambiguous prefixes of ``lines``, and margins; and walk through these. True where there are ambiguous ones."""
        walked = self._walk(lines)
        taken = self._taken = {}
        self._margins = ()
        for _ in range(4):
            rests = [raw[end:] if found is None or not found.header else "" for raw, end, found in walked]
            family = recognise(rests, frozenset(taken), numbers=numbers)
            if family is not None:
                taken[family.name] = family
            elif len(self._margins) < MARGINS:
                family = recognise_margin([raw[end:] for raw, end, _ in walked])
                self._margins += () if family is None else (family,)
            if family is None:
                break
            self._arrange()
            walked = self._walk(lines)
        return walked, bool(taken)

    @staticmethod
    def _undated(walked: Sequence[tuple[str, int, Found | None]]) -> list[str]:
        """The stamps of a sample, of which the clock learns what those before them are of; of dated ones in a row the last is enough."""
        texts = [found.values["time"] for _, _, found in walked if found is not None and "time" in found.values]
        dated = [_DATED.match(text) is not None for text in texts]
        return [text for text, now, after in zip(texts, dated, [*dated[1:], False], strict=False) if not (now and after)]

    def _walk(self, lines: Sequence[str]) -> list[tuple[str, int, Found | None]]:
        return [(raw, *walk(raw, 0, self._table)) for raw in lines]

    def _set_clock(self, walked: Sequence[tuple[str, int, Found | None]]) -> Clock:
        """A clock that knows the year: from a dated prefix, else from a date in the text that the hint bears out (it may be
        of a build) or that is all of a line."""
        year, not_after = self._hints
        clock = Clock(year, not_after)
        for _, _, found in walked:
            text = "" if found is None else found.values.get("time", "")
            moment = read_moment(text)
            if moment is not None and moment[0] is not None and clock.read(text) is not None:
                return clock
        hint = time.gmtime(not_after).tm_year if year is None and not_after is not None else year
        for raw, _, _ in walked:
            stamp = find_with_year(raw)
            if stamp is not None and (hint is None or int(stamp.iso[:4]) in (hint - 1, hint) or read_moment(raw.strip()) is not None):
                clock.set(stamp)
                return clock
        return clock

    def _rank_on(self, raw: str, position: int, found: Found | None) -> int | None:
        rank = self._rank if found is None else self._rank_of(found.values)
        if rank is None and raw[position : position + 5] in ("[Rank", "rank="):
            peek = _MEMORY.match(raw, position)
            if peek is not None:
                return int(peek[1] or peek[2])
        return rank

    def end(self, raw: str) -> int:
        """Where the message of ``raw`` begins."""
        return walk(raw, 0, self._table)[0]

    def strip(self, raw: str) -> Line:
        """``raw`` without its prefixes. Never raises; ``text`` is always a suffix of ``raw``."""
        position, found = walk(raw, 0, self._table)
        rank = self._rank_on(raw, position, found)
        if found is None:
            return Line(raw, rank, None, self._host)
        values = found.values
        stamp, level, pid, local = values.get("time"), values.get("level"), values.get("pid"), values.get("local")
        return Line(
            raw[position:],
            rank,
            None if local is None else int(local),
            values.get("host", self._host),
            None if pid is None else int(pid),
            None if stamp is None else self._clock.read(stamp),
            None if level is None else _LEVELS.get(level, level),
            values.get("logger"),
            self._stream(found),
        )

    def _rank_of(self, values: dict[str, str]) -> int | None:
        """The rank by the prefixes, else by the file's name, else the Slurm task.

        A Slurm task is a rank where each GPU has its own task. Where torchrun runs once per node it is the node: then a tag inside tells.
        """
        text = values.get("rank", values.get("ds_rank", "-1"))
        rank = int(text) if text[0] != "-" else None
        task = values.get("task")
        if task is not None and not self._tasks_are_nodes:
            inside = rank is not None and rank != int(task)
            self._tasks_are_nodes = inside or "local" in values or values.get("logger", "").startswith(_TORCHRUN)
        if rank is not None:
            return rank
        if self._rank is not None or task is None or self._tasks_are_nodes:
            return self._rank
        return int(task)

    def _machine(self, found: Found) -> Iterator[str]:
        """The machine that a label of a line names."""
        values = found.values
        if found.tags and "host" in values:
            yield values["host"]
        if "task" in values and self._tasks_are_nodes:
            yield f"task {values['task']}"

    def _stream(self, found: Found) -> str:
        parts: list[str] = []
        process = False  # some tag names a process, not only a machine
        for tag, value in found.tags:
            if tag == "host" or tag == "task":
                named = tag == "task" and not self._tasks_are_nodes
                process = process or named
                parts.append(f"r{value}" if named else f"n{value}" if tag == "task" else value)
            elif tag == "rankn":
                if not process:
                    parts.append(f"r{value}")
                    process = True
            elif value:
                parts.append({"rank": "r", "local": "l"}.get(tag, "") + value)
                process = True
        if not parts and found.layers[-1] is NCCL:
            return f"{found.values['host']}:{found.values['pid']}"
        return "/".join(parts)
