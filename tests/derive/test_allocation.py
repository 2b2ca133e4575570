"""The failing allocation of well-known models, from the arguments that their logs dump: explained, or honestly not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memdoctor.derive.story import tell
from memdoctor.engine.load import load
from memdoctor.model import Fact, Signal
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs

LLAMA = {
    "swiglu": True,
    "normalization": "RMSNorm",
    "untie_embeddings_and_output_weights": True,
    "add_bias_linear": False,
    "kv_channels": 128,
}
LLAMA_7B = {
    **LLAMA,
    "num_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "ffn_hidden_size": 11008,
    "padded_vocab_size": 32000,
    "seq_length": 4096,
}
LLAMA_13B = {**LLAMA_7B, "num_layers": 40, "hidden_size": 5120, "num_attention_heads": 40, "ffn_hidden_size": 13824}
LLAMA_70B = {
    **LLAMA_7B, "num_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "ffn_hidden_size": 28672, "group_query_attention": True, "num_query_groups": 8
}  # fmt: skip
LLAMA3_8B = {
    **LLAMA_7B,
    "ffn_hidden_size": 14336,
    "group_query_attention": True,
    "num_query_groups": 8,
    "padded_vocab_size": 128256,
    "seq_length": 8192,
}
GPT_175B = {
    "num_layers": 96, "hidden_size": 12288, "num_attention_heads": 96, "ffn_hidden_size": 49152, "kv_channels": 128, "padded_vocab_size": 51200,
    "seq_length": 2048, "add_bias_linear": True, "position_embedding_type": "learned_absolute", "max_position_embeddings": 2048,
}  # fmt: skip
MIXTRAL = {
    **LLAMA_7B,
    "ffn_hidden_size": 14336,
    "group_query_attention": True,
    "num_query_groups": 8,
    "num_experts": 8,
    "moe_ffn_hidden_size": 14336,
    "moe_router_topk": 2,
}
LLAMA_CONFIG = {"hidden_act": '"silu"', "hidden_size": 4096, "intermediate_size": 11008, "model_type": '"llama"', "num_attention_heads": 32,
                "num_hidden_layers": 32, "num_key_value_heads": 32, "rms_norm_eps": 1e-05, "tie_word_embeddings": "false", "vocab_size": 32000}  # fmt: skip


@cache
def signals() -> tuple[Signal, ...]:
    return tuple(load([rules_dir()]).signals)


def megatron(model: Mapping[str, Any], **more: Any) -> str:
    values = {"params_dtype": "torch.bfloat16", "bf16": True, "micro_batch_size": 1, **model, **more}
    tp, pp, cp = (values.get(f"{name}_parallel_size", 1) for name in ("tensor_model", "pipeline_model", "context"))
    values.setdefault("world_size", tp * pp * cp * values.setdefault("data_parallel_size", 1))
    dump = "\n".join(f"  {(name + ' ').ljust(48, '.')} {values[name]}" for name in sorted(values))
    return f"------------------------ arguments ------------------------\n{dump}\n-------------------- end of arguments ---------------------\n"


def deepspeed(model: Mapping[str, Any], stage: int, dp: int, *, micro: int = 1, zero: str = "", lines: str = "") -> str:
    config = "\n".join(f'  "{name}": {value},' for name, value in model.items())
    engine = {
        "bfloat16_enabled": True,
        "gradient_accumulation_steps": 8,
        "train_micro_batch_size_per_gpu": micro,
        "world_size": dp,
        "zero_config": f"stage={stage} contiguous_gradients=True reduce_bucket_size=500000000 allgather_bucket_size=500000000 overlap_comm=False {zero}",
        "zero_optimization_stage": stage,
    }
    prefix = "[2026-01-20 08:14:02,113] [INFO] [config.py:1000:print]"
    dump = "\n".join(f"{prefix}   {(name + ' ').ljust(29, '.')} {value}" for name, value in engine.items())
    return (
        f"Model config LlamaConfig {{\n{config}\n}}\n{lines}[2026-01-20 08:14:02,113] [INFO] [config.py:996:print] DeepSpeedEngine configuration:\n{dump}\n"
        f'[2026-01-20 08:14:02,114] [INFO] [config.py:986:print_user_config]   json = {{\n    "bf16": {{\n        "enabled": true\n    }}\n}}\n'
    )


def oom(size: str, frame: str = "") -> str:
    head = f"Traceback (most recent call last):\n{frame}" if frame else ""
    return (
        f"{head}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size}. GPU 3 has a total capacity of 79.15 GiB of which 1.02 GiB is free. "
        "Including non-PyTorch memory, this process has 78.10 GiB memory in use. Of the allocated memory 75.00 GiB is allocated by PyTorch, and 1.20 GiB "
        "is reserved by PyTorch but unallocated.\n"
    )


LOSS = '  File "/w/Megatron-LM/megatron/core/tensor_parallel/cross_entropy.py", line 28, in calculate_logits_max\n    vocab_parallel_logits = vocab_parallel_logits.float()\n'
MLP = '  File "/w/Megatron-LM/megatron/core/transformer/mlp.py", line 120, in forward\n    intermediate_parallel, bias_parallel = self.linear_fc1(hidden_states)\n'
CORE = (
    '  File "/w/Megatron-LM/megatron/core/transformer/dot_product_attention.py", line 152, in forward\n    matmul_result = torch.baddbmm(\n'
)
STEP = '  File "/opt/venv/lib/python3.11/site-packages/deepspeed/runtime/zero/stage_1_and_2.py", line 690, in initialize_optimizer_states\n    self.optimizer.step()\n'


def match(text: str, tmp_path: Path) -> Fact:
    log = tmp_path / "train.log"
    log.write_text(text)
    (found,) = [fact for fact in tell(read_logs([str(log)], signals(), None)).facts if fact.kind == "allocation.match"]
    return found


PARAMETERS = " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 1463270400\n"
CASES = [
    # Llama-2 7B, one GPU each: 4096 tokens × 8 × 32000 × 4 B = 3.91 GiB
    ("7B logits", megatron(LLAMA_7B, micro_batch_size=8) + oom("3.91 GiB", LOSS), "logits_fp32", "4096 × 8 × 32000 × 4 B"),
    ("7B logits, no traceback", megatron(LLAMA_7B, micro_batch_size=8) + oom("3.91 GiB"), "logits_fp32", "4096 × 8 × 32000 × 4 B"),
    # vocabulary ÷ TP
    ("7B tp2", megatron(LLAMA_7B, micro_batch_size=8, tensor_model_parallel_size=2) + oom("1.95 GiB", LOSS), "logits_fp32", "4096 × 8 × 16000 × 4 B"),
    # 13B with TP and SP: both halves of the gated MLP, 13824 a GPU: 4096 × 8 × 13824 × 2 B = 864 MiB
    ("13B mlp", megatron(LLAMA_13B, micro_batch_size=8, tensor_model_parallel_size=2, sequence_parallel=True) + oom("864.00 MiB", MLP), "mlp_both", "4096 × 8 × 13824 × 2 B"),
    # 70B: hidden states gathered before the product
    ("70B gathered", megatron(LLAMA_70B, micro_batch_size=4, tensor_model_parallel_size=8, pipeline_model_parallel_size=4, sequence_parallel=True) + oom("256.00 MiB", MLP), "hidden_gathered", "4096 × 4 × 8192 × 2 B"),
    # 175B without fused attention: 8 × 12 × 2048 × 2048 × 2 B
    ("175B scores", megatron(GPT_175B, micro_batch_size=8, tensor_model_parallel_size=8, transformer_impl="local") + oom("768.00 MiB", CORE), "attention_scores", "8 × 12 × 2048 × 2048 × 2 B"),
    # its gradient buffer, by the count that the log prints
    ("175B gradients", megatron(GPT_175B, tensor_model_parallel_size=8, pipeline_model_parallel_size=16) + PARAMETERS + oom("5.45 GiB"), "grad_buffer", "1463270400 × 4 B"),
    # Mixtral: every token goes to two experts
    ("8x7B dispatch", megatron(MIXTRAL, micro_batch_size=8, expert_model_parallel_size=8, data_parallel_size=8) + oom("512.00 MiB", MLP.replace("mlp.py", "moe/moe_layer.py")), "dispatched", "65536 × 4096 × 2 B"),
    # Llama-3 8B with context parallelism: 8192 ÷ 2 tokens
    ("8B cp2", megatron(LLAMA3_8B, micro_batch_size=4, context_parallel_size=2) + oom("7.83 GiB", LOSS), "logits_fp32", "4096 × 4 × 128256 × 4 B"),
    ("8B whole", megatron(LLAMA3_8B, micro_batch_size=4) + oom("15.66 GiB"), "logits_fp32", "8192 × 4 × 128256 × 4 B"),
    # the dump comes before the tokenizer, which pads 50257 to 51200 at TP 8
    ("padded later", megatron({**GPT_175B, "padded_vocab_size": None}, micro_batch_size=16, pipeline_model_parallel_size=8) + " > padded vocab (size: 50257) with 943 dummy tokens (new size: 51200)\n" + oom("6.25 GiB", LOSS), "logits_fp32", "2048 × 16 × 51200 × 4 B"),
    # distributed optimizer: 6,738,415,616 parameters ÷ 8 × 4 B
    ("7B shard", megatron(LLAMA_7B, data_parallel_size=8, use_distributed_optimizer=True) + oom("3.14 GiB"), "optimizer_shard", "842301952 × 4 B"),
    # ZeRO-2: the bucket of 5e8 elements, rounded up to 2 MiB
    ("zero-2 bucket", deepspeed(LLAMA_CONFIG, 2, 8) + oom("954.00 MiB"), "reduce_bucket", "500000000 × 2 B"),
    ("zero-2 moments", deepspeed(LLAMA_CONFIG, 2, 8) + oom("3.14 GiB", STEP), "optimizer_shard", "842301952 × 4 B"),
    ("zero-1 flat", deepspeed(LLAMA_CONFIG, 1, 8) + oom("12.55 GiB"), "flat_weights", "6738415616 × 2 B"),
    # ZeRO-3: fp32 values of a sub-group of 1e9 elements
    ("zero-3 sub-group", deepspeed({**LLAMA_CONFIG, "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_key_value_heads": 8}, 3, 32) + oom("3.73 GiB", STEP.replace("stage_1_and_2", "stage3")), "optimizer_shard", "1000000000 × 4 B"),
    # Hugging Face's loss: sequence from the script's own arguments
    ("transformers loss", deepspeed(LLAMA_CONFIG, 2, 8, micro=8, lines="Namespace(model='/m', max_seq_length=4096)\n") + oom("3.91 GiB"), "logits_fp32", "4096 × 8 × 32000 × 4 B"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tensor", "arithmetic"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_explained(text: str, tensor: str, arithmetic: str, tmp_path: Path) -> None:
    found = match(text, tmp_path)
    assert found.fields["explained"] is True
    assert found.fields["tensor"] == tensor
    assert f"= {arithmetic}: the " in found.fields["text"] or f"= {arithmetic}: ZeRO's " in found.fields["text"]


@pytest.mark.parametrize(
    "text",
    [
        megatron(LLAMA_7B, micro_batch_size=8) + oom("3.90 GiB", LOSS),
        megatron(LLAMA_7B, micro_batch_size=8) + oom("20.00 MiB", LOSS),
        megatron(LLAMA_7B, micro_batch_size=8) + oom("11.11 GiB"),
        megatron({"hidden_size": 4096}, micro_batch_size=8) + oom("3.91 GiB", LOSS),
        deepspeed(LLAMA_CONFIG, 2, 8) + oom("5.37 GiB"),
    ],
    ids=["beside it", "a segment", "nothing", "too little known", "zero"],
)
def test_unexplained(text: str, tmp_path: Path) -> None:
    found = match(text, tmp_path)
    assert found.fields["explained"] is False
    assert found.fields["text"].startswith("unexplained")
    assert "tensor" not in found.fields


def test_the_site_decides_between_tensors_of_one_size(tmp_path: Path) -> None:
    """At 32768 tokens the fp32 logits of a GPU are as large as the attention's fp32 scores."""
    model = {**LLAMA_7B, "padded_vocab_size": 32768, "seq_length": 1024}
    arguments = megatron(model, micro_batch_size=1, transformer_impl="local")
    assert match(arguments + oom("128.00 MiB", CORE), tmp_path).fields["tensor"] == "attention_scores_fp32"
    assert match(arguments + oom("128.00 MiB", LOSS), tmp_path).fields["tensor"] == "logits_fp32"


