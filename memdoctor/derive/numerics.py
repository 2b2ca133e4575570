"""What loss, gradient norm and loss scale of one attempt did: one fact ``series.numerics`` from its step lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from memdoctor.catalog import with_computed
from memdoctor.model import Fact, FileRead, Origin, Stamp, StepMark

HEAD, TAIL, BETWEEN = 50, 50, 300  # step marks kept of an attempt: its first, its last, and about so many in between
FLOOR = 1.0  # the least loss scale of Megatron-LM and DeepSpeed by default
GOOD_AFTER = 3  # finite steps at the end after which trouble counts as over


class Steps:
    """The step lines of one attempt in one file: a view of the file's series. ``first`` and ``last`` are indices (half open)."""

    def __init__(self, file: FileRead, first: int, last: int) -> None:
        self.file, self.series, self.first, self.last = file, file.series, first, last

    def __len__(self) -> int:
        return self.last - self.first

    def marks(self, rank: int | None) -> list[StepMark]:
        stride = max(1, (len(self) - HEAD - TAIL) // BETWEEN)
        chosen = sorted(
            {
                *range(self.first, min(self.last, self.first + HEAD)),
                *range(self.first, self.last, stride),
                *range(max(self.first, self.last - TAIL), self.last),
            }
        )
        series = self.series
        return [
            StepMark(
                series.seq[i],
                self.file.path,
                rank,
                int(series.columns["iteration"][i]),
                None if math.isnan(series.epoch[i]) else series.epoch[i],
            )
            for i in chosen
        ]

    def iterations(self) -> tuple[int, int]:
        column = self.series.columns["iteration"][self.first : self.last]
        return int(min(column)), int(max(column))


def steps_of(files: Sequence[FileRead], starts: dict[int, list[int]], attempt_of: dict[int, int]) -> dict[int, list[Steps]]:
    """Step lines by attempt. ``starts``: per file the seq at which further attempts begin; ``attempt_of``: a file's first attempt."""
    result: dict[int, list[Steps]] = {}
    for file in files:
        series = file.series
        if series is None or not len(series):
            continue
        bounds = [0]
        for start in starts.get(file.number, []):
            index = bounds[-1]
            while index < len(series) and series.seq[index] < start:
                index += 1
            bounds.append(index)
        bounds.append(len(series))
        for number, (low, high) in enumerate(pairwise(bounds)):
            if high > low:
                result.setdefault(attempt_of.get(file.number, 1) + number, []).append(Steps(file, low, high))
    return result


def numerics(attempt: int, steps: Steps, *, finished: bool) -> Fact:
    """The fact ``series.numerics``; it stands where the first bad step stands, or at the last step where none is bad."""
    found = _Walk(steps)
    fields = found.fields(finished)
    index = found.onset if found.onset is not None else steps.last - 1
    series = steps.series
    epoch = series.epoch[index]
    text = series.text(index)
    return Fact(
        "series.numerics",
        with_computed("series.numerics", {key: value for key, value in fields.items() if value is not None}),
        Origin("log", steps.file.path, series.line[index], text),
        steps.file.rank,
        None,
        None if math.isnan(epoch) else _stamp(epoch),
        attempt,
        series.seq[index],
        f"numerics:{attempt}:{steps.file.number}",
    )


def _stamp(epoch: float) -> Stamp:
    from datetime import UTC, datetime

    return Stamp(
        epoch, datetime.fromtimestamp(epoch, UTC).replace(tzinfo=None).isoformat(timespec="milliseconds" if epoch % 1 else "seconds")
    )


class _Walk:
    """One walk over the steps; counts what the fields need."""

    def __init__(self, steps: Steps) -> None:
        columns, series = steps.series.columns, steps.series
        self.steps = len(steps)
        self.onset: int | None = None
        self.first_loss: float | None = None
        self.last_loss: float | None = None
        self.low, self.high, self.max_lr = math.inf, -math.inf, 0.0
        self.nan_steps = self.nan_grads = self.zero_grads = self.skipped = self.finite_before = 0
        self.first_nan: int | None = None
        self.first_nan_grad: int | None = None
        self.good_run = self.bad_run = self.skip_run = self.floor_run = 0
        self.scales: list[float] = []  # first, last, least, greatest
        self.late_skips = self.late = 0
        half = steps.first + self.steps // 2
        for i in range(steps.first, steps.last):
            loss, norm, scale = columns["loss"][i], columns["grad_norm"][i], columns["scale"][i]
            no_loss, no_norm = series.is_absent(i, "loss"), series.is_absent(i, "grad_norm")
            skipped = columns["skipped"][i] if not series.is_absent(i, "skipped") else 0.0
            iteration = int(columns["iteration"][i])
            nan_counted = not series.is_absent(i, "nan") and columns["nan"][i] > 0
            bad_norm = not no_norm and not math.isfinite(norm)
            bad_loss = (not no_loss and not math.isfinite(loss)) or nan_counted or (no_loss and bad_norm and skipped == 0)
            if not no_loss and math.isfinite(loss):
                self.first_loss = loss if self.first_loss is None else self.first_loss
                self.last_loss = loss
                self.low, self.high = min(self.low, loss), max(self.high, loss)
                self.finite_before += self.first_nan is None
            if bad_loss:
                self.nan_steps += 1
                self.first_nan = iteration if self.first_nan is None else self.first_nan
            if bad_norm:
                self.nan_grads += 1
                self.first_nan_grad = iteration if self.first_nan_grad is None else self.first_nan_grad
            if not no_norm and norm == 0.0:
                self.zero_grads += 1
            if (bad_loss or bad_norm) and self.onset is None:
                self.onset = i
            if skipped > 0:
                self.skipped += int(skipped)
            if i >= half:
                self.late += 1
                self.late_skips += skipped > 0
            bad = bad_loss or bad_norm
            self.bad_run = self.bad_run + 1 if bad else 0
            self.skip_run = self.skip_run + 1 if skipped > 0 else 0
            self.good_run = 0 if bad or skipped > 0 else self.good_run + 1
            if not series.is_absent(i, "scale") and not math.isnan(scale):
                self.scales = (
                    [scale, scale, scale, scale]
                    if not self.scales
                    else [self.scales[0], scale, min(self.scales[2], scale), max(self.scales[3], scale)]
                )
                self.floor_run = self.floor_run + 1 if scale <= FLOOR else 0
            if not series.is_absent(i, "lr") and math.isfinite(columns["lr"][i]):
                self.max_lr = max(self.max_lr, columns["lr"][i])

    def fields(self, finished: bool) -> dict[str, Any]:
        scaled = bool(self.scales) and self.scales[3] > FLOOR  # bf16 and fp32 print a constant 1.0
        trouble = self.nan_steps + self.nan_grads + self.skipped > 0
        return {
            "steps": self.steps,
            "first_loss": self.first_loss,
            "last_finite_loss": self.last_loss,
            "max_loss": self.high if self.high > -math.inf else None,
            "min_loss": self.low if self.low < math.inf else None,
            "rise": self.high / self.first_loss if self.first_loss and self.high > -math.inf and self.first_loss > 0 else None,
            "nan_steps": self.nan_steps,
            "first_nan_step": self.first_nan,
            "finite_before_nan": self.finite_before if self.first_nan is not None else None,
            "nan_grad_steps": self.nan_grads,
            "first_nan_grad_step": self.first_nan_grad,
            "nonfinite_at_end": self.bad_run > 0,
            "finite_loss_at_end": self.bad_run == 0 and self.last_loss is not None,
            "skipped_steps": self.skipped,
            "skipped_at_end": self.skip_run,
            "skipped_share": self.late_skips / self.late if self.late else 0.0,
            "scale_first": self.scales[0] if self.scales else None,
            "scale_last": self.scales[1] if self.scales else None,
            "scale_min": self.scales[2] if self.scales else None,
            "at_floor_steps": self.floor_run if scaled else 0,
            "recovered": trouble and self.good_run >= GOOD_AFTER,
            "zero_grad_steps": self.zero_grads,
            "finished": finished,
            "has_scale": scaled,
            "max_lr": self.max_lr or None,
        }
