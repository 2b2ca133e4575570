"""What a step waits for: the data loader, offloaded states, communication. Told by timers and by what of a step no timer covers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.derive.series.pace import Pace, pace_from_stamps
from memdoctor.derive.series.robust import median, typical
from memdoctor.derive.series.segments import Segment
from memdoctor.derive.steps import Steps
from memdoctor.lazy import lazy
from memdoctor.model import Fact
from memdoctor.records import record

FEWEST = 5  # lines
DATA = 0.25  # of a step that waits for data: from there on a faster loader is worth the work
OUTSIDE = 0.35  # of a step that DeepSpeed's timers of forward, backward and step do not cover: data, or Python between
OFFLOAD = 0.4  # of a step that goes to an optimizer whose states are offloaded
SWAP = 0.2  # of a step that moves states from and to disk
LOGGED = 0.5  # of the run's time that goes to collectives
COMMUNICATION = 0.6  # of the backward pass that waits for the reduction of gradients

_OFFLOADED = lazy(r"offload_(?:optimizer|param)\W{1,4}(?:\w+\()?[^}]{0,200}?device\W{1,6}(?:\w+\.)?['\"]?(cpu|nvme)", re.I)


@record
class Bound:
    """``share`` of the step, ``seconds`` of ``of`` seconds; ``timer`` names what was measured; ``line`` is where it stands first."""

    name: str
    share: float
    seconds: float
    of: float
    timer: str
    line: int


class Timers:
    """The timers of one attempt: seconds, as the median over the attempt's lines."""

    def __init__(self, steps: Steps) -> None:
        self._tables: Mapping[str, Any] = steps.series.beside.timers
        lines = steps.lines
        # Timers stand behind the step line; those of the attempt are between its first line and the next attempt.
        self._first, self._last = lines[0] - 200, lines[-1] + 200

    def median(self, name: str) -> tuple[float, int] | None:
        """Seconds of the slowest rank, and the line of the first reading; None where there are too few."""
        table = self._tables.get(name)
        if table is None:
            return None
        highs, numbers = table.column("high"), table.line
        rows = [row for row in range(len(table)) if self._first <= numbers[row] <= self._last]
        values = [highs[row] for row in rows if math.isfinite(highs[row])]
        if len(values) < FEWEST:
            return None
        return median(values[1:]) / 1000, int(numbers[rows[0]])

    def seconds(self, *names: str) -> float | None:
        """The first of ``names`` that is known."""
        return next((found[0] for name in names if (found := self.median(name)) is not None), None)


def bounds(segment: Segment, pace: Pace | None, facts: Sequence[Fact]) -> list[Bound]:
    """All that a step is bound by; empty for a healthy one, or where nothing was measured."""
    beside = segment.steps.series.beside
    if not beside.timers and not beside.profiles and not segment.has("data"):
        return []
    timers = Timers(segment.steps)
    if pace is None or pace.unit not in ("ms", "stamps"):
        pace = pace_from_stamps(segment)
    wall = typical(pace.values) if pace is not None else None
    found = [
        _printed(segment),
        _loader(timers, wall),
        _outside(timers, wall),
        _offload(timers, wall, facts),
        _profiled(segment, facts),
        _communication(timers),
        _logged(segment),
    ]
    best: dict[str, Bound] = {}
    for each in found:
        if each is not None and (each.name not in best or each.share > best[each.name].share):
            best[each.name] = each
    return list(best.values())


def _printed(segment: Segment) -> Bound | None:
    """A loop of one's own that prints how long it waited."""
    if not segment.has("data") or not segment.has("ms"):
        return None
    data, ms = segment.values("data"), segment.values("ms")
    known = [place for place in range(1, len(data)) if math.isfinite(data[place]) and ms[place] > 0]
    if len(known) < FEWEST:
        return None
    wait, whole = median([data[place] for place in known]) / 1000, median([ms[place] for place in known]) / 1000
    if not wait < whole * 1.5:
        return None
    whole = max(whole, wait)
    return (
        Bound("data", wait / whole, wait, whole, "data time", segment.steps.line(segment.rows[known[0]])) if wait >= DATA * whole else None
    )


