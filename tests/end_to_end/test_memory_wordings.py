"""Every wording of an out-of-memory message since torch 1.0, with all its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memdoctor.engine.load import load
from memdoctor.model import Fact
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs

SIGNALS = load([rules_dir()]).signals
GIB, MIB = 1024**3, 1024**2
HINT = " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management"
NEW = "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."


def facts_of(text: str, folder: Path, kind: str = "cuda.oom") -> list[Fact]:
    (folder / "a.log").write_text(text + "\n", encoding="utf-8")
    return [fact for fact in read_logs([str(folder / "a.log")], SIGNALS, None).facts if fact.kind == kind]


WORDINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "torch 1.0": (
        "RuntimeError: CUDA out of memory. Tried to allocate 36.00 MiB (GPU 0; 7.93 GiB total capacity; 6.13 GiB already allocated; 47.06 MiB free; "
        "188.00 MiB cached)",
        {"name": "torch", "gpu": 0, "tried": 36 * MIB, "allocated": round(6.13 * GIB), "cached": 188 * MIB, "unused": 188 * MIB, "others": None},
    ),
    "torch 1.4": (
        "RuntimeError: CUDA out of memory. Tried to allocate 36.00 MiB (GPU 1; 8.00 GiB total capacity; 6.00 GiB already allocated; 47.06 MiB free; "
        "7.00 GiB reserved in total by PyTorch)",
        {"gpu": 1, "capacity": 8 * GIB, "reserved": 7 * GIB, "unused": GIB, "unused_over_capacity": 0.125},
    ),
    "torch 1.10 with a fraction": (
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 bytes (GPU 0; 8.00 GiB total capacity; 3.00 GiB already allocated; 4.50 GiB free; "
        f"4.00 GiB allowed; 3.50 GiB reserved in total by PyTorch){HINT}",
        {"tried": 512, "free": round(4.5 * GIB), "allowed": 4 * GIB, "unused": GIB // 2},
    ),
    "torch 2.1": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacty of 80.00 GiB of which 1.00 GiB is free. "
        "Process 4711 has 78.00 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.",
        {"gpu": 3, "capacity": 80 * GIB, "free": GIB, "unallocated": 5 * GIB, "own": 78 * GIB, "others": 0, "non_torch": 3 * GIB},
    ),
    "torch 2.5 with others and pools": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 512.00 MiB is free. "
        "Process 11 has 6.00 GiB memory in use. Including non-PyTorch memory, this process has 70.00 GiB memory in use. Process 22 has 2.00 GiB memory in "
        "use. Of the allocated memory 64.00 GiB is allocated by PyTorch, with 1.25 GiB allocated in private pools (e.g., CUDA Graphs), and 2.00 GiB is "
        f"reserved by PyTorch but unallocated. {NEW}",
        {
            "in_process": 70 * GIB, "others": 8 * GIB, "other_pids": ("11", "22"), "others_over_capacity": 0.1, "others_over_tried": 8.0,
            "private_pools": round(1.25 * GIB), "allocated": 64 * GIB, "non_torch": 4 * GIB,
        },
    ),
    "a container with two processes": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 512.00 MiB is free. "
        "Process 11 has 30.00 GiB memory in use. Process 22 has 49.00 GiB memory in use. Of the allocated memory 44.00 GiB is allocated by PyTorch, and "
        f"2.00 GiB is reserved by PyTorch but unallocated. {NEW}",
        {"own": 49 * GIB, "others": 30 * GIB, "other_pids": ("11",)},
    ),
    "a foreign process alone": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 512.00 MiB is free. "
        "Process 11 has 79.00 GiB memory in use. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
        f"unallocated. {NEW}",
        {"own": None, "others": 79 * GIB},
    ),
    "HIP": (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 64.00 GiB of which 1.00 GiB is free. Of the "
        "allocated memory 60.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
        {"backend": "HIP", "gpu": 5, "capacity": 64 * GIB, "unused": GIB},
    ),
    "XPU": (
        "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 64.00 GiB. Of the allocated memory 60.00 GiB is "
        "allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
        {"backend": "XPU", "tried": 2 * GIB, "free": None},
    ),
    "cudaMallocAsync": (
        "torch.cuda.OutOfMemoryError: Allocation on device 2 would exceed allowed memory. (out of memory)\nCurrently allocated     : 21.00 GiB\n"
        "Requested               : 768.00 MiB\nDevice limit            : 24.00 GiB\nFree (according to CUDA): 20.25 MiB\n"
        "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
        {"name": "async_allocator", "gpu": 2, "allocated": 21 * GIB, "tried": 768 * MIB, "capacity": 24 * GIB},
    ),
    "driver": ("RuntimeError: CUDA error: out of memory", {"name": "driver"}),
    "expandable segments": ("RuntimeError: CUDA driver error: out of memory", {"name": "driver"}),
    "cuBLAS": (
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        {"name": "cublas", "call": "cublasCreate"},
    ),
    "NCCL": ("gpu-03:4711:4801 [3] transport/p2p.cc:231 NCCL WARN Cuda failure 2 'out of memory'", {"name": "nccl"}),
    "old NCCL": ("gpu-03:4711:4801 [3] include/alloc.h:48 NCCL WARN Cuda failure 'out of memory'", {"name": "nccl"}),
    "NCCL's own buffers": ("gpu-03:4711:4801 [3] NCCL WARN Failed to CUDA malloc 4194304 bytes", {"name": "nccl", "tried": 4 * MIB}),
}  # fmt: skip


@pytest.mark.parametrize("wording", WORDINGS, ids=str)
def test_numbers(wording: str, tmp_path: Path) -> None:
    text, expected = WORDINGS[wording]
    found = facts_of(text, tmp_path)
    assert len(found) == 1
    assert {name: found[0].get(name) for name in expected} == expected


def test_rows_within_a_traceback(tmp_path: Path) -> None:
    text, expected = WORDINGS["cudaMallocAsync"]
    traceback = 'Traceback (most recent call last):\n  File "/app/train.py", line 9, in <module>\n    loss = model(x)\n' + text
    (fact,) = facts_of("\n".join(f"[rank3]: {line}" for line in traceback.split("\n")), tmp_path)
    assert fact.rank == 3
    assert {name: fact.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: to avoid running out of memory lower the micro-batch",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376. Reducing block sizes may help.",
        "srun: error: gpu-03: task 3: Out Of Memory",
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
    ],
)
def test_what_is_no_gpu_memory(text: str, tmp_path: Path) -> None:
    assert facts_of(text, tmp_path) == []


def test_a_task_of_slurm_names_its_host(tmp_path: Path) -> None:
    (fact,) = facts_of("srun: error: gpu-03: task 3: Out Of Memory", tmp_path, "host.oom")
    assert (fact.host, fact.get("name"), fact.get("task")) == ("gpu-03", "slurm", 3)
