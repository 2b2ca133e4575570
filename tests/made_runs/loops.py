"""Loops that print a line of their own: NeMo 2, torchtitan, nanoGPT and its kind, dicts of metrics."""

from __future__ import annotations

import random

from tests.made_runs.rows import Lines, number, out_of_memory, rows
from tests.made_runs.trace import GIB, Trace


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
            f"reduced_train_loss: {number(row.loss, '.4g')} | train_step_timing in s: {row.ms / 1000:.4g} | consumed_samples: {row.iteration * 512}"
        )
        lines += ["Validation: iteration 1/10" for name in row.beats if name == "evaluation"]
    return lines


def plain(trace: Trace, interval: int, rng: random.Random) -> Lines:
    waits = trace.data[-1] > 0.2 * trace.ms[-1]
    lines = []
    for again, row in rows(trace, interval):
        lines += ["Resuming training from out"] if again else []
        lines.append(
            f"iter {row.iteration}: loss {number(row.loss, '.4f')}, time {row.ms:.2f}ms, mfu 31.50%"
            + (f", data_time {row.data:.2f}ms" if waits else "")
            + (f", aux_loss {row.aux:.4f}" if row.aux is not None else "")
        )
        for name in row.beats:
            lines.append(f"step {row.iteration}: train loss {number(row.loss, '.4f')}, val loss {number(row.loss * 1.02, '.4f')}")
            lines += ["saving checkpoint to out"] if name == "checkpoint" else []
    return lines


def dicts(trace: Trace, interval: int, rng: random.Random) -> Lines:
    """A loop, or a callback of Lightning's, that prints its metrics as a dict."""
    name, rate = rng.choice((("train_loss", "lr"), ("loss", "learning_rate"), ("train/loss", "lr")))
    lines = []
    for again, row in rows(trace, interval):
        lines += [f"Resuming from checkpoint /ckpt/step-{row.iteration - interval}"] if again else []
        lines.append(
            f"{{'step': {row.iteration}, '{name}': {number(row.loss, '.5f')}, '{rate}': {row.lr:.3e}, 'grad_norm': {number(row.norm, '.4f')}, "
            f"'step_time': {row.ms / 1000:.4f}" + (f", 'aux_loss': {row.aux:.4f}" if row.aux is not None else "") + "}"
        )
    return lines


def columns(trace: Trace, interval: int, rng: random.Random) -> Lines:
    """A loop whose numbers stand in columns, each padded to the width of its format."""
    lines = []
    for again, row in rows(trace, interval):
        lines += [f"Resuming from /ckpt/step-{row.iteration - interval}"] if again else []
        lines.append(
            f"step {row.iteration:>8d} | train loss {number(row.loss, '10.4f')} | lr {row.lr:.2e} | grad norm {number(row.norm, '12.4f')} | "
            f"{row.ms:9.2f} ms/it"
        )
    return lines


def titan(trace: Trace, interval: int, rng: random.Random) -> Lines:
    lines, head, retries = [], "", 0
    for again, row in rows(trace, interval):
        head = row.stamp("[rank0]:[titan] %Y-%m-%d %H:%M:%S,123 - root - INFO - ")
        if again:
            lines += [
                f"{head}Starting job: Llama 3 8B training",
                f"{head}Loading the checkpoint from /ckpt/step-{row.iteration - interval}.",
            ]
        most = max(trace.memory[row.first : row.last]) + trace.rise  # its count begins anew with each line
        share = 100 * most / trace.capacity
        lines.append(
            f"{head}step: {row.iteration:2}  loss: {number(row.loss, '7.4f')}  grad_norm: {number(row.norm, '7.4f')}  memory: {most / GIB:5.2f}GiB({share:.2f}%)  "
            f"tps: {round(8192 * 1000 / row.ms):,}  tflops: {3e5 / row.ms:,.2f}  mfu: 30.00%"
        )
        lines += [f"{head}Saving the checkpoint (or staging if async is enabled)." for name in row.beats if name == "checkpoint"]
        lines += [
            f"{head}validate step: {row.iteration:2}  loss: {row.loss * 1.02:7.4f}  memory: {most / GIB:5.2f}GiB({share:.2f}%)  tps: 9,321"
            for name in row.beats
            if name == "evaluation"
        ]
        retries += sum(i in trace.flushes for i in range(row.first, row.last))  # since the start
        if retries:
            lines.append(f"{head.replace('INFO', 'WARNING')}{retries} CUDA memory allocation retries.")
    return lines + (out_of_memory(trace) if trace.oom else [f"{head}Training completed"])
