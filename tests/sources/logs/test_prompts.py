"""A launch at a shell prompt is the start of a run; other commands, comments and output that looks like a prompt are none."""

from __future__ import annotations

import pytest

from memdoctor.engine.load import load
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.blocks import read_line

SIGNALS = [signal for signal in load([rules_dir()]).signals if signal.id.startswith("run.start_prompt")]


def starts(text: str) -> bool:
    return any(all(has in text for has in signal.has) and read_line(signal, text) is not None for signal in SIGNALS)


@pytest.mark.parametrize(
    "text",
    [
        "$ NCCL_P2P_DISABLE=1 torchrun --nproc_per_node 2 train.py",
        "$ srun python train.py",
        "$ python train.py",
        "$ CUDA_VISIBLE_DEVICES=0 nohup python3.11 -u tools/train.py --lr 1e-4",
        "# mpirun -np 16 python train.py",
        "user@host:~$ deepspeed train.py --deepspeed",
        "(venv) user@host:~/a b/c$ accelerate launch train.py",
        "[user@host train]$ bash -x examples/pretrain.sh",
        "root@host:/workspace# python -m torch.distributed.run train.py",
        "user@host ~/train % /opt/venv/bin/torchrun train.py",
        "user@host:~$ ./examples/pretrain_gpt.sh",
    ],
)
def test_a_launch_is_a_start(text: str) -> None:
    assert starts(text)


@pytest.mark.parametrize(
    "text",
    [
        "root@host:~# nvidia-smi nvlink -e -i 3",
        "$ srun -N 2 nvidia-smi",
        "$ srun --pty bash",
        "$ mpirun -np 16 ./build/all_reduce_perf -b 8 -e 4G",
        "$ torchrun --help",
        "$ python -m pip install deepspeed",
        "$ python -c 'import torch'",
        "$ cat train.py",
        "# python train.py runs the training",
        "### run B, same seed, torchrun again",
        "  $ torchrun train.py",
        "see README: $ torchrun train.py",
        "torchrun train.py",
        "loss at 90% python train.py",
    ],
)
def test_what_looks_like_one_is_none(text: str) -> None:
    assert not starts(text)
