"""The vocabulary: what memdoctor learns (Fact), what it could not learn (Skip), what it says (Diagnosis, Report).

All types are frozen. Sizes are bytes, durations seconds, ranks global unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

from memdoctor.records import record

Severity = Literal["error", "warning", "note"]
Confidence = Literal["certain", "likely", "possible"]
Ended = Literal["completed", "failed", "killed", "cut", "running", "unknown"]
Value = Any  # a field's value: None, bool, int, float, str, tuple or mapping of such; catalog.py types each field

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
CONFIDENCES: tuple[Confidence, ...] = ("certain", "likely", "possible")


@record
class Stamp:
    """A moment as a log prints it.

    ``epoch`` (seconds) orders moments; a moment without a zone counts as UTC, so only moments of one clock compare exactly.
    ``iso`` is ISO 8601 as printed: with a zone only where the log has one.
    """

    epoch: float
    iso: str


@record
class Origin:
    """Where a fact was learnt. ``line`` is 1-based and counts ``\\n`` only; ``excerpt`` is the line as read, unshortened."""

    source: str
    path: str | None = None
    line: int | None = None
    excerpt: str = ""


@record
class Fact:
    """One thing that was learnt. ``kind`` is in catalog.py, which types every field.

    ``seq`` is the reading order: within one file it follows the lines. ``event`` is equal for facts that tell of one event (one
    line, one traceback, one chain of exceptions). ``time`` is the fact's own stamp; ``after`` is the last stamp read before it in the
    same file, a lower bound where ``time`` is None.
    """

    kind: str
    fields: Mapping[str, Value]
    origin: Origin
    rank: int | None = None
    host: str | None = None
    time: Stamp | None = None
    attempt: int = 1
    seq: int = 0
    event: str = ""
    after: Stamp | None = None

    def get(self, name: str) -> Value:
        """The field ``name``, or one of ``rank``, ``host``, ``attempt``; None where it is unknown."""
        if name in ("rank", "host", "attempt"):
            return getattr(self, name)
        return self.fields.get(name)


@record
class Skip:
    """Something that could not be looked at: which source, which kinds of facts are therefore unknown, and why."""

    source: str
    reason: str
    kinds: tuple[str, ...] = ()


@record
class Evidence:
    path: str | None
    line: int | None
    rank: int | None
    time: str | None
    text: str


@record
class Fix:
    """What to do, for one framework or for all. ``do`` is a sentence; ``command`` and ``config`` are to paste."""

    id: str
    do: str
    command: str | None = None
    config: str | None = None
    risk: Literal["safe", "costly", "changes-results"] = "safe"
    saves: str | None = None
    repro: str | None = None
    framework: str | None = None


@record
class Diagnosis:
    """One thing memdoctor says: one per rule and incident, ranks merged."""

    id: str
    rule: str
    cause: str
    severity: Severity
    confidence: Confidence
    message: str
    why: str
    not_this: str
    title: str
    action: str
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    count: int = 1
    first_time: Stamp | None = None
    iteration: int | None = None
    attempt: int = 1
    state: Literal["suspected", "confirmed", "refuted", "undecided"] = "suspected"
    explained_by: str | None = None
    recovered: bool = False
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()


@record
class Incident:
    """An attempt that failed, with the cause of it. ``diagnoses`` are ids."""

    attempt: int
    root_cause: str | None
    diagnoses: tuple[str, ...]


@record
class InputFile:
    path: str
    bytes: int
    lines: int


@record
class Run:
    """What the inputs say about the job itself."""

    frameworks: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    world_size: int | None = None
    ranks_seen: int = 0
    attempts: int = 1
    ended: Ended = "unknown"
    first_iteration: int | None = None
    last_iteration: int | None = None
    first_time: Stamp | None = None
    last_time: Stamp | None = None
    args: Mapping[str, Value] = field(default_factory=dict)


@record
class Check:
    """One thing that `memdoctor check` looked at. ``summary`` is what it found, or why it could not be looked at; ``diagnoses`` are ids."""

    name: str
    status: Literal["ok", "wrong", "skipped"]
    summary: str = ""
    diagnoses: tuple[str, ...] = ()


@record
class Report:
    """What a command found; every format renders this and nothing else."""

    command: str
    inputs: tuple[InputFile, ...]
    run: Run
    root_cause: str | None
    confidence: Confidence | None
    action: str | None
    candidates: tuple[str, ...] = ()
    hosts_to_exclude: tuple[str, ...] = ()
    incidents: tuple[Incident, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    not_checked: tuple[tuple[str, str], ...] = ()
    skips: tuple[Skip, ...] = ()
    series: Mapping[str, Value] = field(default_factory=dict)
    baseline: Mapping[str, Value] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()


@record
class Signal:
    """The shape of a log line (and of the lines that follow it) and the fact it makes; see rules/README.md.

    Patterns are kept as text: the reader compiles one when a line first passes its gate, so that start-up stays cheap. ``gates`` are texts
    one of which stands in every line that ``match`` matches, where those are rarer than the texts of ``has``; ``needs`` the same of each of
    ``more``, () where no such texts are known.
    """

    id: str
    fact: str
    has: tuple[str, ...]
    match: str
    more: tuple[str, ...] = ()
    set: Mapping[str, Value] = field(default_factory=dict)
    until: str | None = None
    max_lines: int = 30
    rows: tuple[str, ...] = ()
    pairs: str | None = None
    sample: str = ""
    seen: str = ""
    path: str = ""
    line: int = 0
    gates: tuple[str, ...] = ()
    needs: tuple[tuple[str, ...], ...] = ()

    @property
    def block(self) -> bool:
        """True where the fact goes on over following lines."""
        return self.until is not None or bool(self.rows) or self.pairs is not None


def signal_head(signal: Signal) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What a scan needs to know of every signal: its kind of fact, and the texts of a line that make it worth a look."""
    return signal.fact, signal.has, signal.gates


