"""From what a line yielded to a fact: types, common fields, attempt, order; and into the store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from memdoctor import catalog
from memdoctor.model import Fact, Origin, Stamp
from memdoctor.records import entity
from memdoctor.sources.logs.blocks import RESERVED
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.store import Store

STARTS = ("run.start",)
SIGNS = ("run.version", "run.world", "run.phase")  # kinds of which some are told at a start
_FRAMEWORKS = ("megatron-lm",)  # whose start lines come some time after the launch
START = 16  # characters that tell one start line from another
_FAILURES = ("process.exit", "cuda.oom", "native.crash", "watchdog.timeout", "scheduler")
_BEGINS = ("deepspeed", "transformers", "lightning", "nccl")  # whose version is told at a start
_SIGN = "sign"  # a start line that each rank prints
_TRACED = "traced"  # a command that a job script runs, perhaps only beside the job
_AGAIN = "torchrun_restart"
_WHO = ("pg_rank", "of_rank", "local_rank", "pid")  # tells the facts of different processes apart where no rank does
MESSAGE = 2_000  # characters kept of a text field


@entity
class Found:
    """Where something was found: the line without prefixes and as read, its number, the place within a glued line, the event it
    belongs to ("" = its own), fields that its surroundings give, and the last stamp before it where it has none."""

    line: Line
    raw: str
    number: int
    part: int
    event: str
    context: Mapping[str, Any]
    after: Stamp | None


class FactMaker:
    """Makes the facts of one file and keeps what they need to know: attempt (``epoch``), phase and iteration."""

    def __init__(self, file: LogFile, number: int, store: Store) -> None:
        self._file, self._number, self._store = file, number, store
        self.kinds: set[str] = set()  # of facts so far
        self.epoch = 1  # attempts as far as this file alone tells them apart
        self._dirty = False  # something happened since the attempt began that a new start would end
        self._raised = False  # an exception was printed: the end of the attempt, or caught by a launch that goes on
        self._begun: set[str] = set()  # start lines of this attempt
        self._over = False  # a launcher or a scheduler told the end of the job, or of a node
        self._stepped = False
        self._ranks: set[int] = set()  # that were heard of in this attempt
        self._hosts: set[str] = set()  # likewise
        self._dead: set[int] = set()  # ranks that aborted in it
        self._agents: set[tuple[str | None, int | None]] = set()  # of torchrun that restarted their workers for this attempt
        self._phase = "startup"
        self._iteration: int | None = None

    def stepped(self, iteration: int) -> None:
        self._iteration, self._phase, self._dirty, self._stepped = iteration, "training", True, True

    @property
    def ended(self) -> bool:
        """True once the end of the job was told."""
        return self._over or len(self._dead) >= catalog.SEVERAL

    def context(self) -> dict[str, Any]:
        return {"phase": self._phase, "iteration": self._iteration}

    def seq(self, number: int, part: int) -> int:
        """Reading order: by file, then line, then the place within a glued line."""
        return (self._number << 44) | (number << 8) | min(part, 255)

    def make(self, kind: str, found: Mapping[str, Any], where: Found) -> None:
        """Note that ``kind`` was found, with ``found`` as its fields (texts as captured, or values)."""
        self.kinds.add(kind)
        line = where.line
        rank = _int(found.get("rank"), line.rank if line.rank is not None else self._file.rank)
        name = str(found.get("name", ""))
        attempt = self.epoch
        if kind in STARTS and name not in (_SIGN, _TRACED):
            self._start(name, line.text[:START], (line.host, line.pid))
            attempt = self.epoch
        elif _is_sign(kind, name, where):
            self._sign(name, line.text[:START], rank, line.host)
            attempt = self.epoch
        elif self._agents and self._is_late(kind, line):
            attempt -= 1
        elif kind == "exception":
            self._raised = True
        elif kind in _FAILURES and not self._aside(kind, name):
            self._dirty = True
            self._over = self._over or catalog.ends_job(kind, found)
        if rank is not None:
            self._ranks.add(rank)
            if kind in catalog.ABORTS:
                self._dead.add(rank)
        if line.host is not None:
            self._hosts.add(line.host)
        if kind == "run.phase" and found.get("name"):
            self._phase = str(found["name"])
        common = {
            "phase": self._phase,
            "iteration": self._iteration,
            "pid": _int(found.get("pid"), line.pid),
            "local_rank": _int(found.get("local_rank"), line.local_rank if line.local_rank is not None else self._file.local_rank),
        }
        who = None
        if rank is None:
            who = next((value for name in _WHO if (value := found.get(name)) is not None or (value := common.get(name)) is not None), None)
        build = partial(self._build, kind, found, where, rank, attempt, common)
        self._store.offer((kind, name, rank, attempt), who, build)

    def _aside(self, kind: str, name: str) -> bool:
        """True for a step of the job's script that failed before the job itself was heard of."""
        heard = self._ranks or self._stepped or any(not text.startswith("+") for text in self._begun)
        return kind == "scheduler" and name == "task_exit" and not heard

    def _start(self, name: str, text: str, agent: tuple[str | None, int | None]) -> None:
        """A start line begins a new attempt after a failure or progress; after a mere exception only a launcher's, or one seen before.

        One restart of a job is told by the agents of all nodes.
        """
        again = self._raised and (name not in _FRAMEWORKS or text in self._begun)
        joins = name == _AGAIN and bool(self._agents) and agent not in self._agents and not self._stepped
        if (self._dirty or again) and not joins:
            self._anew()
        if name == _AGAIN:
            self._agents.add(agent)
        self._begun.add(text)

    def _sign(self, name: str, text: str, rank: int | None, host: str | None) -> None:
        """What ranks print at a start begins a new attempt where the job, the rank or several ranks came to their end, and they had begun before."""
        if name == _TRACED:
            again = (self._stepped or bool(self._ranks)) and self.ended
        elif rank is None:
            begun = text in self._begun or self._stepped or (not self._begun and (host is None or host in self._hosts))
            again = begun and self.ended
        else:
            again = rank in self._dead or (self._over and rank in self._ranks)
        if again:
            self._anew()
        self._begun.add(text)

    def _anew(self) -> None:
        self.epoch += 1
        self._dirty = self._raised = self._over = self._stepped = False
        self._phase, self._iteration = "startup", None
        for seen in (self._begun, self._ranks, self._hosts, self._dead, self._agents):
            seen.clear()

    def _is_late(self, kind: str, line: Line) -> bool:
        """True for a failure of a node whose agent has not yet said that it restarts as others did: it is one of the attempt before."""
        if self._stepped or (kind != "exception" and kind not in _FAILURES):
            return False
        if line.host is not None:
            return all(host != line.host for host, _ in self._agents)
        return kind == "process.exit" and line.pid is not None and all(pid != line.pid for _, pid in self._agents)

    def _build(self, kind: str, found: Mapping[str, Any], where: Found, rank: int | None, attempt: int, common: Mapping[str, Any]) -> Fact:
        line = where.line
        fields = {**common, "level": line.level, "stream": line.stream or None, **where.context}
        for key, value in found.items():
            if key not in RESERVED:
                fields[key] = catalog.convert(kind, key, value[:MESSAGE] if isinstance(value, str) else value)
        return Fact(
            kind=kind,
            fields=catalog.with_computed(kind, {key: value for key, value in fields.items() if value is not None}),
            origin=Origin("log", self._file.path, where.number, where.raw),
            rank=rank,
            host=found.get("host") or line.host or self._file.host,
            time=line.time,
            attempt=attempt,
            seq=self.seq(where.number, where.part),
            event=where.event or f"{self._number}:{where.number}.{where.part}",
            after=None if line.time is not None else where.after,
        )


def _is_sign(kind: str, name: str, where: Found) -> bool:
    """True for what is printed at a start, by each rank or once."""
    if kind == "run.version":
        return (
            name in _BEGINS
            and not where.event
            and (name != "nccl" or where.line.text.startswith("NCCL version") or "NCCL INFO" in where.line.text)
        )
    return kind in STARTS or kind == "run.world" or (kind == "run.phase" and name == "load")


def _int(text: Any, default: int | None) -> int | None:
    try:
        return int(text) if text is not None else default
    except ValueError:
        return default
