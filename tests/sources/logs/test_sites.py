"""Site and owner of single frames, in the places where packages lie; whole tracebacks are in traceback_cases.txt."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memdoctor.catalog import SITES
from memdoctor.errors import RuleError
from memdoctor.resources import rules_dir
from memdoctor.sources.logs import site_table
from memdoctor.sources.logs.sites import caller_of, locate, owner_of
from memdoctor.sources.logs.tracebacks import Frame

CONDA = "/opt/conda/envs/llm/lib/python3.10/site-packages/"


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        (CONDA + "torch/nn/modules/linear.py", "torch"),
        ("/usr/local/lib/python3.10/dist-packages/torch/_tensor.py", "torch"),
        ("/home/u/.local/lib/python3.8/site-packages/deepspeed/runtime/engine.py", "deepspeed"),
        ("C:\\Users\\u\\venv\\Lib\\site-packages\\torch\\optim\\adam.py", "torch"),
        ("C:\\Users\\u\\miniconda3\\Lib\\contextlib.py", ""),
        ("/workspace/Megatron-LM/megatron/core/transformer/mlp.py", "megatron"),
        ("/home/u/Megatron-LM/megatron/training.py", "megatron"),
        ("/workspace/Megatron-LM/pretrain_gpt.py", "user"),
        ("megatron/training/checkpointing.py", "megatron"),
        ("/src/DeepSpeed/deepspeed/runtime/zero/stage3.py", "deepspeed"),
        ("/home/u/transformers/src/transformers/models/llama/modeling_llama.py", "transformers"),
        ("/opt/NeMo/nemo/collections/nlp/parts/nlp_overrides.py", "nemo"),
        (CONDA + "pytorch_lightning/trainer/trainer.py", "lightning"),
        (CONDA + "lightning/fabric/fabric.py", "lightning"),
        (CONDA + "flash_attn_interface.py", "flash_attn"),
        (CONDA + "flash_attn/flash_attn_interface.py", "flash_attn"),
        (CONDA + "transformer_engine/pytorch/module/linear.py", "transformer_engine"),
        (CONDA + "apex/optimizers/fused_adam.py", "apex"),
        (CONDA + "triton/compiler/compiler.py", "triton"),
        (CONDA + "bitsandbytes/functional.py", "bitsandbytes"),
        (CONDA + "peft/peft_model.py", "peft"),
        (CONDA + "datasets/load.py", "datasets"),
        (CONDA + "ray/_private/worker.py", "ray"),
        (CONDA + "accelerate/accelerator.py", "accelerate"),
        (CONDA + "trl/trainer/grpo_trainer.py", "trl"),
        (CONDA + "vllm/config.py", "vllm"),
        (CONDA + "sglang/srt/server_args.py", "sglang"),
        (CONDA + "unsloth_zoo/training_utils.py", "unsloth"),
        (CONDA + "accelerate/commands/launch.py", "launcher"),
        (CONDA + "torch/distributed/run.py", "launcher"),
        (CONDA + "torch/distributed/elastic/agent/server/api.py", "launcher"),
        (CONDA + "deepspeed/launcher/runner.py", "launcher"),
        ("/opt/conda/bin/torchrun", "launcher"),
        (CONDA + "numpy/core/numeric.py", ""),
        (CONDA + "pydantic/main.py", ""),
        ("/opt/conda/lib/python3.10/threading.py", ""),
        ("/usr/lib64/python3.9/json/decoder.py", ""),
        ("<frozen runpy>", ""),
        ("/home/u/app.pex/.deps/torch-2.1.0-cp310-linux_x86_64.whl/torch/nn/modules/module.py", "torch"),
        ("/tmp/job.zip/torch/nn/functional.py", "torch"),
        ("/tmp/torchinductor_root/ab/cabc.py", "torch"),
        ("<eval_with_key>.7", "torch"),
        ("/home/u/deepspeed/train.py", "user"),
        ("/home/u/torch/train.py", "user"),
        ("/home/u/datasets/mine.py", "user"),
        ("train.py", "user"),
        ("<string>", "user"),
    ],
)
def test_owner_of(file: str, owner: str):
    assert owner_of(file) == owner


MEGATRON = "/workspace/Megatron-LM/megatron/"


@pytest.mark.parametrize(
    ("file", "function", "source", "site"),
    [
        (CONDA + "flash_attn/flash_attn_interface.py", "flash_attn_varlen_func", "", "attention"),
        (CONDA + "flash_attn/losses/cross_entropy.py", "forward", "", "loss"),
        (CONDA + "flash_attn/ops/rms_norm.py", "forward", "", "forward"),
        (MEGATRON + "core/transformer/dot_product_attention.py", "forward", "", "attention"),
        (MEGATRON + "core/transformer/attention.py", "forward", "core_attn_out = self.core_attention(", "attention"),
        (MEGATRON + "core/transformer/attention.py", "forward", "query, key, value = self.get_query_key_value_tensors(", "forward"),
        (MEGATRON + "model/transformer.py", "forward", "matmul_result = torch.baddbmm(", "attention"),
        (MEGATRON + "model/language_model.py", "parallel_lm_logits", "", "output_layer"),
        (MEGATRON + "core/fusions/fused_cross_entropy.py", "calculate_logits_max", "", "loss"),
        (MEGATRON + "core/models/gpt/gpt_model.py", "forward", "loss = self.compute_language_model_loss(labels, logits)", "forward"),
        (MEGATRON + "core/models/common/language_module/language_module.py", "compute_language_model_loss", "", "loss"),
        (MEGATRON + "core/optimizer/distrib_optimizer.py", "__init__", "", "ddp_init"),
        (MEGATRON + "core/optimizer/distrib_optimizer.py", "_copy_main_params_to_model_params", "", "optimizer_step"),
        (MEGATRON + "core/optimizer/distrib_optimizer.py", "load_parameter_state_from_dp_zero", "", "ckpt_load"),
        (MEGATRON + "core/distributed/param_and_grad_buffer.py", "__init__", "", "ddp_init"),
        (MEGATRON + "core/distributed/param_and_grad_buffer.py", "start_grad_sync", "", "backward"),
        (MEGATRON + "core/tensor_parallel/layers.py", "__init__", "", "model_build"),
        (MEGATRON + "core/tensor_parallel/layers.py", "forward", "", "forward"),
        (MEGATRON + "core/datasets/gpt_dataset.py", "__getitem__", "", "dataloader"),
        (MEGATRON + "core/pipeline_parallel/p2p_communication.py", "_p2p_ops", "", "collective"),
        (MEGATRON + "core/dist_checkpointing/strategies/filesystem_async.py", "retrieve_write_results", "", "ckpt_save"),
        (MEGATRON + "training/training.py", "evaluate", "", "eval"),
        (MEGATRON + "training/checkpointing.py", "load_checkpoint", "", "ckpt_load"),
        (MEGATRON + "training/checkpointing.py", "save_checkpoint", "", "ckpt_save"),
        (CONDA + "deepspeed/runtime/engine.py", "load_checkpoint", "", "ckpt_load"),
        (CONDA + "deepspeed/runtime/engine.py", "_take_model_step", "", "optimizer_step"),
        (CONDA + "deepspeed/runtime/engine.py", "backward", "", "backward"),
        (CONDA + "deepspeed/runtime/engine.py", "_configure_zero_optimizer", "", "ddp_init"),
        (CONDA + "deepspeed/runtime/pipe/engine.py", "eval_batch", "", "eval"),
        (CONDA + "deepspeed/runtime/zero/partition_parameters.py", "_post_init_method", "", "model_build"),
        (CONDA + "deepspeed/runtime/hybrid_engine.py", "generate", "", "generate"),
        (CONDA + "deepspeed/launcher/launch.py", "main", "", "launch"),
        (CONDA + "transformers/trainer.py", "_load_from_checkpoint", "", "ckpt_load"),
        (CONDA + "transformers/trainer.py", "_maybe_log_save_evaluate", "", "unknown"),
        (CONDA + "transformers/loss/loss_utils.py", "fixed_cross_entropy", "", "loss"),
        (CONDA + "transformers/models/llama/modeling_llama.py", "__init__", "", "model_build"),
        (CONDA + "lightning/pytorch/loops/evaluation_loop.py", "_evaluation_step", "", "eval"),
        (CONDA + "lightning/pytorch/trainer/connectors/checkpoint_connector.py", "restore_optimizers", "", "ckpt_load"),
        (CONDA + "torch/nn/functional.py", "cross_entropy", "", "loss"),
        (CONDA + "torch/nn/functional.py", "linear", "", "forward"),
        (CONDA + "torch/optim/adamw.py", "_multi_tensor_adamw", "", "optimizer_step"),
        (CONDA + "torch/optim/adamw.py", "__init__", "", "ddp_init"),
        (CONDA + "torch/optim/optimizer.py", "load_state_dict", "", "ckpt_load"),
        (CONDA + "torch/nn/utils/clip_grad.py", "clip_grad_norm_", "", "optimizer_step"),
        (CONDA + "torch/nn/modules/module.py", "load_state_dict", "", "weight_load"),
        (CONDA + "torch/serialization.py", "load", "", "weight_load"),
        (CONDA + "torch/serialization.py", "_save", "", "ckpt_save"),
        (CONDA + "safetensors/torch.py", "load_file", "", "weight_load"),
        (CONDA + "torch/nn/parallel/distributed.py", "__init__", "", "ddp_init"),
        (CONDA + "torch/nn/parallel/distributed.py", "forward", "", "forward"),
        (CONDA + "torch/distributed/fsdp/fully_sharded_data_parallel.py", "__init__", "", "ddp_init"),
        (CONDA + "torch/distributed/fsdp/_runtime_utils.py", "_post_backward_hook", "", "backward"),
        (CONDA + "torch/distributed/distributed_c10d.py", "all_reduce", "", "collective"),
        (CONDA + "torch/utils/data/_utils/collate.py", "default_collate", "", "dataloader"),
        (CONDA + "torch/utils/checkpoint.py", "recompute_fn", "", "backward"),
        (CONDA + "torch/utils/checkpoint.py", "checkpoint", "", "unknown"),
        (CONDA + "liger_kernel/ops/fused_linear_cross_entropy.py", "fused_linear_cross_entropy_forward", "", "loss"),
        ("/home/u/train.py", "resume_from", "", "ckpt_load"),
        ("/home/u/train.py", "train", "optimizer.step()", "optimizer_step"),
        ("/home/u/train.py", "train", "loss = criterion(out, y)", "loss"),
        ("/home/u/train.py", "train", "total += 1", "unknown"),
        ("/home/u/model.py", "forward", "logits = self.lm_head(x)", "output_layer"),
        ("/home/u/model.py", "forward", "y = F.scaled_dot_product_attention(q, k, v)", "attention"),
        ("/home/u/data.py", "Shards.__getitem__", "", "dataloader"),
    ],
)
def test_site_of_one_frame(file: str, function: str, source: str, site: str):
    assert locate([Frame(file, 1, function, source)], "RuntimeError", "x")[0] == site


@pytest.mark.parametrize(
    ("files", "caller"),
    [
        (["/home/u/train.py", CONDA + "transformers/trainer.py", CONDA + "accelerate/optimizer.py"], "transformers"),
        (["/home/u/train.py", CONDA + "transformers/trainer.py", CONDA + "transformers/trainer.py"], "user"),
        (
            [
                CONDA + "transformers/trainer.py",
                CONDA + "numpy/core/numeric.py",
                CONDA + "peft/peft_model.py",
                "/usr/lib/python3.10/ast.py",
            ],
            "transformers",
        ),
        (["/home/u/train.py"], ""),
        ([], ""),
    ],
)
def test_the_caller_is_the_package_around_the_owner(files: list[str], caller: str):
    assert caller_of([Frame(file, 1, "f", "") for file in files]) == caller


def test_collective_only_where_it_raises():
    inner = Frame(CONDA + "torch/distributed/distributed_c10d.py", 9, "all_reduce", "")
    wrapper = Frame(CONDA + "torch/distributed/c10d_logger.py", 9, "wrapper", "")
    outer = Frame("/home/u/model.py", 5, "forward", "")
    assert locate([outer, wrapper, inner], "RuntimeError", "") == ("collective", "torch")
    assert locate([wrapper, outer], "RuntimeError", "") == ("forward", "user")
    stdlib = Frame("/usr/lib/python3.10/contextlib.py", 5, "__exit__", "")
    assert locate([outer, inner, stdlib], "RuntimeError", "") == ("collective", "torch")


def test_a_wrapper_of_the_launcher_around_the_script_is_not_the_launcher():
    wrapper = Frame(CONDA + "torch/distributed/elastic/multiprocessing/errors/__init__.py", 9, "wrapper", "return f(*args, **kwargs)")
    assert locate([wrapper, Frame("/home/u/train.py", 5, "main", "")], "ValueError", "") == ("unknown", "user")


def test_without_frames():
    assert locate([], "RuntimeError", "x") == ("unknown", "unknown")
    assert locate([], "torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "") == ("launch", "launcher")
    assert locate([], "RuntimeError", "DataLoader worker (pid 12) is killed by signal: Killed.")[0] == "dataloader"
    assert locate([], "torch.distributed.DistBackendError", "NCCL error in: x")[0] == "collective"


def test_every_site_but_unknown_has_a_rule():
    rules = {rule.site for rule in site_table.load_table().sites if rule.site}
    assert rules == set(SITES) - {"unknown"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("{site: launch, priority: 100, owner", "{site: lunch, priority: 100, owner", "unknown site 'lunch'"),
        ("{site: launch, priority: 100, owner", "{site: launch, prio: 100, owner", "unknown key 'prio'"),
        ("priority: 100, owner: [launcher], within: 1", "owner: [launcher], within: 1", "an entry is broken"),
        ("hides:\n", "", "must have the keys"),
        ("owners:\n", "owners: [\n", "cannot be read"),
        ("  - owner: launcher\n", "  - owner: starter\n", "the launcher must stand first"),
    ],
)
def test_broken_tables_are_refused(tmp_path, monkeypatch, old: str, new: str, problem: str):
    text = (rules_dir() / "tables" / "sites.yaml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "sites.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(site_table, "rules_path", lambda *parts: str(tmp_path.joinpath(*parts)))
    with pytest.raises(RuleError, match=problem) as caught:
        site_table.load_table.__wrapped__()
    assert "sites.yaml" in str(caught.value)


def test_the_table_is_read_only_when_needed():
    code = "import sys, memdoctor.sources.logs.sites, memdoctor.sources.logs.tracebacks; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
