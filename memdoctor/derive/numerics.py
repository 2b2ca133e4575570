"""What loss, gradient norm and loss scale of one attempt did: one fact ``series.numerics`` from its step lines."""

from __future__ import annotations

import math
from typing import Any

from memdoctor.catalog import with_computed
from memdoctor.derive.steps import Steps, steps_of
from memdoctor.model import Fact, Origin, Stamp

FLOOR = 1.0  # the least loss scale of Megatron-LM and DeepSpeed by default
GOOD_AFTER = 3  # finite steps at the end after which trouble counts as over
BLOCK = 1_024  # rows looked at together

__all__ = ["Steps", "numerics", "stamp_of", "steps_of"]


def numerics(attempt: int, steps: Steps, *, finished: bool) -> Fact:
    """The fact ``series.numerics``; it stands where the first bad step stands, or at the last step where none is bad."""
    found = _Walk(steps)
    fields = found.fields(finished)
    row = found.began() if found.began() is not None else len(steps) - 1
    assert row is not None
    epoch = steps.epoch(row)
    return Fact(
        "series.numerics",
        with_computed("series.numerics", {key: value for key, value in fields.items() if value is not None}),
        Origin("log", steps.file.path, steps.line(row), steps.text(row)),
        steps.file.rank,
        None,
        None if math.isnan(epoch) else stamp_of(epoch),
        attempt,
        steps.seq(row),
        f"numerics:{attempt}:{steps.file.number}",
    )


def stamp_of(epoch: float) -> Stamp:
    """Epoch seconds of a step line, which never has a zone, as a moment."""
    from datetime import UTC, datetime

    return Stamp(
        epoch, datetime.fromtimestamp(epoch, UTC).replace(tzinfo=None).isoformat(timespec="milliseconds" if epoch % 1 else "seconds")
    )


