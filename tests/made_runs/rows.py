"""Log intervals of a simulated run: what a framework that logs every so many steps knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from tests.made_runs.trace import GIB, Trace

Lines = list[str]
START = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)


class Row:
    """One log interval: steps ``first`` to ``last`` (indices, half open)."""

    def __init__(self, trace: Trace, first: int, last: int, clock: float) -> None:
        self.trace, self.first, self.last, self.clock = trace, first, last, clock
        self.iteration = trace.iteration[last - 1]
        self.skipped = sum(trace.skipped[first:last])
        self.loss = trace.loss[last - 1]
        self.norm = None if trace.skipped[last - 1] else trace.norm[last - 1]  # not finite, so the step was skipped
        self.ms = mean(trace.ms[first:last])
        self.data = mean(trace.data[first:last])
        self.optimizer = mean(trace.optimizer[first:last])
        self.lr, self.scale, self.memory = trace.lr[last - 1], trace.scale[last - 1], trace.memory[last - 1]
        self.peak = max(trace.memory[:last]) + trace.rise

    @property
    def mean_loss(self) -> float | None:
        """Over the steps that were taken; None where there were none."""
        taken = [self.trace.loss[i] for i in range(self.first, self.last) if not self.trace.skipped[i]]
        return mean(taken) if taken else None

    @property
    def nan_steps(self) -> int:
        """Skipped steps whose loss was NaN."""
        return sum(self.trace.skipped[i] and math.isnan(self.trace.loss[i]) for i in range(self.first, self.last))

    @property
    def aux(self) -> float | None:
        return mean(self.trace.aux[self.first : self.last]) if self.trace.aux else None

    @property
    def batch(self) -> int | None:
        return self.trace.batch[self.last - 1] if self.trace.batch else None

    @property
    def beats(self) -> list[str]:
        return [self.trace.beats[i] for i in range(self.first, self.last) if i in self.trace.beats]

    def stamp(self, text: str) -> str:
        return (START + timedelta(seconds=self.clock)).strftime(text)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def rows(trace: Trace, interval: int) -> Iterator[tuple[bool, Row]]:
    """The rows of a run, and whether each is the first after a restart."""
    first, clock, again = 0, 0.0, False
    for i in range(len(trace.loss)):
        if i == trace.restart:
            first, clock, again = i, clock + 300, True
        clock += trace.ms[i] / 1000
        if trace.iteration[i] % interval == 0:
            yield again, Row(trace, first, i + 1, clock)
            first, again = i + 1, False


def number(value: float | None, form: str) -> str:
    """As Python prints it: what is no number is padded to the width of the format, too."""
    return format(math.nan if value is None else value, form)


def out_of_memory(trace: Trace) -> Lines:
    tried, held = 512 * 1024**2, trace.capacity * 0.97
    return [
        "Traceback (most recent call last):",
        '  File "/workspace/pretrain_gpt.py", line 301, in <module>',
        "    pretrain(train_valid_test_datasets_provider, model_provider)",
        '  File "/workspace/megatron/core/transformer/mlp.py", line 140, in forward',
        "    intermediate = self.activation_func(intermediate)",
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried / 1024**2:.2f} MiB. GPU 0 has a total capacity of "
        f"{trace.capacity / GIB:.2f} GiB of which 100.00 MiB is free. Including non-PyTorch memory, this process has "
        f"{trace.capacity / GIB - 0.1:.2f} GiB memory in use. Of the allocated memory {held / GIB:.2f} GiB is allocated by PyTorch, and "
        "200.00 MiB is reserved by PyTorch but unallocated.",
    ]


Printer = Callable[..., Lines]