@record
class FileRead:
    """What reading one file yielded besides facts.

    ``number`` is the file's place in the reading order (the high bits of every ``Fact.seq``); ``epochs`` how many attempts the file
    alone tells apart; ``attempt`` the attempt that its name tells, ``rank``, ``local_rank`` and ``host`` likewise; ``series`` its step lines
    (sources/logs/steps.py); ``opened`` the path itself where it cannot be shown as it is; ``unit`` the files among which a local rank is unique,
    ``nodes`` how many such sets the names in its folder show, ``machines`` what the labels of its first lines name. ``dated`` is False where no stamp in it has a year: it is assumed.
    """

    path: str
    number: int
    rank: int | None
    attempt: int | None
    first: Stamp | None
    last: Stamp | None
    epochs: int
    lines: int
    truncated: bool
    ends_mid_line: bool
    age: float | None
    ranks: frozenset[int]
    series: Any
    opened: str | None = None
    local_rank: int | None = None
    host: str | None = None
    unit: str = ""
    nodes: int = 1
    machines: frozenset[str] = frozenset()
    dated: bool = True


@record
class ProcessGroup:
    """A process group as the flight recorder of one rank names it. ``ranks`` (global, ascending) is None where the dump does not tell.

    ``key`` is equal for one group on all its ranks, and for no other. ``shared`` is False where ``name`` is only this rank's own number.
    """

    key: str
    name: str
    desc: str = ""
    ranks: tuple[int, ...] | None = None
    shared: bool = True


@record
class Call:
    """One operation that a rank handed to a process group, out of its flight recorder.

    ``index`` is its place among all that the rank recorded, ``seq`` its number within the group (of a collective; from 1). ``started`` is
    None where the recorder did not time. ``pair`` is (sender, receiver), global ranks. Times are epoch seconds, ``limit`` seconds.
    ``inputs`` and ``outputs`` are shapes. ``parts`` are the sends and receives that were handed over together.
    """

    index: int
    group: str
    seq: int
    op: str
    done: bool
    started: bool | None = None
    pair: tuple[int, int] | None = None
    inputs: tuple[tuple[int, ...], ...] = ()
    outputs: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    created: float | None = None
    ended: float | None = None
    limit: float | None = None
    frame: str = ""
    parts: tuple[Call, ...] = ()

    @property
    def p2p(self) -> bool:
        """True for a send, a receive, or several of them together."""
        return self.pair is not None or bool(self.parts)


@record
class RankDump:
    """The flight recorder of one rank, as far as it is needed.

    ``calls`` are the last ones and all that had not ended, in the order of ``index``; ``whole`` is True where no call is missing from them.
    ``enqueued`` and ``completed`` hold, by key of the group, the highest number reached (0: none). ``backend`` is nccl, gloo, ...
    ``newest`` is the last time that the dump tells, in epoch seconds.
    """

    path: str
    rank: int
    size: int
    entries: int
    groups: Mapping[str, ProcessGroup]
    calls: tuple[Call, ...]
    enqueued: Mapping[str, int]
    completed: Mapping[str, int]
    whole: bool = False
    backend: str = ""
    library: str = ""
    newest: float | None = None
    written: float | None = None  # when the file was last changed, epoch seconds


@record
class LogFacts:
    """What reading logs yielded.

    ``facts`` are in reading order and bounded (the first and last few of each kind, name, rank and attempt); ``counts`` are exact:
    (kind, name, rank, attempt within its file) -> how many. ``dumps`` are paths of flight-recorder dumps that were met and left alone.
    """

    facts: tuple[Fact, ...]
    inputs: tuple[InputFile, ...]
    skips: tuple[Skip, ...]
    counts: Mapping[tuple[str, str, int | None, int], int]
    files: tuple[FileRead, ...] = ()
    dumps: tuple[str, ...] = ()


@record
class StepMark:
    """A step line, as a sign of progress: where it stands in the reading order, and when (epoch seconds) where it tells.

    ``since``: the seq at which the part of the file begins that holds it, where files were joined. ``zoned``: its time has a zone.
    """

    seq: int
    path: str
    rank: int | None
    iteration: int
    epoch: float | None
    since: int = 0
    zoned: bool = False


class Marks(tuple[StepMark, ...]):
    """Step lines in reading order, also by rank and by file."""

    @cached_property
    def _by_rank(self) -> dict[int | None, list[StepMark]]:
        found: dict[int | None, list[StepMark]] = {}
        for mark in self:
            found.setdefault(mark.rank, []).append(mark)
        return found

    def of_rank(self, rank: int | None) -> Sequence[StepMark]:
        """Those of one rank; none where it is not known."""
        return self._by_rank.get(rank, ()) if rank is not None else ()

    @cached_property
    def _by_path(self) -> dict[str, list[StepMark]]:
        found: dict[str, list[StepMark]] = {}
        for mark in self:
            found.setdefault(mark.path, []).append(mark)
        return found

    def of_path(self, path: str) -> Sequence[StepMark]:
        """Those of one file."""
        return self._by_path.get(path, ())


@record
class AttemptInfo:
    """One attempt of the job. ``debris_of``: the attempt whose leavings (a taken port, a dead store) alone made this one fail."""

    number: int
    status: Ended
    debris_of: int | None = None
    steps: Marks = Marks()


@record
class Timeline:
    attempts: tuple[AttemptInfo, ...] = ()
