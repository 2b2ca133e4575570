"""Stretches of step lines without a break: what a restart, a second epoch and several printing ranks do to the row of iterations."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice, pairwise
from operator import le
from typing import Any

from memdoctor.derive.series.robust import median
from memdoctor.derive.steps import Steps

CROWDED = 0.3  # share of lines that repeat the iteration before from which on several ranks are taken to print
ENDS = 5  # lines at the end of one epoch and at the beginning of the next whose losses are compared
NEAR = 1.3  # a loss that is at most so much above the end of the epoch before goes on with it


class Segment:
    """Rows of one attempt in one file in which the iteration never falls. ``rows`` are places within ``steps``.

    ``times`` are iterations that grow throughout: those printed, but counted on where each epoch starts from the beginning.
    """

    def __init__(
        self, steps: Steps, rows: Sequence[int], groups: Sequence[Sequence[int]] | None = None, times: Sequence[float] | None = None
    ) -> None:
        self.steps, self.rows = steps, rows
        self._groups = groups  # rows of the same iteration, where several ranks print
        self._values: dict[str, Sequence[float]] = {}
        self.times: Sequence[float] = self.values("iteration") if times is None else times

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, name: str) -> Sequence[float]:
        """A column, NaN where a line does not tell it; of several ranks the median."""
        found = self._values.get(name)
        if found is None:
            column = self.steps.column(name)
            if self._groups is not None and name != "iteration":
                found = array("d", [_middle([column[row] for row in group]) for group in self._groups])
            elif isinstance(self.rows, range) and self.rows.step == 1:
                found = column if len(self.rows) == len(column) else column[self.rows.start : self.rows.stop]
            else:
                found = array("d", [column[row] for row in self.rows])
            self._values[name] = found
        return found

    def has(self, name: str) -> bool:
        return self.steps.has(name)

    def printed(self, place: int) -> int:
        """The iteration as printed."""
        return int(self.values("iteration")[place])

    @property
    def interval(self) -> float:
        """Iterations from one line to the next, as a rule."""
        sample = self.times[:2_000]
        gaps = [after - before for before, after in pairwise(sample) if after > before]
        return median(gaps) if gaps else 1.0


def _middle(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return median(known) if known else math.nan


def segments_of(steps: Steps, loads: Sequence[int] = ()) -> list[Segment]:
    """The segments, in order. Epochs that count from the beginning again make one. ``loads``: lines at which a checkpoint was loaded."""
    cuts = sorted({bisect_left(steps.lines, line) for line in loads} - {0, len(steps)})
    if cuts:
        bounds = [0, *cuts, len(steps)]
        return [segment for first, last in pairwise(bounds) for segment in segments_of(_part(steps, first, last))]
    iterations = _through(steps)
    count = len(iterations)
    if all(map(le, iterations, islice(iterations, 1, None))):
        repeated = sum(map(_equal, iterations, islice(iterations, 1, None))) if count > 3 else 0
        if repeated <= CROWDED * count:
            return [Segment(steps, range(count), times=iterations)]
        return [_by_iteration(steps, iterations)]
    falls = [place for place, (before, after) in enumerate(pairwise(iterations), 1) if after < before]
    repeated = sum(map(_equal, iterations, islice(iterations, 1, None)))
    if len(falls) + repeated > CROWDED * count and count > 3:
        return [_by_iteration(steps, iterations)]
    bounds = [0, *falls, count]
    return _joined([Segment(steps, range(first, last), times=iterations[first:last]) for first, last in pairwise(bounds)])


def _through(steps: Steps) -> Sequence[Any]:
    """The iterations; of lines such as ``epoch 4 | iter 184/272``, where each epoch counts them anew, those of the epochs before are added."""
    iterations: Sequence[Any] = steps.column("iteration")
    if not (steps.has("of") and len(iterations) > 1):
        return iterations
    of, epochs = steps.column("of"), steps.column("in_epoch")
    anew = any(
        later > sooner and after <= before for (sooner, later), (before, after) in zip(pairwise(epochs), pairwise(iterations), strict=True)
    )
    if not anew or any(math.isnan(epoch) or not iteration <= total for epoch, iteration, total in zip(epochs, iterations, of, strict=True)):
        return iterations
    first = min(epochs)
    return array("d", [(epoch - first) * total + iteration for epoch, iteration, total in zip(epochs, iterations, of, strict=True)])


def _part(steps: Steps, first: int, last: int) -> Steps:
    return Steps(steps.file, steps.first + first, steps.first + last)


def _equal(one: float, other: float) -> bool:
    return one == other


def _by_iteration(steps: Steps, iterations: Sequence[float]) -> Segment:
    groups: dict[float, list[int]] = {}
    for row, iteration in enumerate(iterations):
        groups.setdefault(iteration, []).append(row)
    ordered = sorted(groups)
    return Segment(steps, [groups[iteration][0] for iteration in ordered], [groups[iteration] for iteration in ordered], ordered)


def _joined(segments: list[Segment]) -> list[Segment]:
    """Epochs put together: segments that all begin where the first began and whose loss goes on."""
    result: list[Segment] = []
    first = segments[0]
    for run in _runs(segments):
        begin, end = run[0].rows, run[-1].rows
        assert isinstance(begin, range)
        assert isinstance(end, range)
        times = array("d", run[0].times)
        for segment in run[1:]:
            shift = times[-1] - segment.times[0] + run[0].interval
            times.extend([time + shift for time in segment.times])
        result.append(run[0] if len(run) == 1 else Segment(first.steps, range(begin.start, end.stop), times=times))
    return result


def _runs(segments: list[Segment]) -> list[list[Segment]]:
    """Segments of which each but the first of a run is the next epoch of the one before."""
    latest = segments[0].times[0] + 2 * segments[0].interval
    result: list[list[Segment]] = []
    for segment in segments:
        if result and segment.times[0] <= latest and _goes_on(result[-1], segment):
            result[-1].append(segment)
        else:
            result.append([segment])
    return result


def _goes_on(run: list[Segment], after: Segment) -> bool:
    """Whether the loss of ``after`` begins about where that of the run ended."""
    begin, end = run[0].rows, run[-1].rows
    if end[-1] == begin[0]:  # one line tells of no epoch
        return False
    loss = after.steps.column("loss")
    ended = [value for value in loss[max(begin[0], end[-1] + 1 - ENDS) : end[-1] + 1] if math.isfinite(value)]
    begun = [value for value in after.values("loss")[:ENDS] if math.isfinite(value)]
    return bool(ended and begun) and median(begun) <= max(NEAR * median(ended), median(ended))