def test_the_oom_itself_carries_the_name(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(megatron(LLAMA3_8B, micro_batch_size=4) + oom("15.66 GiB"))
    facts = tell(read_logs([str(log)], signals(), None)).facts
    (found,) = [fact for fact in facts if fact.kind == "cuda.oom"]
    assert found.fields["tensor"] == "logits_fp32"
    assert found.fields["tensor_place"] == "output_layer"
    assert found.fields["shape_text"] == "15.66 GiB = 8192 × 4 × 128256 × 4 B: the logits in fp32"


def test_two_of_one_size_are_both_named(tmp_path: Path) -> None:
    model = {**LLAMA_7B, "seq_length": 4096, "padded_vocab_size": 32000}
    found = match(megatron(model, micro_batch_size=1) + oom("500.00 MiB"), tmp_path)
    assert set(found.fields["tensors"]) == {"logits_fp32", "embedding_weight_fp32"}
    assert "tensor" not in found.fields
    assert ", or " in found.fields["text"]


def test_without_arguments_there_is_no_verdict(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(oom("3.91 GiB", LOSS))
    assert not [fact for fact in tell(read_logs([str(log)], signals(), None)).facts if fact.kind == "allocation.match"]


def test_the_newest_arguments_count(tmp_path: Path) -> None:
    text = megatron(LLAMA_7B, micro_batch_size=8) + oom("3.91 GiB", LOSS)
    restart = "> initializing torch distributed ...\n" + megatron(LLAMA_7B, micro_batch_size=4) + oom("1.95 GiB", LOSS)
    log = tmp_path / "train.log"
    log.write_text(text + restart)
    found = [fact for fact in tell(read_logs([str(log)], signals(), None)).facts if fact.kind == "allocation.match"]
    assert [(fact.attempt, fact.fields["text"].split(" = ")[1].split(":")[0]) for fact in found] == [
        (1, "4096 × 8 × 32000 × 4 B"),
        (2, "4096 × 4 × 32000 × 4 B"),
    ]


def test_two_hundred_random_sizes_in_logs(tmp_path: Path) -> None:
    chance = random.Random(200)
    jobs = [text[: text.index("torch.OutOfMemoryError")].split("Traceback")[0] for _, text, _, _ in CASES]
    explained = 0
    for number in range(200):
        size = 2 * round(chance.uniform(16, 40960)) if number % 2 else 2 * round(2 ** chance.uniform(4, 15))
        shown = f"{size / 1024:.2f} GiB" if size >= 1024 else f"{size}.00 MiB"
        explained += match(chance.choice(jobs) + oom(shown), tmp_path).fields["explained"]
    assert explained <= 4
