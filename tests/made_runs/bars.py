"""Progress bars: the Trainer of transformers with its dicts between them, Lightning, NeMo 1, and tqdm with a loop's own words behind it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from tests.made_runs.rows import Lines, Row, number, rows
from tests.made_runs.trace import Trace

BAR = "█████████▌"


def bar(row: Row, total: int, more: str = "") -> str:
    rate = 1000 / row.ms
    pace = f"{rate:.2f}it/s" if rate >= 1 else f"{1 / rate:.2f}s/it"
    done, left = int(row.clock), int(row.clock / row.iteration * (total - row.iteration))
    return f"{100 * row.iteration // total:3d}%|{BAR}| {row.iteration}/{total} [{done // 60:02d}:{done % 60:02d}<{left // 60:02d}:{left % 60:02d}, {pace}{more}"


def filtered_mean(losses: Sequence[float]) -> float:
    """The Trainer puts the mean so far, thinned out by one, in the place of a loss that is no number: 0.0 where all are."""
    total = 0.0
    for place, loss in enumerate(losses):
        total += loss if math.isfinite(loss) else total / (1 + place)
    return total / len(losses)


def trainer(trace: Trace, interval: int, rng: random.Random) -> Lines:
    """The Trainer of transformers: a dict a log interval, between redraws of its bar."""
    text, total = "", max(trace.iteration)
    quoted, normed = rng.random() < 0.3, rng.random() < 0.75  # of version 5; before 4.38 there was no norm
    normed = normed or (not any(math.isnan(value) for value in trace.loss) and any(math.isnan(value) for value in trace.norm))
    for again, row in rows(trace, interval):
        text += f"Loading model from /out/checkpoint-{row.iteration - interval}.\n***** Running training *****\n" if again else ""
        loss = round(filtered_mean(trace.loss[row.first : row.last]), 4)
        norm = "nan" if row.norm is None or math.isnan(row.norm) else f"{row.norm}"
        values = {"loss": f"{loss}", "grad_norm": norm, "learning_rate": f"{row.lr}", "epoch": f"{row.iteration / total:.2f}"}
        if not normed:
            del values["grad_norm"]
        text += f"\r{bar(row, total)}]" + "\r" + " " * 40 + "\r"
        text += "{" + ", ".join(f"'{key}': '{value}'" if quoted else f"'{key}': {value}" for key, value in values.items()) + "}\n"
        for name in row.beats:
            if name == "evaluation":
                text += f"{{'eval_loss': {loss}, 'eval_runtime': {row.ms * 2e-3:.4f}, 'eval_samples_per_second': 50.0, 'epoch': {row.iteration / total:.2f}}}\n"
            else:
                text += f"Saving model checkpoint to /out/checkpoint-{row.iteration}\n"
    return [text + f"{{'train_runtime': {row.clock:.4f}, 'train_samples_per_second': 1.0, 'train_loss': 1.0, 'epoch': 1.0}}"]


def lightning(trace: Trace, interval: int, rng: random.Random) -> Lines:
    """One bar, drawn over and over, with the loss behind it."""
    total, text = max(trace.iteration), ""
    for again, row in rows(trace, interval):
        text += f"\nRestoring states from the checkpoint path at /results/step={row.iteration - interval}.ckpt\n" if again else ""
        loss = number(row.loss, "#.3g" if row.loss < 100 else ".1f")
        text += f"\rEpoch 0: {bar(row, total, f', v_num=3, train_loss={loss}')}]"
        text += "".join("\rValidation DataLoader 0:   0%|          | 0/10 [00:00<?, ?it/s]" for name in row.beats if name == "evaluation")
    return [text]


def nemo_1(trace: Trace, interval: int, rng: random.Random) -> Lines:
    """NeMo 1: Lightning's bar with what it logs behind it."""
    total, text = max(trace.iteration), "[NeMo I 2024-03-01 09:00:00 nemo_logging:381] Experiments will be logged at /results\n"
    for _, row in rows(trace, interval):
        more = (
            f", v_num=1-00, reduced_train_loss={number(row.loss, '.3f')}, global_step={row.iteration - 1}.0, "
            f"consumed_samples={row.iteration * 512}.0, train_step_timing in s={row.ms / 1000:.3f}"
        )
        text += f"\rEpoch 0: : {bar(row, total, more)}]"
    return [text]


def tqdm(trace: Trace, interval: int, rng: random.Random) -> Lines:
    """A loop's own bar with a postfix, redrawn in place or, where the output is a file, with a line each."""
    total, end = max(trace.iteration), rng.choice(("\r", "\n"))
    normed, title = rng.random() < 0.5, rng.choice(("", "Training: ", "Steps: "))
    text = ""
    for again, row in rows(trace, interval):
        text += f"\nResumed from checkpoint: /ckpt/step-{row.iteration - interval}\n" if again else ""
        more = f", loss={number(row.loss, '.4f')}, lr={row.lr:.2e}" + (f", grad_norm={number(row.norm, '.3f')}" if normed else "")
        text += f"{title}{bar(row, total, more)}]{end}"
    return [text]