def _loader(timers: Timers, wall: float | None) -> Bound | None:
    for name, others in (("batch-generator", ("forward-backward",)), ("batch_input", ("train_batch",))):
        found = timers.median(name)
        whole = timers.seconds(*others) if name == "batch_input" or wall is None else wall
        if found is not None and whole and DATA * whole <= found[0] <= 1.2 * whole:
            return Bound("data", min(1.0, found[0] / whole), found[0], whole, name, found[1])
    return None


def _outside(timers: Timers, wall: float | None) -> Bound | None:
    forward, backward, step = timers.median("fwd"), timers.seconds("bwd"), timers.seconds("step")
    if wall is None or forward is None or backward is None or step is None:
        return None
    rest = wall - forward[0] - backward - step
    return Bound("data", rest / wall, rest, wall, "outside forward, backward and step", forward[1]) if rest >= OUTSIDE * wall else None


def _offload(timers: Timers, wall: float | None, facts: Sequence[Fact]) -> Bound | None:
    covered = [timers.seconds("fwd", "forward"), timers.seconds("bwd", "backward"), timers.seconds("step")]
    whole = wall or sum(value or 0.0 for value in covered)
    if not whole:
        return None
    swaps = [timers.median(name) for name in ("optimizer_swap_in_state", "optimizer_swap_out_state")]
    moved = [swap for swap in swaps if swap is not None]
    if moved and sum(swap[0] for swap in moved) >= SWAP * whole:
        took = sum(swap[0] for swap in moved)
        return Bound("offload", min(1.0, took / whole), took, whole, "optimizer_swap", moved[0][1])
    if not offloaded(facts):
        return None
    for name in ("step", "optimizer"):
        found = timers.median(name)
        if found is not None and found[0] >= OFFLOAD * whole:
            return Bound("offload", min(1.0, found[0] / whole), found[0], whole, name, found[1])
    return None


def _communication(timers: Timers) -> Bound | None:
    reduce, backward = timers.median("bwd_allreduce"), timers.seconds("bwd")
    if reduce is None or not backward or reduce[0] < COMMUNICATION * backward:
        return None
    return Bound("communication", min(1.0, reduce[0] / backward), reduce[0], backward, "bwd_allreduce", reduce[1])


def _profiled(segment: Segment, facts: Sequence[Fact]) -> Bound | None:
    """The optimizer's part of one step, as DeepSpeed's flops profiler measured it."""
    beside = segment.steps.series.beside
    for row in beside.profiles.get("flops", ()):
        step, whole = row.get("step_ms", 0.0), row.get("iteration_ms", 0.0)
        if whole and step >= OFFLOAD * whole and offloaded(facts):
            return Bound("offload", step / whole, step / 1000, whole / 1000, "step latency", beside.profile_lines["flops"])
    return None


def _logged(segment: Segment) -> Bound | None:
    """All collectives together, as DeepSpeed's communication logger counted them, beside the time from the first step line to the last."""
    beside, epochs = segment.steps.series.beside, segment.steps.epochs
    total = sum(row["total_ms"] for row in beside.profiles.get("communication", ())) / 1000
    wall = epochs[-1] - epochs[0] if len(epochs) > FEWEST else 0.0
    if not total or not wall > 0 or total < LOGGED * wall:
        return None
    share = min(1.0, total / wall)
    return Bound("communication", share, total, wall, "communication logger", beside.profile_lines["communication"])


def offloaded(facts: Sequence[Fact]) -> bool:
    """True where arguments or a configuration put optimizer states or parameters elsewhere than on the GPU."""
    for fact in facts:
        if fact.kind not in ("run.args", "run.config"):
            continue
        values = fact.fields.get("values") or {}
        if str(values.get("optimizer_cpu_offload", "")) == "True" or str(values.get("device", "")).strip("'\"") in ("cpu", "nvme"):
            return True  # only the sections about offloading have a device in DeepSpeed's configuration
        if any("offload" in str(key) and str(value).strip("'\"").lower() in ("cpu", "nvme") for key, value in values.items()):
            return True
        if any(_OFFLOADED.search(f"{key}: {value}"[:20_000]) for key, value in values.items()):
            return True
    return False
