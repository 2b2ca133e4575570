"""How each framework prints a simulated run: one function a shape, from a Trace to the lines of a log."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from tests.runs import GIB, Trace

Lines = list[str]
Printer = Callable[[Trace, int, random.Random], Lines]
START = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)
BAR = "█████████▌"


class Row:
    """One log interval: steps ``first`` to ``last`` (indices, half open)."""

    def __init__(self, trace: Trace, first: int, last: int, clock: float) -> None:
        self.trace, self.first, self.last, self.clock = trace, first, last, clock
        self.iteration = trace.iteration[last - 1]
        self.skipped = sum(trace.skipped[first:last])
        good = [trace.loss[i] for i in range(first, last) if not trace.skipped[i]]
        self.mean_loss = sum(good) / len(good) if good else None
        self.loss = trace.loss[last - 1]
        self.norm = None if trace.skipped[last - 1] else trace.norm[last - 1]  # not finite, so the step was skipped
        self.ms = _mean(trace.ms[first:last])
        self.data = _mean(trace.data[first:last])
        self.optimizer = _mean(trace.optimizer[first:last])
        self.lr, self.scale, self.memory = trace.lr[last - 1], trace.scale[last - 1], trace.memory[last - 1]

    def stamp(self, text: str) -> str:
        return (START + timedelta(seconds=self.clock)).strftime(text)


def _mean(values: list[float]) -> float:
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


def _number(value: float | None, form: str) -> str:
    return "nan" if value is None or math.isnan(value) else format(value, form)


def _megatron_start(stamp: bool, load: int | None) -> Lines:
    lines = [
        "using world size: 16, data-parallel size: 2, context-parallel size: 1, tensor-model-parallel size: 4, pipeline-model-parallel size: 2",
        "> initializing torch distributed ...",
        "time to initialize megatron (seconds): 12.345",
    ]
    if load is not None:
        lines += [f" loading checkpoint from /ckpt at iteration {load}", f"  successfully loaded checkpoint from /ckpt at iteration {load}"]
    return [*lines, "training ..."]


def megatron(trace: Trace, interval: int, rng: random.Random) -> Lines:
    return _megatron(trace, interval, rng, stamp=True)


def megatron_old(trace: Trace, interval: int, rng: random.Random) -> Lines:
    return _megatron(trace, interval, rng, stamp=False)


def _megatron(trace: Trace, interval: int, rng: random.Random, *, stamp: bool) -> Lines:
    lines = _megatron_start(stamp, None)
    total, batch = max(trace.iteration), rng.choice((64, 256, 1024))
    speed, timers, memory = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.5
    micro = f"[%Y-%m-%d %H:%M:%S{'.%f' if rng.random() < 0.5 else ''}]"
    flops = rng.uniform(200, 500) * _mean(sorted(trace.ms)[: len(trace.ms) // 2])
    loads = trace.data[-1] > 0.2 * trace.ms[-1]
    if trace.offload:
        lines[1:1] = [
            "------------------------ arguments ------------------------",
            "  optimizer_cpu_offload ........................... True",
            "  optimizer_offload_fraction ...................... 1.0",
            "-------------------- end of arguments ---------------------",
        ]
    for again, row in rows(trace, interval):
        if again:
            lines += [*_megatron_start(stamp, row.iteration - interval)]
        fields = [f" iteration {row.iteration:8d}/{total:8d}", f" consumed samples: {row.iteration * batch:12d}"]
        fields.append(f" elapsed time per iteration (ms): {row.ms:.1f}")
        if speed:
            fields.append(f" throughput per GPU (TFLOP/s/GPU): {flops / row.ms:.1f}")
        fields += [f" learning rate: {row.lr:.6E}" if stamp else f" learning rate: {row.lr:.3E}", f" global batch size: {batch:5d}"]
        if row.mean_loss is not None and not math.isnan(row.mean_loss):
            fields.append(f" lm loss: {row.mean_loss:.6E}")
        fields.append(f" loss scale: {row.scale:.1f}")
        if row.norm is not None:
            fields.append(f" grad norm: {_number(row.norm, '.3f')}")
        fields += [f" number of skipped iterations: {row.skipped:3d}", " number of nan iterations:   0"]
        lines.append((row.stamp(" " + micro) if stamp else "") + " |".join(fields) + " |")
        if memory or trace.grows:
            held, most = row.memory / 1024**2, max(row.memory, trace.memory[1]) * 1.05 / 1024**2
            lines += [
                f"[Rank {rank}] (after {row.iteration} iterations) memory (MB) | allocated: {held * share:.2f} | max allocated: {most * share:.2f} | "
                f"reserved: {most * share * 1.03:.2f} | max reserved: {most * share * 1.03:.2f}"
                for rank, share in ((0, 1.0), (8, 0.9))
            ]
        if timers or loads or trace.offload:
            work = row.ms - row.data - row.optimizer
            named = (("forward-backward", work + row.data), ("batch-generator", row.data), ("optimizer", row.optimizer))
            lines.append("(min, max) time across ranks (ms):")
            lines += [f"    {(name + ' ').ljust(48, '.')}: ({value * 0.98:.2f}, {value:.2f})" for name, value in named]
    return lines + _end(trace, row, rng)


def _end(trace: Trace, row: Row, rng: random.Random) -> Lines:
    if not trace.oom:
        return [row.stamp("[after training is done] datetime: %Y-%m-%d %H:%M:%S ")]
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


def megatron_deepspeed(trace: Trace, interval: int, rng: random.Random) -> Lines:
    lines = _megatron_start(False, None)
    total, batch = max(trace.iteration), 512
    for again, row in rows(trace, interval):
        if again:
            lines += [*_megatron_start(False, row.iteration - interval)]
        loss = f" lm loss: {row.mean_loss:.6E} |" if row.mean_loss is not None and not math.isnan(row.mean_loss) else ""
        norm = f" grad norm: {_number(row.norm, '.3f')} |" if row.norm is not None else ""
        lines.append(
            f" iteration {row.iteration:8d}/{total:8d} | consumed samples: {row.iteration * batch:12d} | consumed tokens: {row.iteration * batch * 2048:12d} | "
            f"elapsed time per iteration (ms): {row.ms:.1f} | learning rate: {row.lr:.3E} | global batch size: {batch:5d} |{loss} loss scale: {row.scale:.1f} |{norm} "
            f"actual seqlen:  2048 | number of skipped iterations: {row.skipped:3d} | number of nan iterations:   0 | "
            f"samples per second: {batch / row.ms * 1000:.3f} | tokens per gpu per second (tgs): {batch / row.ms * 128000:.3f} | TFLOPs: {3e5 / row.ms:.2f} |"
        )
        if row.data > 0.2 * row.ms:
            lines.append(
                f"time (ms) | forward-compute: {row.ms * 0.2:.2f} | batch-generator: {row.data:.2f} | optimizer: {row.optimizer:.2f}"
            )
    return lines + _end(trace, row, rng)


def deepspeed(trace: Trace, interval: int, rng: random.Random) -> Lines:
    lines = [
        "[2026-03-01 08:59:00,000] [INFO] [logging.py:123:log_dist] [Rank 0] DeepSpeed info: version=0.17.2, git-hash=unknown, git-branch=unknown",
        *_deepspeed_start(trace),
    ]
    batch, total = 64, 0
    breakdown = rng.random() < 0.3 or trace.offload or trace.data[-1] > 0.2 * trace.ms[-1]
    for again, row in rows(trace, interval):
        if again:
            path = f"/ckpt/global_step{row.iteration - interval}/mp_rank_00_model_states.pt"
            lines += [*_deepspeed_start(trace)]
            lines.append(
                f"[2026-03-01 11:00:00,000] [INFO] [torch_checkpoint_engine.py:29:load] [Torch] Begin Load checkpoint from {path}..."
            )
        total += row.skipped
        head = row.stamp("[%Y-%m-%d %H:%M:%S,%f")[:-3] + "] [INFO] "
        lines.append(f"{head}[logging.py:123:log_dist] [Rank 0] step={row.iteration}, skipped={total}, lr=[{row.lr}], mom=[(0.9, 0.95)]")
        rate = batch / (row.ms - row.data) * 1000  # its timer stands still between two steps
        lines.append(
            f"{head}[timer.py:264:stop] epoch=0/micro_step={row.iteration}/global_step={row.iteration}, RunningAvgSamplesPerSec={rate:.4f}, "
            f"CurrSamplesPerSec={rate}, MemAllocated={row.memory / GIB:.2f}GB, MaxMemAllocated={row.memory * 1.1 / GIB:.2f}GB"
        )
        if breakdown:
            busy = row.ms - row.data - row.optimizer
            lines.append(
                f"[Rank 0] time (ms) | fwd: {busy * 0.3:.2f} | bwd: {busy * 0.7:.2f} | bwd_inner: {busy * 0.6:.2f} | bwd_allreduce: {busy * 0.1:.2f} | step: {row.optimizer:.2f}"
            )
        lines += [
            f"{row.stamp('[%Y-%m-%d %H:%M:%S,200] [WARNING] ')}[stage3.py:2171:step] 2 pytorch allocator cache flushes since last step. this happens when "
            "there is high memory pressure and is detrimental to performance. if this is happening frequently consider adjusting settings to reduce memory consumption."
            for i in range(row.first, row.last)
            if i in trace.flushes
        ]
        loss, norm = _number(row.loss, ".4f"), "inf" if row.norm is None else _number(row.norm, ".6f")
        lines.append(f"iter {row.iteration} loss {loss} lr [{row.lr}] grad_norm {norm} skipped {total} scale {row.scale}")
    return lines + (
        _end(trace, row, rng)
        if trace.oom
        else [row.stamp("[%Y-%m-%d %H:%M:%S,999] [INFO] [launch.py:351:main] Process 4242 exits successfully.")]
    )


def _deepspeed_start(trace: Trace) -> Lines:
    lines = ["[2026-03-01 08:59:01,000] [INFO] [launch.py:163:main] dist_world_size=8"]
    if trace.offload:
        lines += [
            "[2026-03-01 08:59:02,000] [INFO] [config.py:1003:print_user_config]   json = {",
            '    "train_micro_batch_size_per_gpu": 8, ',
            '    "zero_optimization": {',
            '        "stage": 2, ',
            '        "offload_optimizer": {',
            '            "device": "cpu"',
            "        }",
            "    }",
            "}",
        ]
    return lines


def pipeline(trace: Trace, interval: int, rng: random.Random) -> Lines:
    lines = ["[2026-03-01 08:59:00,000] [INFO] [logging.py:123:log_dist] [Rank 0] DeepSpeed info: version=0.17.2", *_deepspeed_start(trace)]
    for _, row in rows(trace, interval):
        loss = _number(row.loss, ".4f")
        lines.append(f"steps: {row.iteration} loss: {loss} iter time (s): {row.ms / 1000:.3f} samples/sec: {64 / row.ms * 1000:.3f}")
    return lines


def trainer(trace: Trace, interval: int, rng: random.Random) -> Lines:
    """The Trainer of transformers: a dict a log interval, between redraws of its bar. It leaves NaN out of its means and prints 0.0."""
    text, total, quoted = "", max(trace.iteration), rng.random() < 0.3
    for _, row in rows(trace, interval):
        mean = _mean(trace.loss[row.first : row.last])
        loss = 0.0 if math.isnan(mean) else round(mean, 4)
        norm = "nan" if row.norm is None or math.isnan(row.norm) else f"{row.norm}"
        values = {"loss": f"{loss}", "grad_norm": norm, "learning_rate": f"{row.lr}", "epoch": f"{row.iteration / total:.2f}"}
        text += f"\r{_bar(row, total)}]" + "\r" + " " * 40 + "\r"
        text += "{" + ", ".join(f"'{key}': '{value}'" if quoted else f"'{key}': {value}" for key, value in values.items()) + "}\n"
    return [text + f"{{'train_runtime': {row.clock:.4f}, 'train_samples_per_second': 1.0, 'train_loss': 1.0, 'epoch': 1.0}}"]


def _bar(row: Row, total: int, more: str = "") -> str:
    rate = 1000 / row.ms
    pace = f"{rate:.2f}it/s" if rate >= 1 else f"{1 / rate:.2f}s/it"
    done, left = int(row.clock), int(row.clock / row.iteration * (total - row.iteration))
    return f"{100 * row.iteration // total:3d}%|{BAR}| {row.iteration}/{total} [{done // 60:02d}:{done % 60:02d}<{left // 60:02d}:{left % 60:02d}, {pace}{more}"


def bars(trace: Trace, interval: int, rng: random.Random) -> Lines:
    """Lightning: one bar, drawn over and over, with the loss behind it."""
    total, text = max(trace.iteration), ""
    for _, row in rows(trace, interval):
        loss = _number(row.loss, "#.3g" if row.loss < 100 else ".1f")
        text += f"\rEpoch 0: {_bar(row, total, f', v_num=3, train_loss={loss}')}]"
    return [text]


def nemo(trace: Trace, interval: int, rng: random.Random) -> Lines:
    total = max(trace.iteration)
    lines = ["[NeMo I 2026-03-01 09:00:00 nemo_logger:145] Experiments will be logged at /results"]
    for again, row in rows(trace, interval):
        if again:
            lines += ["[NeMo I 2026-03-01 11:00:00 nemo_logger:145] Experiments will be logged at /results"]
            lines.append(
                f"Restoring states from the checkpoint path at /results/checkpoints/model--step={row.iteration - interval}-last.ckpt"
            )
        lines.append(
            f"Training epoch 0, iteration {row.iteration}/{total} | lr: {row.lr:.4g} | global_batch_size: 512 | global_step: {row.iteration} | "
            f"reduced_train_loss: {_number(row.loss, '.4g')} | train_step_timing in s: {row.ms / 1000:.4g} | consumed_samples: {row.iteration * 512}"
        )
    return lines


def plain(trace: Trace, interval: int, rng: random.Random) -> Lines:
    waits = trace.data[-1] > 0.2 * trace.ms[-1]
    return [
        f"iter {row.iteration}: loss {_number(row.loss, '.4f')}, time {row.ms:.2f}ms, mfu 31.50%"
        + (f", data_time {row.data:.2f}ms" if waits else "")
        for _, row in rows(trace, interval)
    ]


def titan(trace: Trace, interval: int, rng: random.Random) -> Lines:
    lines = []
    for again, row in rows(trace, interval):
        head = row.stamp("[rank0]:[titan] %Y-%m-%d %H:%M:%S,123 - root - INFO - ")
        if again:
            lines += [
                f"{head}Starting job: Llama 3 8B training",
                f"{head}Loading the checkpoint from /ckpt/step-{row.iteration - interval}.",
            ]
        share = 100 * row.memory / trace.capacity
        lines.append(
            f"{head}step: {row.iteration:2}  loss: {_number(row.loss, '7.4f')}  grad_norm: {_number(row.norm, '7.4f')}  memory: {row.memory / GIB:5.2f}GiB({share:.2f}%)  "
            f"tps: {round(8192 * 1000 / row.ms):,}  tflops: {3e5 / row.ms:,.2f}  mfu: 30.00%"
        )
    return lines + (_end(trace, row, rng) if trace.oom else [f"{head}Training completed"])


SHAPES: dict[str, Printer] = {
    shape.__name__: shape for shape in (megatron, megatron_old, megatron_deepspeed, deepspeed, pipeline, trainer, bars, nemo, plain, titan)
}
