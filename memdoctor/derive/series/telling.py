"""From findings in columns to facts with a line, a time and an iteration."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

from memdoctor.catalog import with_computed
from memdoctor.derive.numerics import stamp_of
from memdoctor.derive.series.anew import Anew
from memdoctor.derive.series.bound import Bound
from memdoctor.derive.series.collapse import Collapse
from memdoctor.derive.series.experts import Experts
from memdoctor.derive.series.growth import Growth
from memdoctor.derive.series.loss import Divergence, Plateau
from memdoctor.derive.series.memory import Readings
from memdoctor.derive.series.pace import Beat, Slowdown
from memdoctor.derive.series.resume import Jump
from memdoctor.derive.series.segments import Segment
from memdoctor.derive.series.spikes import Spike
from memdoctor.derive.steps import Steps
from memdoctor.model import Fact, Origin

PRINTED = ("iteration", "sign_iteration", "nan_iteration", "until")  # fields that are iterations of the log
SECONDS = ("ms", "stamps")  # units of a pace that are seconds; the others are only in proportion to them


class Teller:
    """Makes the facts of one attempt in one file."""

    def __init__(self, attempt: int, steps: Steps) -> None:
        self.attempt, self.steps = attempt, steps
        # What happened to the losses is one event with what series.numerics tells: rules about it compete.
        self._losses = f"numerics:{attempt}:{steps.file.number}"

    def divergence(self, segment: Segment, found: Divergence, bad: int | None) -> Fact:
        signs = found.signs
        fields: dict[str, Any] = {
            "name": found.name, "iteration": found.onset, "ramp": self._steps(segment, found.place, found.ramp) if found.ramp else 0,
            "sign": signs.first, "sign_iteration": signs.onset, "nan_iteration": None if bad is None else _since(segment, bad), "lr": signs.rate,
            "lr_before": signs.rate_before,
        }  # fmt: skip
        if signs.norm is not None:
            fields.update(norm_before=signs.norm.before, norm_after=signs.norm.after)
        if found.name != "norm":
            fields.update(before=found.before, after=found.after)
        return self._at_place("series.divergence", segment, found.place, fields, self._losses)

    def spike(self, segment: Segment, found: Spike) -> Fact:
        norm = segment.values("grad_norm")[found.place] if segment.has("grad_norm") else None
        fields = {
            "iteration": segment.times[found.place], "before": found.before, "peak": found.peak,
            "steps": self._steps(segment, found.place, found.length), "grad_norm": norm,
        }  # fmt: skip
        return self._at_place("series.spike", segment, found.place, fields, "")

    def plateau(self, segment: Segment, found: Plateau) -> Fact:
        fields = {
            "name": found.name,
            "iteration": found.onset,
            "level": found.level,
            "first": found.first,
            "steps": found.steps,
            "lr": found.lr,
        }
        return self._at_place("series.plateau", segment, found.place, fields, self._losses)

    def jump(self, segment: Segment, found: Jump) -> Fact:
        fields = {"iteration": found.onset, "before": found.before, "after": found.after, "over": found.over, "steps": found.steps}
        return self._at_place("series.resume_jump", segment, found.place, fields, self._losses)

    def anew(self, segment: Segment, found: Anew, missing: Fact | None) -> Fact:
        """``missing``: the line that says that there was nothing to load; the two are one event."""
        fields = {
            "iteration": found.onset, "saved": found.saved.iteration, "saved_path": found.saved.path,
            "path": None if missing is None else missing.fields.get("path"),
        }  # fmt: skip
        return self._at_place("series.anew", segment, found.place, fields, "" if missing is None else missing.event)

    def collapse(self, segment: Segment, found: Collapse) -> Fact:
        fields = {
            "iteration": found.onset, "before": found.before, "after": found.after, "skipped": found.skipped, "good": found.good,
        }  # fmt: skip
        return self._at_place("series.scale_collapse", segment, found.place, fields, self._losses)

    def slowdown(self, segment: Segment, found: Slowdown, unit: str) -> Fact:
        fields: dict[str, Any] = {"name": found.name, "iteration": found.onset, "until": found.until, "ratio": found.after / found.before}
        if unit in SECONDS:
            fields.update(before=found.before, after=found.after)
        return self._at_place("series.slowdown", segment, found.place, fields, "")

    def beat(self, segment: Segment, found: Beat, name: str, unit: str) -> Fact:
        fields: dict[str, Any] = {
            "name": name or "unknown",
            "iteration": found.first,
            "period": found.period,
            "share": found.share,
            "times": found.times,
        }
        if unit in SECONDS:
            fields.update(typical=found.typical, extra=found.extra)
        return self._at_place("series.periodic", segment, found.place, fields, "")

    def bound(self, segment: Segment, found: Bound) -> Fact:
        fields = {"name": found.name, "share": found.share, "seconds": found.seconds, "of": found.of, "timer": found.timer}
        return self._at_line("series.bound", found.line, fields, "", self.steps.file.rank)

    def experts(self, segment: Segment, found: Experts) -> Fact:
        fields = {"name": found.name, "iteration": found.onset, "first": found.first, "last": found.last}
        return self._at_place("series.experts", segment, found.place, fields, "")

    def growth(self, each: Readings, found: Growth, end: Fact | None) -> Fact:
        """``end``: the OOM that it came to; the two are one event."""
        fields = {
            "name": each.name, "iteration": found.onset, "first": found.first, "last": found.last, "per_step": found.per_step,
            "capacity": found.capacity or None, "peak": found.peak, "assumed": found.assumed, "full_iteration": found.full, "oom": end is not None,
        }  # fmt: skip
        return self._at_line("series.growth", each.lines[found.place], fields, "" if end is None else end.event, each.rank)

    @staticmethod
    def _steps(segment: Segment, place: int, count: int) -> float:
        """``count`` lines from ``place`` on, in iterations."""
        return segment.times[min(place + count, len(segment) - 1)] - segment.times[place]

    def _at_place(self, kind: str, segment: Segment, place: int, fields: dict[str, Any], event: str) -> Fact:
        row = segment.rows[place]
        # Epochs that count from the beginning: an iteration is told as it was printed.
        shift = segment.times[place] - segment.printed(place)
        fields = {name: value - shift if name in PRINTED and value is not None else value for name, value in fields.items()}
        return self._fact(kind, self.steps.line(row), fields, event, self.steps.file.rank, self.steps.epoch(row))

    def _at_line(self, kind: str, line: int, fields: dict[str, Any], event: str, rank: int | None) -> Fact:
        """At a line beside step lines; its time is that of the step line before it."""
        row = max(0, bisect_right(self.steps.lines, line) - 1)
        return self._fact(kind, line, fields, event, rank, self.steps.epoch(row))

    def _fact(self, kind: str, line: int, fields: dict[str, Any], event: str, rank: int | None, epoch: float) -> Fact:
        return Fact(
            kind,
            with_computed(kind, {name: self._typed(name, value) for name, value in fields.items() if value is not None}),
            Origin("log", self.steps.file.path, line, self.steps.series.text(line)),
            rank,
            None,
            None if math.isnan(epoch) else stamp_of(epoch),
            self.attempt,
            self.steps.series.seq(line),
            event or f"{kind}:{self.attempt}:{self.steps.file.number}:{line}",
        )

    @staticmethod
    def _typed(name: str, value: Any) -> Any:
        whole = name in (*PRINTED, "saved", "period", "steps", "ramp", "full_iteration") or (
            name in ("first", "last", "capacity", "peak", "per_step") and isinstance(value, float) and value > 1e4
        )
        return round(value) if whole and isinstance(value, float) and math.isfinite(value) else value


def _since(segment: Segment, place: int) -> float:
    """The iteration of a loss that stands for NaN; a mean of exactly 0, as the Trainer prints it, holds no other step since the line before."""
    if place and segment.steps.shape == "dict" and segment.values("loss")[place] == 0:
        return min(segment.times[place], segment.times[place - 1] + 1)
    return segment.times[place]
