"""What else the log tells of a rank that said nothing of the time-out: whether it lived on, ended before, or was never heard of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memdoctor.derive.hangs.axes import Axes
from memdoctor.derive.hangs.picture import Picture
from memdoctor.model import Fact, FileRead

SETTLED = 30.0  # seconds after the others began to wait: a line later than that was written by a rank that should have been with them
ENDED_BY_OTHERS = (-15, 143, -6, 134)  # SIGTERM of the launcher, SIGABRT of its own watchdog
EXITS = ("process.exit", "scheduler")  # somebody says with which code a rank ended
# What a rank tells of its own end. A rank with one of these is not silent, whatever it lacks; with one of the second, it may have given up, too.
OWN_END = ("exception", "cuda.oom", "host.oom", "xid")
ABORT = ("native.crash", "nccl.error", "collective.timeout", "collective.mismatch")
GAVE_UP = (
    "DistBackendError",
    "DistStoreError",
    "DistNetworkError",
    "ChildFailedError",
    "SignalException",
    "KeyboardInterrupt",
    "SystemExit",
)


class Clues:
    """``facts`` are those of one attempt."""

    def __init__(self, facts: Sequence[Fact], files: Sequence[FileRead], shown: Picture, axes: Axes) -> None:
        self._shown = shown
        began = [wait.began for wait in shown.waits if wait.began is not None]
        since = min(began) + SETTLED if began else None
        spoke = shown.timed_out | shown.watching
        self.not_seen = sum(rank not in spoke for rank in range(axes.world)) if axes.world is not None else 0
        self._heard = {fact.rank for fact in facts if fact.rank is not None}
        self._exits = {
            rank: code
            for fact in facts
            if fact.kind in EXITS and fact.rank is not None and isinstance(code := fact.fields.get("exitcode"), int)
            for rank in (fact.rank,)
        }
        self._later = {
            fact.rank
            for fact in facts
            if since is not None and fact.time is not None and fact.time.epoch > since and fact.kind not in EXITS
        }
        for file in files:
            self._heard |= file.ranks
            if file.rank is not None:
                self._heard.add(file.rank)
                if since is not None and file.last is not None and file.last.epoch > since:
                    self._later.add(file.rank)
        self._apart = _a_file_each(shown, files)
        times = [wait.fact.time.epoch for wait in shown.waits if wait.fact.time is not None]
        self._exited = bool(times) and any(_ended_before(fact, min(times)) for fact in facts)

    def about(self, rank: int) -> dict[str, Any]:
        """``alive``: it lived on while the others waited. ``signalled``: the others answered a signal to write their dumps, it did not.
        ``no_file``: each rank has a file, it has none. ``unheard``: no line is its. ``exited``: some process had ended by itself before, and no
        line tells which rank it was."""
        code = self._exits.get(rank)
        watched = rank in self._shown.watching
        return {
            "alive": True if watched or rank in self._later or code in ENDED_BY_OTHERS else None,
            "signalled": True if self._shown.watching and not watched else None,
            "no_file": True if self._apart and rank not in self._heard else None,
            "unheard": True if rank not in self._heard else None,
            "exited": True if self._exited else None,
        }


def ended_nameless(facts: Sequence[Fact]) -> bool:
    """True where some rank tells of an error of its own, and no line tells which: then it is the one that was missing.

    What comes after all time-outs of its file is how those ended that gave up waiting.
    """
    last: dict[str | None, int] = {}
    for fact in facts:
        if fact.kind == "watchdog.timeout":
            last[fact.origin.path] = max(fact.seq, last.get(fact.origin.path, 0))
    return any(
        fact.kind in OWN_END
        and fact.rank is None
        and fact.fields.get("owner") != "launcher"
        and not _gave_up(fact)
        and fact.seq < last.get(fact.origin.path, fact.seq + 1)
        for fact in facts
    )


def _gave_up(fact: Fact) -> bool:
    """True for an exception that a rank raises because its collective failed, or because somebody ended the job."""
    told = {fact.fields.get("type"), fact.fields.get("exception")}
    return bool(told.intersection(GAVE_UP)) or "NCCL" in str(fact.fields.get("message") or "")


def own_ends(facts: Sequence[Fact]) -> tuple[frozenset[int], frozenset[int]]:
    """Ranks that tell of an error of their own, and ranks that ended as those do that give up waiting."""
    own: set[int] = set()
    aborted: set[int] = set()
    for fact in facts:
        code = fact.fields.get("exitcode")
        if fact.kind in EXITS and fact.rank is not None and isinstance(code, int) and code not in (0, *ENDED_BY_OTHERS):
            own.add(fact.rank)
        elif fact.rank is not None and fact.kind in (*OWN_END, *ABORT) and fact.fields.get("owner") != "launcher":
            gave_up = fact.kind in ABORT or _gave_up(fact)
            (aborted if gave_up else own).add(fact.rank)
    return frozenset(own), frozenset(aborted - own)


def _ended_before(fact: Fact, first: float) -> bool:
    code = fact.fields.get("exitcode")
    known = fact.kind == "process.exit" and fact.rank is None and fact.time is not None and isinstance(code, int)
    return known and fact.time is not None and code not in (0, *ENDED_BY_OTHERS) and fact.time.epoch < first - SETTLED


def _a_file_each(shown: Picture, files: Sequence[FileRead]) -> bool:
    """True where the ranks that timed out have each a file of their own."""
    named = {file.rank for file in files if file.rank is not None}
    return len(shown.timed_out & named) * 2 > len(shown.timed_out)