class _Walk:
    """One walk over the steps; counts what the fields need. Blocks in which nothing is wrong are taken at one stroke."""

    def __init__(self, steps: Steps) -> None:
        self.steps = len(steps)
        self.onset: int | None = None
        self.first_loss: float | None = None
        self.last_loss: float | None = None
        self.low, self.high, self.max_lr = math.inf, -math.inf, 0.0
        self.nan_steps = self.nan_grads = self.zero_grads = self.zero_losses = self.skipped = self.finite_before = 0
        self.first_nan: int | None = None
        self.first_nan_grad: int | None = None
        self.first_zero_loss: int | None = None
        self.trouble: int | None = None  # row at which the trouble that lasts to the end began
        self.before_zero: float | None = None  # the loss before the last run of zeros
        self.good_run = self.bad_run = self.skip_run = self.floor_run = self.zero_run = 0
        self.scales: list[float] = []  # first, last, least, greatest
        self.late_skips = self.late = 0
        self._half = self.steps // 2
        self._means = steps.shape == "dict"  # the Trainer prints the mean loss of an interval
        self._keyed = (
            steps.shape == "megatron"
        )  # its lines leave a loss out that is NaN; they end with the skipped steps, where nothing cut them
        self._iteration = steps.column("iteration")
        self._loss, self._norm, self._scale, self._lr = (steps.column(name) for name in ("loss", "grad_norm", "scale", "lr"))
        self._skipped, self._nan = steps.column("skipped"), steps.column("nan")
        self._masks = steps.masks
        self._no_loss, self._no_norm, self._cut = (steps.table.bit(name) for name in ("loss", "grad_norm", "skipped"))
        for first in range(0, self.steps, BLOCK):
            last = min(first + BLOCK, self.steps)
            if not self._clean(first, last):
                for row in range(first, last):
                    self._row(row)
        finite = [value for value in (self._largest_lr(first) for first in range(0, self.steps, BLOCK)) if value is not None]
        self.max_lr = max([0.0, *finite])

    def _largest_lr(self, first: int) -> float | None:
        part = self._lr[first : first + BLOCK]
        if not math.isfinite(sum(part)):
            return max((value for value in part if math.isfinite(value)), default=None)
        return float(max(part))

    def _clean(self, first: int, last: int) -> bool:
        """Take a block in which every loss and norm is finite and no step was skipped; False where it is not such a block."""
        loss, norm = self._loss[first:last], self._norm[first:last]
        without_norm = all(map(math.isnan, norm)) and all(mask & self._no_norm for mask in self._masks[first:last])
        if not math.isfinite(sum(loss)) or not (without_norm or math.isfinite(sum(norm))):
            return False
        if any(value > 0 for value in self._skipped[first:last]) or any(value > 0 for value in self._nan[first:last]) or 0.0 in loss:
            return False
        count = last - first
        if self.first_loss is None:
            self.first_loss = float(loss[0])
        self.last_loss = float(loss[-1])
        self.low, self.high = min(self.low, min(loss)), max(self.high, max(loss))
        self.finite_before += count if self.first_nan is None else 0
        self.zero_grads += norm.count(0.0)
        self.late += max(0, last - max(first, self._half))
        self.bad_run = self.skip_run = self.zero_run = 0
        self.trouble = None
        self.good_run += count
        scale = self._scale[first:last]
        if self.scales and scale.count(self.scales[1]) == count:
            self.floor_run = self.floor_run + count if self.scales[1] <= FLOOR else 0
        else:
            for value in scale:
                self._take_scale(value)
        return True

    def _take_scale(self, scale: float) -> None:
        if math.isnan(scale):
            return
        if not self.scales:
            self.scales = [scale, scale, scale, scale]
        elif scale != self.scales[1]:
            self.scales = [self.scales[0], scale, min(self.scales[2], scale), max(self.scales[3], scale)]
        self.floor_run = self.floor_run + 1 if scale <= FLOOR else 0

    def _row(self, row: int) -> None:
        loss, norm, mask = self._loss[row], self._norm[row], self._masks[row]
        no_loss, no_norm = bool(mask & self._no_loss), bool(mask & self._no_norm)
        skipped = self._skipped[row] if math.isfinite(self._skipped[row]) else 0.0
        if loss == 0 and skipped > 0:  # Megatron-LM from core 0.17 on: the mean over no steps
            loss, no_loss = math.nan, True
        iteration = int(self._iteration[row])
        bad_norm = not no_norm and not math.isfinite(norm)
        hidden = (
            no_loss and skipped == 0 and (bad_norm or (self._keyed and no_norm and not mask & self._cut and self.last_loss is not None))
        )
        bad_loss = (not no_loss and not math.isfinite(loss)) or self._nan[row] > 0 or hidden
        if not no_loss and math.isfinite(loss):
            loss = float(loss)
            self.first_loss = loss if self.first_loss is None else self.first_loss
            if loss == 0 and self.zero_run == 0:
                self.before_zero = self.last_loss
            self.last_loss = loss
            self.low, self.high = min(self.low, loss), max(self.high, loss)
            self.finite_before += self.first_nan is None
            if loss == 0:
                self.zero_losses += 1
                self.first_zero_loss = iteration if self.first_zero_loss is None else self.first_zero_loss
        self.zero_run = self.zero_run + 1 if loss == 0 else 0
        if bad_loss:
            self.nan_steps += 1
            self.first_nan = iteration if self.first_nan is None else self.first_nan
        if bad_norm:
            self.nan_grads += 1
            self.first_nan_grad = iteration if self.first_nan_grad is None else self.first_nan_grad
        if not no_norm and norm == 0.0:
            self.zero_grads += 1
        if (bad_loss or bad_norm) and self.onset is None:
            self.onset = row
        if skipped > 0:
            self.skipped += int(skipped)
        if row >= self._half:
            self.late += 1
            self.late_skips += skipped > 0
        bad = bad_loss or bad_norm
        if not (bad or skipped > 0 or loss == 0):
            self.trouble = None
        elif self.trouble is None:
            self.trouble = row
        self.bad_run = self.bad_run + 1 if bad else 0
        self.skip_run = self.skip_run + 1 if skipped > 0 else 0
        self.good_run = 0 if bad or skipped > 0 else self.good_run + 1
        self._take_scale(float(self._scale[row]))

    def began(self) -> int | None:
        """The row at which what is wrong began: the start of what lasts to the end, else the first bad step."""
        return self.trouble if self.trouble is not None else self.onset

    def _since(self, row: int) -> int:
        """The iteration at which it began: that of the row; but a mean that is exactly 0 holds no other step since the row before."""
        iteration = int(self._iteration[row])
        if row and self._loss[row] == 0 and self._means:
            return min(iteration, int(self._iteration[row - 1]) + 1)
        return iteration

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
            "bad_at_end": self.bad_run,
            "finite_loss_at_end": self.bad_run == 0 and self.last_loss is not None,
            "skipped_steps": self.skipped,
            "skipped_at_end": self.skip_run,
            "skipped_share": self.late_skips / self.late if self.late else 0.0,
            "scale_first": self.scales[0] if self.scales else None,
            "scale_last": self.scales[1] if self.scales else None,
            "scale_min": self.scales[2] if self.scales else None,
            "at_floor_steps": self.floor_run if scaled else 0,
            "recovered": trouble and self.good_run >= GOOD_AFTER,
            "zero_grad_steps": self.zero_grads or None,
            "zero_loss_steps": self.zero_losses,
            "zero_loss_at_end": self.zero_run,
            "first_zero_loss_step": self.first_zero_loss,
            "loss_before_zero": self.before_zero if self.zero_run else None,
            "iteration": self._since(row) if (row := self.began()) is not None else None,
            "finished": finished,
            "has_scale": scaled,
            "max_lr": self.max_lr or None,
        }
