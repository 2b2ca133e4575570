"""Megatron-LM's log, version by version, and that of Megatron-DeepSpeed."""

from __future__ import annotations

import math
import random

from tests.made_runs.rows import Lines, Row, mean, number, out_of_memory, rows
from tests.made_runs.trace import Trace

VERSIONS = ("2.5", "0.4", "0.9", "0.15", "0.18")


class Megatron:
    """One log: which of its options the run has is drawn from ``rng``."""

    def __init__(self, trace: Trace, interval: int, rng: random.Random, version: str) -> None:
        self.trace, self.interval, self.version = trace, interval, version
        self.number = VERSIONS.index(version)
        self.total, self.batch = max(trace.iteration), rng.choice((64, 256, 1024))
        self.throughput, self.norms, self.energy = rng.random() < 0.5, rng.random() < 0.3, rng.random() < 0.2
        self.memory = rng.random() < 0.5 or trace.grows
        self.timers = rng.random() < 0.5 or trace.data[-1] > 0.2 * trace.ms[-1] or trace.offload is not None
        self.option = rng.choice(("minmax", "minmax", "max"))
        self.flops = rng.uniform(200, 500) * mean(sorted(trace.ms)[: len(trace.ms) // 2])
        self.known = False  # this process has logged a loss

    def lines(self) -> Lines:
        result = self._start(None)
        row = None
        for again, row in rows(self.trace, self.interval):
            if again:
                result += self._start(row.iteration - self.interval)
            if self.number >= 4 and self.interval > 1 and (again or row.first == 0):
                result += [
                    self._iteration(Row(self.trace, row.first, row.first + 1, row.clock - row.ms * (row.last - row.first - 1) / 1000))
                ]
            result += [self._iteration(row), *self._beside(row)]
            result += self._memory(row) if self.memory else []
            result += self._timers(row) if self.timers else []
        if self.trace.oom or row is None:
            return result + out_of_memory(self.trace)
        return [*result, row.stamp("[after training is done] datetime: %Y-%m-%d %H:%M:%S ")]

    def _start(self, load: int | None) -> Lines:
        self.known = False
        comma = "" if self.version == "0.4" else ","
        arguments = dict(self.trace.arguments)
        if self.trace.offload:
            arguments |= {"optimizer_cpu_offload": True, "optimizer_offload_fraction": 1.0}
        dump = [
            "------------------------ arguments ------------------------",
            *(f"  {(name + ' ').ljust(48, '.')} {arguments[name]}" for name in sorted(arguments)),
            "-------------------- end of arguments ---------------------",
        ]
        return [
            f"using world size: 16, data-parallel size: 2, context-parallel size: 1{comma} tensor-model-parallel size: 4, pipeline-model-parallel size: 2",
            *(dump if arguments else []),
            "> initializing torch distributed ...",
            "time to initialize megatron (seconds): 12.345",
            *([] if load is None else self._load(load)),
            "training ...",
        ]

    def _load(self, step: int) -> Lines:
        if self.number < 3:
            return [
                f" loading checkpoint from /ckpt at iteration {step}",
                f"  successfully loaded checkpoint from /ckpt at iteration {step}",
            ]
        return [
            f" loading distributed checkpoint from /ckpt at iteration {step}",
            " checkpoint version 3.0",
            f"  successfully loaded checkpoint from /ckpt [ t 1/4, p 1/2 ] at iteration {step}",
        ]

    def _iteration(self, row: Row) -> str:
        fields = [f" iteration {row.iteration:8d}/{self.total:8d}", f" consumed samples: {row.iteration * self.batch:12d}"]
        if self.version == "2.5":
            fields.append(f" consumed tokens: {row.iteration * self.batch * 2048:12d}")
        fields.append(f" elapsed time per iteration (ms): {row.ms:.1f}")
        if self.throughput and self.number >= 2:
            fields.append(f" throughput per GPU (TFLOP/s/GPU): {self.flops * (row.batch or 64) / 64 / row.ms:.1f}")
        if self.energy and self.number >= 3:
            fields += [f" energy per GPU (J/iter/GPU): {row.ms * 0.6:.1f}", " power per GPU (W/GPU): 600.0"]
        fields.append(f" learning rate: {row.lr:.3E}" if self.number < 2 else f" learning rate: {row.lr:.6E}")
        fields.append(f" global batch size: {row.batch or self.batch:5d}")
        fields += self._losses(row)
        fields.append(f" loss scale: {row.scale:.1f}")
        if row.norm is not None:
            fields.append(f" grad norm: {number(row.norm, '.3f')}")
        if self.norms:
            fields += [f" num zeros: {1234.0 if self.number < 3 else 1234}", f" params norm: {1000 + 0.01 * row.iteration:.3f}"]
        fields += [f" number of skipped iterations: {row.skipped:3d}", f" number of nan iterations: {row.nan_steps:3d}"]
        stamps = ("", "", " [%Y-%m-%d %H:%M:%S]", " [%Y-%m-%d %H:%M:%S]", " [%Y-%m-%d %H:%M:%S.%f]")
        return row.stamp(stamps[self.number]) + " |".join(fields) + " |"

    def _beside(self, row: Row) -> Lines:
        """Evaluations and saves: this framework leaves them out of the time of a step."""
        lines = []
        for name in row.beats:
            if name == "evaluation":
                text = f" validation loss at iteration {row.iteration} | lm loss value: {row.loss:.6E} | lm loss PPL: {math.exp(min(20, row.loss or 1)):.6E} | "
                lines += ["-" * len(text), text, "-" * len(text)]
            else:
                lines += [
                    f"saving checkpoint at iteration {row.iteration:7d} to /ckpt",
                    f"  successfully saved checkpoint from iteration {row.iteration:7d} to /ckpt",
                ]
        return lines

    def _losses(self, row: Row) -> Lines:
        """A mean that is not above 0 is left out; from core 0.17 on a 0 is printed, and that is what a row without a step has."""
        loss, told = row.mean_loss, []
        if loss is not None and not math.isnan(loss):
            told.append(f" lm loss: {loss:.6E}")
            self.known = True
        elif loss is None and self.known and self.number >= 4:
            told.append(" lm loss: 0.000000E+00")
        if row.aux is not None and self.number >= 2:
            told.append(f" load_balancing_loss: {row.aux:.6E}")
        return told

    def _memory(self, row: Row) -> Lines:
        held, most = row.memory / 1024**2, row.peak / 1024**2
        form = "" if self.number < 4 else ".2f"
        return [
            f"[Rank {rank}] (after {row.iteration} iterations) memory (MB) | allocated: {held * share:{form}} | "
            f"max allocated: {most * share:{form}} | reserved: {most * share * 1.03:{form}} | max reserved: {most * share * 1.03:{form}}"
            for rank, share in ((0, 1.0), (8, 0.9))
        ]

    def _timers(self, row: Row) -> Lines:
        work = row.ms - row.data - row.optimizer
        named = (("forward-backward", work + row.data), ("batch-generator", row.data), ("optimizer", row.optimizer))
        if self.version == "2.5":
            return ["time (ms) | " + " | ".join(f"{name}: {value:.2f}" for name, value in named)]
        prefix = "INFO:megatron.core.timers:" if self.number >= 4 else ""
        if self.option == "max":
            return [f"{prefix}max time across ranks (ms):", *(f"    {(name + ' ').ljust(48, '.')}: {value:.2f}" for name, value in named)]
        return [
            f"{prefix}(min, max) time across ranks (ms):",
            *(f"    {(name + ' ').ljust(48, '.')}: ({value * 0.98:.2f}, {value:.2f})" for name, value in named),
        ]


def megatron_2(trace: Trace, interval: int, rng: random.Random) -> Lines:
    return Megatron(trace, interval, rng, rng.choice(VERSIONS[:2])).lines()


def megatron_09(trace: Trace, interval: int, rng: random.Random) -> Lines:
    return Megatron(trace, interval, rng, rng.choice(VERSIONS[2:4])).lines()


def megatron(trace: Trace, interval: int, rng: random.Random) -> Lines:
    return Megatron(trace, interval, rng, VERSIONS[4]).lines()


def megatron_deepspeed(trace: Trace, interval: int, rng: random.Random) -> Lines:
    start = Megatron(trace, interval, rng, "2.5")
    lines = start._start(None)
    total, batch = max(trace.iteration), 512
    for again, row in rows(trace, interval):
        if again:
            lines += start._start(row.iteration - interval)
        mean_loss = row.mean_loss
        loss = f" lm loss: {mean_loss:.6E} |" if mean_loss is not None and not math.isnan(mean_loss) else ""
        norm = f" grad norm: {number(row.norm, '.3f')} |" if row.norm is not None else ""
        lines.append(
            f" iteration {row.iteration:8d}/{total:8d} | consumed samples: {row.iteration * batch:12d} | consumed tokens: {row.iteration * batch * 2048:12d} | "
            f"elapsed time per iteration (ms): {row.ms:.1f} | learning rate: {row.lr:.3E} | global batch size: {row.batch or batch:5d} |{loss} loss scale: {row.scale:.1f} |{norm} "
            f"actual seqlen:  2048 | number of skipped iterations: {row.skipped:3d} | number of nan iterations: {row.nan_steps:3d} | "
            f"samples per second: {(row.batch or batch) / row.ms * 1000:.3f} | tokens per gpu per second (tgs): {(row.batch or batch) / row.ms * 128000:.3f} | TFLOPs: {3e5 * (row.batch or 64) / row.ms:.2f} |"
        )
        if row.data > 0.2 * row.ms:
            lines.append(
                f"time (ms) | forward-compute: {row.ms * 0.2:.2f} | batch-generator: {row.data:.2f} | optimizer: {row.optimizer:.2f}"
            )
    return lines
