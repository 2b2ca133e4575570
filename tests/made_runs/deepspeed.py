"""DeepSpeed's own lines with those of the loop around it, and its pipeline's."""

from __future__ import annotations

import random

from tests.made_runs.rows import Lines, number, out_of_memory, rows
from tests.made_runs.trace import GIB, Trace


def deepspeed(trace: Trace, interval: int, rng: random.Random) -> Lines:
    lines = [
        "[2026-03-01 08:59:00,000] [INFO] [logging.py:123:log_dist] [Rank 0] DeepSpeed info: version=0.17.2, git-hash=unknown, git-branch=unknown",
        *_start(trace),
    ]
    batch, total = 64, 0
    breakdown = rng.random() < 0.3 or trace.offload is not None or trace.data[-1] > 0.2 * trace.ms[-1]
    row = None
    for again, row in rows(trace, interval):
        if again:
            path = f"/ckpt/global_step{row.iteration - interval}/mp_rank_00_model_states.pt"
            lines += [*_start(trace)]
            lines.append(
                f"[2026-03-01 11:00:00,000] [INFO] [torch_checkpoint_engine.py:29:load] [Torch] Begin Load checkpoint from {path}..."
            )
        total += row.skipped
        head = row.stamp("[%Y-%m-%d %H:%M:%S,%f")[:-3] + "] [INFO] "
        lines.append(f"{head}[logging.py:123:log_dist] [Rank 0] step={row.iteration}, skipped={total}, lr=[{row.lr}], mom=[(0.9, 0.95)]")
        rate = batch / (row.ms - row.data) * 1000  # its timer stands still between two steps
        lines.append(
            f"{head}[timer.py:264:stop] epoch=0/micro_step={row.iteration}/global_step={row.iteration}, RunningAvgSamplesPerSec={rate:.4f}, "
            f"CurrSamplesPerSec={rate}, MemAllocated={row.memory / GIB:.2f}GB, MaxMemAllocated={row.peak / GIB:.2f}GB"
        )
        if breakdown:
            busy = row.ms - row.data - row.optimizer
            lines.append(
                f"[Rank 0] time (ms) | fwd: {busy * 0.3:.2f} | bwd: {busy * 0.7:.2f} | bwd_inner: {busy * 0.6:.2f} | bwd_allreduce: {busy * 0.1:.2f} | step: {row.optimizer:.2f}"
            )
        if trace.offload == "nvme":
            lines.append(
                f"[Rank 0] time (ms) | optimizer_swap_in_state: {row.optimizer * 0.5:.2f} | optimizer_swap_out_state: {row.optimizer * 0.4:.2f}"
            )
        lines += [
            f"{row.stamp('[%Y-%m-%d %H:%M:%S,200] [WARNING] ')}[stage3.py:2171:step] 2 pytorch allocator cache flushes since last step. this happens when "
            "there is high memory pressure and is detrimental to performance. if this is happening frequently consider adjusting settings to reduce memory consumption."
            for i in range(row.first, row.last)
            if i in trace.flushes
        ]
        loss, norm = number(row.loss, ".4f"), "inf" if row.norm is None else number(row.norm, ".6f")
        experts = "" if row.aux is None else f" aux_loss {row.aux:.4f}"
        lines.append(f"iter {row.iteration} loss {loss} lr [{row.lr}] grad_norm {norm} skipped {total} scale {row.scale}{experts}")
        lines += [
            f"{head}[torch_checkpoint_engine.py:21:create] [Torch] Checkpoint global_step{row.iteration} is about to be saved!"
            for name in row.beats
            if name == "checkpoint"
        ]
        lines += ["***** Running evaluation *****" for name in row.beats if name == "evaluation"]
    if trace.oom or row is None:
        return lines + out_of_memory(trace)
    return [*lines, row.stamp("[%Y-%m-%d %H:%M:%S,999] [INFO] [launch.py:351:main] Process 4242 exits successfully.")]


def _start(trace: Trace) -> Lines:
    lines = ["[2026-03-01 08:59:01,000] [INFO] [launch.py:163:main] dist_world_size=8"]
    if trace.offload:
        lines += [
            "[2026-03-01 08:59:02,000] [INFO] [config.py:1003:print_user_config]   json = {",
            '    "train_micro_batch_size_per_gpu": 8, ',
            '    "zero_optimization": {',
            '        "stage": 2, ',
            '        "offload_optimizer": {',
            f'            "device": "{trace.offload}"',
            "        }",
            "    }",
            "}",
        ]
    return lines


def pipeline(trace: Trace, interval: int, rng: random.Random) -> Lines:
    lines = ["[2026-03-01 08:59:00,000] [INFO] [logging.py:123:log_dist] [Rank 0] DeepSpeed info: version=0.17.2", *_start(trace)]
    for _, row in rows(trace, interval):
        loss = number(row.loss, ".4f")
        lines.append(f"steps: {row.iteration} loss: {loss} iter time (s): {row.ms / 1000:.3f} samples/sec: {64 / row.ms * 1000:.3f}")
        lines += [
            f"Saving model checkpoint: /ckpt/global_step{row.iteration}/layer_00-model_states.pt"
            for each in row.beats
            if each == "checkpoint"
        ]
    return lines
