"""What is to be pasted: variables are exported, open places speak, and nothing else changes."""

from __future__ import annotations

import pytest

from memdoctor.report import fit
from memdoctor.report.pasting import lines, spoken, to_paste


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("NCCL_P2P_DISABLE=1", "export NCCL_P2P_DISABLE=1"),
        ("NCCL_SOCKET_IFNAME==eth0 GLOO_SOCKET_IFNAME=eth0", "export NCCL_SOCKET_IFNAME==eth0 GLOO_SOCKET_IFNAME=eth0"),
        ("HF_HOME=/scratch/$USER/hf   TMPDIR=/tmp", "export HF_HOME=/scratch/$USER/hf   TMPDIR=/tmp"),
        ("NCCL_HOSTID=$(cat /etc/hostname)", "export NCCL_HOSTID=$(cat /etc/hostname)"),
        ("TORCH_CUDA_ARCH_LIST='9.0 10.0'", "export TORCH_CUDA_ARCH_LIST='9.0 10.0'"),
        ("A_NAME=1\n--bf16", "export A_NAME=1\n--bf16"),
        ("export <env_variable>='<meant>'", "export <variable>='<what was meant>'"),
        ("py-spy dump --pid <of_pid>", "py-spy dump --pid <PID of the process>"),
        ("mkdir -p <path>", "mkdir -p <path>"),
    ],
)
def test_shown(text: str, shown: str) -> None:
    assert to_paste(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "MAX_JOBS=4 pip install flash-attn",  # a variable for one command
        "CUDA_VISIBLE_DEVICES='' python train.py",
        "export MAX_JOBS=4",
        "num_workers=2",  # an argument of Python
        "iommu=pt",  # of the kernel
        'data_files={"train": "/data/*.parquet"}',
        "#SBATCH --mem=0",
        '{"bf16": {"enabled": true}}',
        "A_NAME=1; rm -r /tmp/x",
        "A_NAME=1 | cat",
    ],
)
def test_left_alone(text: str) -> None:
    assert to_paste(text) == text


def test_lines_of_a_fix() -> None:
    assert lines("ls <path>\n  -l", None, "NCCL_DEBUG=INFO") == ["ls <path>", "  -l", "export NCCL_DEBUG=INFO"]
    assert spoken("Stop <of_pid>, 1 < 2.") == "Stop <PID of the process>, 1 < 2."


def test_an_open_place_is_not_broken_over_two_lines() -> None:
    shown = fit.paste(f"ps -o pid,stat,wchan:32,etime,cmd {'-x ' * 12}-p <PID of the process> --more", 84)
    assert sum("<PID of the process>" in line for line in shown) == 1
