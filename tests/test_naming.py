"""The look-up of what texts name: what is wrong is told, what is right is not."""

from __future__ import annotations

import pytest

from tests.naming import of_config, of_paste, of_prose
from tests.pastes import commands, ds_config, paths


@pytest.mark.parametrize(
    ("text", "framework", "told"),
    [
        ("--bf16", "megatron-lm", []),
        ("--gradient-clipping 1.0", "megatron-lm", ["no flag --gradient-clipping in today's megatron-lm"]),
        ("--batch-size 4", "megatron-lm", ["no flag --batch-size in today's megatron-lm"]),  # refused
        ("--use-flash-attn", "megatron-lm", ["no flag --use-flash-attn in today's megatron-lm"]),  # nothing reads it
        ("--zero-stage 1", "megatron-lm", ["no flag --zero-stage in today's megatron-lm"]),
        ("--zero-stage 1 --no-pipeline-parallel", "deepspeed", []),
        ("--attention-backend flash2", "megatron-lm", ["--attention-backend does not take ['flash2']"]),
        ("--micro-batch-size", "megatron-lm", ["--micro-batch-size does not take no value"]),
        ("--bf16 True", "megatron-lm", ["--bf16 does not take ['True']"]),
        ("--bf16 True --learning_rate 1e-4", "transformers", []),
        ("--bf16 maybe", "transformers", ["--bf16 does not take ['maybe']"]),
        ("--evaluation_strategy steps", "transformers", ["no flag --evaluation_strategy in today's transformers"]),
        ("--rampup-batch-size 32 32 1000 --recompute-modules core_attn mlp", "megatron-lm", []),
        ("--rampup-batch-size 32", "megatron-lm", ["--rampup-batch-size does not take ['32']"]),
        ("--lr-decay-iters <train iterations> --global-batch-size N", "megatron-lm", []),
        ("--micro-batch-size, --recompute-granularity", "megatron-lm", []),
        ("torchrun --nproc_per_node=8 --tee 3 train.py --bf16", "megatron-lm", []),
        ("torchrun --nproc 8 train.py", None, ["`torchrun` has no --nproc"]),
        ("torchrun --nproc-per-node 8 train.py --bf17", "megatron-lm", ["no flag --bf17 in today's megatron-lm"]),
        ("deepspeed --num_gpus 8 --elastic_training train.py", "deepspeed", ["`deepspeed` has no --elastic_training"]),
        (
            "deepspeed --launcher torchrun train.py",
            "deepspeed",
            ["deepspeed --launcher is one of ['pdsh', 'openmpi', 'mvapich', 'slurm', 'mpich', 'impi'], not 'torchrun'"],
        ),
        ("accelerate launch --main-process-port 29517 train.py", None, []),
        ("#SBATCH --signal=B:USR1@300", "slurm", []),
        ("#SBATCH --signals=B:USR1@300", "slurm", ["`sbatch` has no --signals"]),
        ("srun --gres=gpu:1 pip install --no-cash-dir x", "slurm", ["`pip install` has no --no-cash-dir"]),
        ("sudo nvidia-smi -r -i <gpu>; nvidia-smi --query", None, ["`nvidia-smi` has no --query"]),
        ("env -u LD_PRELOAD PATH= timeout 30 nvidia-sm", None, ["no command nvidia-sm"]),
        ("DS_BUILD_OPS=1 pip install 'deepspeed<0.19.7' 2>/dev/null && ds_report", None, []),
        (
            "DS_BUILT_OPS=1 pip install deepspeed",
            None,
            ["no variable DS_BUILT_OPS", "DS_BUILT_OPS=1: misspelt"],
        ),
        ("export NCCL_DEBUG=INFOS", None, ["NCCL_DEBUG=INFOS: ignored"]),
        ("unset NCCL_NO_SUCH_THING", None, ["no variable NCCL_NO_SUCH_THING"]),
        ("echo $SLURM_PROCIDS", None, ["no variable SLURM_PROCIDS"]),
        ("ls $(pip wheel x)", None, ["no command pip wheel"]),
        ("memdoctor logs --watch x", None, ["`memdoctor logs --watch x`: no option --watch"]),
        ("python -m pip instal x", None, ["no command pip instal"]),
        ("torch.cuda.set_device(int(os.environ['LOCAL_RANKS']))", "pytorch", ["no variable LOCAL_RANKS"]),
        ("with torch.no_grad(): loss = model(batch)", "pytorch", []),
        ("actor_rollout_ref.rollout.tensor_model_parallel_size=4", None, []),
    ],
)
def test_pastes(text: str, framework: str | None, told: list[str]) -> None:
    assert list(of_paste(text, framework)) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "train_batch_size": "auto"}', []),
        ('"checkpoint": {"load_universal": true}', []),
        ('{"optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "whatever": {"x": 1}}}}', []),
        (
            '"offload_optimizer": {"device": "cpu"}',
            ["no key offload_optimizer in today's ds_config", "no key offload_optimizer.device in today's ds_config"],
        ),
        (
            '{"zero_optimization": {"offload_optimizer": {"device": "gpu"}}}',
            ["zero_optimization.offload_optimizer.device is one of ['none', 'cpu', 'nvme'], not 'gpu'"],
        ),
        ('{"amp": {"enabled": true}}', ["no key amp in today's ds_config"]),  # refused from 0.19.8 on
        ('{"aio": {"thread_count": 1}}', ["no key aio.thread_count in today's ds_config"]),
        ('{"fp16": true}', ["fp16 is a section"]),
        ('{"train_batch_size": {"a": 1}}', ["train_batch_size is a int", "no key train_batch_size.a in today's ds_config"]),
        ("NCCL_P2P_LEVEL=NVL OMP_NUM_THREADS=4", []),
        ("NCCL_P2P_LEVEL=FAR", ["NCCL_P2P_LEVEL=FAR: ignored"]),
        ("torch_dtype=torch.bfloat16", []),
        ("DataLoader(..., drop_last=True)", []),
    ],
)
def test_configurations(text: str, told: list[str]) -> None:
    assert list(of_config(text)) == told


def test_sentences() -> None:
    right = "--checkpoint-activations was once a flag, the --moe- ones are many; NCCL_TIMEOUT is read by nobody; fp16.loss_scale and offload_optimizer.ratio."
    assert list(of_prose(right)) == []
    wrong = "Give --no-such-flag, set NCCL_NO_SUCH_THING, and raise zero_optimization.bucket_size."
    assert list(of_prose(wrong)) == [
        "no flag --no-such-flag anywhere",
        "no key zero_optimization.bucket_size in ds_config",
        "no variable NCCL_NO_SUCH_THING",
    ]


def test_words_of_a_shell() -> None:
    assert commands("a --b 'c d' 2>&1 | head -n 3 > out; docker run --user $(id -u):$(id -g) ...  # why") == [
        ["a", "--b", "c d"],
        ["head", "-n", "3"],
        ["docker", "run", "--user", "$VALUE:$VALUE", "..."],
        ["id", "-u"],
        ["id", "-g"],
    ]
    assert commands("export PORT=$((10000 + ID % 20000)) \\\n X=<the tokenizer>") == [["export", "PORT=1", "X=VALUE"]]
    assert commands("it's") is None


def test_paths_of_an_object() -> None:
    assert list(paths({"a": {"b": 1}})) == [("a", {"b": 1}), ("a.b", 1)]
    assert ds_config("[1]") is ds_config("no json") is None
