"""Arguments and lines that nobody's job prints must neither hang memdoctor nor break it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memdoctor.derive.story import tell
from memdoctor.sources.logs.collect import read_logs
from tests.derive.stages.test_layouts import facts_of, signals
from tests.pipelines import Pipeline

HUGE = "99999999999"
NAMES = (
    "num_layers", "hidden_size", "num_attention_heads", "pipeline_model_parallel_size", "tensor_model_parallel_size", "data_parallel_size",
    "global_batch_size", "micro_batch_size", "virtual_pipeline_model_parallel_size", "seq_length", "padded_vocab_size", "ffn_hidden_size", "world_size",
)  # fmt: skip
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.66 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is free.\n"


@pytest.mark.parametrize("value", [HUGE, "-1", "0", "nan", "inf", "1e400", "[1, 2", "None", ""])
@pytest.mark.parametrize("name", NAMES)
def test_an_absurd_argument(name: str, value: str, tmp_path: Path) -> None:
    job = Pipeline(1, 4, 1, (8,) * 4, logits_ms=30, reports=3)
    lines = [f"  {(name + ' ').ljust(48, '.')} {value}" if line.startswith(f"  {name} ") else line for line in job.text().split("\n")]
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines) + OOM)
    start = time.process_time()
    assert tell(read_logs([str(log)], signals(), None)).facts
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "line",
    [
        f"RANK=0 STAGE={HUGE} LAYERS={HUGE} [0, {HUGE}) STAGE_PARAMS={HUGE} (1M)",
        f"  {'pipeline_model_parallel_layout '.ljust(48, '.')} {'(t*999|)*999' * 200}",
        f"[Rank {HUGE}] (after 2 iterations) memory (MB) | allocated: 1 | max allocated: {HUGE} | reserved: 1 | max reserved: 1",
        f"     rank {HUGE}: 1.00",
        "> number of parameters on (tensor, pipeline) model parallel rank (0, 0): 0",
    ],
)
def test_an_absurd_line(line: str, tmp_path: Path) -> None:
    job = Pipeline(1, 4, 1, (8,) * 4, reports=3)
    text = job.text().replace("-------------------- end of", f"{line}\n-------------------- end of") + f"{line}\n{OOM}"
    log = tmp_path / "train.log"
    log.write_text(text)
    start = time.process_time()
    assert tell(read_logs([str(log)], signals(), None)).facts
    assert time.process_time() - start < 5


def test_a_very_deep_pipeline(tmp_path: Path) -> None:
    job = Pipeline(1, 64, 1, (2,) * 64, logits_ms=40, vocab=128256, reports=3)
    start = time.process_time()
    facts = facts_of(job, tmp_path)
    assert [fact for fact in facts if fact.kind == "stage.uneven" and fact.fields["what"] == "time"]
    assert time.process_time() - start < 5
