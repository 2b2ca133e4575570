"""The variables that matter to training: those of the environment, and those that NCCL reads from its files. They are judged elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from memdoctor.sources.probes.notebook import Notebook, read_text
from memdoctor.sources.probes.request import Request

KINDS = ("env.setting",)
ENVIRONMENT = "environment"
PREFIXES = (
    "NCCL_", "TORCH_", "TORCHELASTIC_", "PYTORCH_", "CUDA_", "CUBLAS", "CUDNN_", "NVIDIA_", "NVTE_", "OMP_", "MKL_", "KMP_", "GLOO_", "TP_SOCKET_", "HF_",
    "TRANSFORMERS_", "TOKENIZERS_", "DEEPSPEED_", "DS_", "SLURM_", "OMPI_COMM_WORLD_", "UCX_", "FI_", "OFI_NCCL_", "MASTER_", "LD_LIBRARY_PATH", "LD_PRELOAD",
)  # fmt: skip
EXACT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK", "NNODES", "MAX_JOBS")
_SLURM = (
    "SLURM_JOB_ID", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_GPUS", "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK", "SLURM_JOB_GPUS", "SLURM_CPUS_PER_TASK", "SLURM_LOCALID", "SLURM_PROCID", "SLURM_NODEID",
)  # fmt: skip
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_KEY", re.I)
_SLIP = re.compile(r"[A-Za-z][A-Za-z0-9_]{7,40}")
LONGEST = 16_384  # characters of a value; what is longer is kept in part, and not judged


def probe(notes: Notebook, request: Request) -> None:
    environ = dict(request.environ)
    for name, value in chosen(environ):
        _note(notes, name, value, ENVIRONMENT, None, environ)
    for path in conf_files(environ):
        if os.path.exists(path) and not os.path.isfile(path):
            notes.skip(f"{path} is no file: NCCL would read it, and wait")
            continue
        text = read_text(path)
        if text is None:
            continue
        for line, (name, value) in conf_lines(text):
            if name not in environ:  # the environment goes before the user's file, and that before the system's
                environ[name] = value
                _note(notes, name, value, path, line, environ)


def chosen(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variables to keep, by name: never a secret, and nothing that has to do with anything else."""
    for name, value in sorted(environ.items()):
        if _SECRET.search(name) or (name.startswith("SLURM_") and name not in _SLURM):
            continue
        if name in EXACT or name.upper().startswith(PREFIXES) or (_SLIP.fullmatch(name) and _may_be_a_slip(name)):
            yield name, value


def _may_be_a_slip(name: str) -> bool:
    """Something like NCLL_DEBUG: the letters of a prefix of ours, in a wrong order or with one wrong. The judge decides."""
    head = name.upper().partition("_")[0]
    return any(
        sorted(head) == sorted(prefix) or _one_off(head, prefix)
        for prefix in ("NCCL", "TORCH", "PYTORCH", "CUDA", "NVTE", "MASTER", "GLOO")
    )


def _one_off(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1 or len(other) < 4:
        return False
    if len(one) == len(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) == 1
    short, long = sorted((one, other), key=len)
    return any(long[:place] + long[place + 1 :] == short for place in range(len(long)))


def conf_files(environ: Mapping[str, str]) -> list[str]:
    """The files that NCCL reads, the one that goes first first."""
    own = environ.get("NCCL_CONF_FILE") or (os.path.join(environ["HOME"], ".nccl.conf") if environ.get("HOME") else "")
    return [path for path in (own, "/etc/nccl.conf") if path]


def conf_lines(text: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """(line, (name, value)) as NCCL reads them: the first ``=`` separates, nothing is stripped, ``#`` only at the very start is a remark."""
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#") and name:
            yield number, (name, value)


def _note(notes: Notebook, name: str, value: str, source: str, line: int | None, environ: Mapping[str, str]) -> None:
    cut = len(value) > LONGEST
    value = value[:LONGEST]
    absent = value.startswith("/") and not os.path.exists(value) and "%" not in value
    notes.add(
        "env.setting",
        path=source,
        line=line,
        excerpt=f"{name}={value}",
        variable=name,
        value=value,
        from_=source,
        absent=True if absent else None,
        cut=True if cut else None,
    )
