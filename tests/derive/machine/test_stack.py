"""Driver, torch, GPUs, nvcc and libraries against each other; what tables add to a GPU; the words of a summary."""

from __future__ import annotations

from typing import Any

import pytest

from memdoctor.derive.machine import derive_machine, summaries
from memdoctor.derive.machine.facts import version
from memdoctor.derive.machine.gpus import expected_links
from memdoctor.derive.machine.stack import served
from memdoctor.model import Fact, Origin


def fact(kind: str, probe: str = "gpu", **fields: Any) -> Fact:
    return Fact(kind, fields, Origin(f"probe.{probe}", "here", None, ""), host="node-01")


@pytest.mark.parametrize(
    ("arch", "built", "result"),
    [
        ("9.0", ["sm_80", "sm_90"], "served"),
        ("8.9", ["sm_80", "sm_86", "sm_90"], "served"),  # a binary runs on later minors of its major
        ("8.0", ["sm_86"], "missing"),
        ("10.0", ["sm_80", "sm_90"], "missing"),
        ("10.0", ["sm_90", "compute_90"], "ptx"),
        ("10.3", ["sm_100"], "served"),
        ("12.0", ["sm_100"], "missing"),
        ("12.1", ["sm_120"], "served"),
        ("9.0", ["sm_90a"], "served"),
        ("10.0", ["sm_90a"], "missing"),
        ("10.3", ["sm_100a"], "missing"),  # such code never moves
        ("7.0", ["sm_75", "sm_80", "compute_80"], "missing"),
        ("9.0", ["gfx942"], "missing"),
        ("9.0", [], "missing"),
        ("x", ["sm_90"], "unknown"),
    ],
)
def test_which_gpus_a_build_serves(arch: str, built: list[str], result: str) -> None:
    assert served(arch, built) == result


@pytest.mark.parametrize(
    ("driver", "driver_cuda", "torch_cuda", "name"),
    [
        ("570.86.10", "12.8", "12.8", "enough"),
        ("550.54.15", "12.4", "12.8", "minor"),
        ("525.60.13", "12.0", "12.8", "minor"),
        ("515.43.04", "11.7", "12.1", "too_old"),
        ("550.54.15", "12.4", "13.0", "too_old"),
        ("580.65.06", "13.0", "13.0", "enough"),
        ("580.65.06", "13.0", "12.6", "enough"),
        ("450.80.02", "11.0", "11.8", "minor"),
        ("590.48.01", "13.1", "14.0", "too_old"),  # a version that the table does not know yet
        ("not a version", "12.4", "12.8", "too_old"),
    ],
)
def test_driver_against_torch(driver: str, driver_cuda: str, torch_cuda: str, name: str) -> None:
    facts = derive_machine(
        [fact("gpu.driver", driver=driver, cuda=driver_cuda), fact("stack.torch", "python", version="2.9.0", cuda=torch_cuda)]
    )
    (found,) = [one for one in facts if one.kind == "stack.driver"]
    assert found.get("name") == name


@pytest.mark.parametrize(("nvcc", "name"), [("12.8", "same"), ("12.4", "minor"), ("11.8", "major"), ("13.0", "major")])
def test_nvcc_against_torch(nvcc: str, name: str) -> None:
    facts = derive_machine(
        [
            fact("stack.tool", "python", name="nvcc", version=nvcc, path="/usr/local/cuda/bin/nvcc"),
            fact("stack.torch", "python", version="2.9.0", cuda="12.8"),
        ]
    )
    assert [one.get("name") for one in facts if one.kind == "stack.nvcc"] == [name]


def test_a_cpu_build_is_compared_with_nothing() -> None:
    facts = derive_machine(
        [
            fact("gpu.driver", driver="450.0", cuda="11.0"),
            fact("stack.tool", "python", name="nvcc", version="9.0"),
            fact("stack.torch", "python", version="2.9.0"),
        ]
    )
    assert not {one.kind for one in facts} & {"stack.driver", "stack.nvcc", "stack.arch"}


def library(path: str, origin: str, found: str | None = None) -> Fact:
    return fact("stack.library", "python", name="nccl", path=path, version=found, origin=origin)


WHEEL = "/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"


@pytest.mark.parametrize(
    ("facts", "clash"),
    [
        ([library(WHEEL, "package", "2.27.5")], None),
        ([library(WHEEL, "package", "2.27.5"), library("/usr/lib/libnccl.so.2", "search_path", "2.18.3")], ("/usr/lib/libnccl.so.2", WHEEL, "LD_LIBRARY_PATH")),
        ([library("/opt/nccl/libnccl.so.2", "preload", "2.18.3"), fact("stack.package", "python", package="nvidia-nccl", version="2.27.5")], ("/opt/nccl/libnccl.so.2", "the package nvidia-nccl", "LD_PRELOAD")),
        ([library("/usr/lib/libnccl.so.2", "system", "2.18.3")], None),  # torch was built against the system's
    ],
)  # fmt: skip
def test_two_libraries_of_one_name(facts: list[Fact], clash: tuple[str, str, str] | None) -> None:
    found = [(one.get("first"), one.get("meant"), one.get("by")) for one in derive_machine(facts) if one.kind == "stack.clash"]
    assert found == ([clash] if clash else [])


@pytest.mark.parametrize(
    ("model", "links"),
    [
        ("NVIDIA H100 80GB HBM3", 18), ("NVIDIA H100 PCIe", None), ("NVIDIA H100 NVL", None), ("NVIDIA H800", 8), ("NVIDIA H20", 18), ("NVIDIA H200", 18),
        ("NVIDIA A100-SXM4-80GB", 12), ("NVIDIA A100 80GB PCIe", None), ("NVIDIA A800-SXM4-80GB", 8), ("Tesla V100-SXM2-32GB", 6), ("Tesla V100-PCIE-16GB", None),
        ("NVIDIA B200", 18), ("NVIDIA L40S", None), ("NVIDIA GeForce RTX 4090", None), ("", None),
    ],
)  # fmt: skip
def test_links_of_a_model(model: str, links: int | None) -> None:
    assert expected_links(model) == links


@pytest.mark.parametrize(
    ("arch", "words"),
    [
        ("7.0", "Volta: BF16 only emulated, slow, no flash attention 2"),
        ("7.5", "Turing: BF16 only emulated, slow, no flash attention 2"),
        ("8.0", "Ampere: BF16, TF32, flash attention 2"),
        ("8.9", "Ada: BF16, TF32, FP8, flash attention 2"),
        ("9.0", "Hopper: BF16, TF32, FP8, flash attention 2 and 3"),
        ("10.0", "Blackwell: BF16, TF32, FP8, FP4, flash attention 2"),
        ("99.0", "driver 570.86.10 (CUDA 12.8)"),
    ],
)
def test_what_an_architecture_can_do(arch: str, words: str) -> None:
    facts = derive_machine(
        [fact("gpu.device", gpu=0, model="GPU X", memory=1 << 30, arch=arch), fact("gpu.driver", driver="570.86.10", cuda="12.8")]
    )
    assert words in summaries(facts)["gpu"]


def test_versions() -> None:
    assert version("2.13.0+cpu") == (2, 13, 0)
    assert version("570.86.10") == (570, 86, 10)
    assert version("v1.2") == (1, 2)
    assert version("") == version(None) == version("none") == ()
