"""That no tensor has the size of the failing allocation is said in the diagnosis, where the sizes of all that could be are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.pipeline import diagnose_logs
from tests.derive.test_allocation import LLAMA_7B, LLAMA_CONFIG, LOSS, MIXTRAL, MLP, STEP, deepspeed, megatron, oom

SAID = "the failing allocation of {} fits none of the model's tensors"
LOAD = '  File "/w/Megatron-LM/megatron/training/checkpointing.py", line 1200, in load_checkpoint\n    optimizer.load_state_dict(state)\n'
BUILD = '  File "/w/Megatron-LM/megatron/training/training.py", line 900, in get_model\n    model = model_provider_func()\n'
HOLES = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.90 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.02 GiB is free. Including "
    "non-PyTorch memory, this process has 78.10 GiB memory in use. Of the allocated memory 60.00 GiB is allocated by PyTorch, and 17.20 GiB is reserved by "
    "PyTorch but unallocated.\n"
)


def told(text: str, tmp_path: Path) -> tuple[str, str]:
    """The rule of the OOM's diagnosis and its message."""
    log = tmp_path / "train.log"
    log.write_text(text)
    first = diagnose_logs([str(log)]).diagnoses[0]
    return first.rule, first.message


@pytest.mark.parametrize(
    ("text", "rule", "size"),
    [
        (megatron(LLAMA_7B, micro_batch_size=8) + oom("3.90 GiB", LOSS), "oom/logits", "3.9 GiB"),
        (megatron(LLAMA_7B, micro_batch_size=8) + oom("3.90 GiB", MLP), "oom/activations", "3.9 GiB"),
        (megatron(LLAMA_7B, micro_batch_size=8) + oom("11.11 GiB"), "oom/activations", "11.11 GiB"),
        (megatron(LLAMA_7B, micro_batch_size=8) + oom("3.90 GiB", BUILD), "oom/model_states", "3.9 GiB"),
        (megatron(LLAMA_7B, micro_batch_size=8) + oom("3.90 GiB", LOAD), "oom/checkpoint", "3.9 GiB"),
        (megatron(LLAMA_7B, micro_batch_size=8) + HOLES, "oom/fragmentation", "3.9 GiB"),
    ],
)
def test_every_answer_says_it(text: str, rule: str, size: str, tmp_path: Path) -> None:
    found, message = told(text, tmp_path)
    assert found == rule
    assert f"{SAID.format(size)} at this layout" in message


def test_experts_depend_on_the_router(tmp_path: Path) -> None:
    text = megatron(MIXTRAL, micro_batch_size=8, expert_model_parallel_size=8, data_parallel_size=8) + oom("5.77 GiB", MLP)
    assert told(text, tmp_path)[1].endswith("at this layout; what experts get depends on the router")


def test_without_a_sequence_length_the_states_are_known_all_the_same(tmp_path: Path) -> None:
    _, message = told(deepspeed(LLAMA_CONFIG, 2, 8) + oom("5.37 GiB", STEP), tmp_path)
    assert f"{SAID.format('5.37 GiB')} that are made there (ddp_init) at this layout" in message


def test_a_size_that_is_made_elsewhere(tmp_path: Path) -> None:
    """Logits in fp32 are no part of building the model."""
    _, message = told(megatron(LLAMA_7B, micro_batch_size=8) + oom("3.91 GiB", BUILD), tmp_path)
    assert f"{SAID.format('3.91 GiB')} that are made there (model_build) at this layout" in message


@pytest.mark.parametrize(
    "text",
    [
        megatron(LLAMA_7B, micro_batch_size=8) + oom("3.91 GiB", LOSS),  # the logits
        megatron(LLAMA_7B, micro_batch_size=8) + oom("20.00 MiB", LOSS),  # a segment for small tensors
        megatron({"hidden_size": 4096}, micro_batch_size=8) + oom("3.90 GiB", LOSS),  # too little known
        deepspeed(LLAMA_CONFIG, 2, 8) + oom("5.37 GiB"),  # no sequence length: it may be any activation
        deepspeed(LLAMA_CONFIG, 2, 8) + oom("5.37 GiB", MLP),
        megatron({**LLAMA_7B, "multi_latent_attention": True, "kv_lora_rank": 512, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128})
        + oom("3.90 GiB", MLP),  # what latent attention makes is not counted
        oom("3.90 GiB", LOSS),  # no arguments
    ],
    ids=["explained", "segment", "little known", "no length", "no length in a layer", "latent attention", "no arguments"],
)  # fmt: skip
def test_nothing_is_said_where_it_is_not_known(text: str, tmp_path: Path) -> None:
    rule, message = told(text, tmp_path)
    assert rule.startswith("oom/")
    assert "fits none" not in message
