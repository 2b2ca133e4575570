"""Storage addresses, Windows paths, ``~user`` and serials hide what is private in them, and nothing else."""

from __future__ import annotations

import pytest

from memdoctor.report.redact_places import hide_places, machines_in


def name(kind: str, private: str) -> str:
    return f"<{kind}>"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("open s3://acme-secret/home/jane/secret_llm/data.bin failed", "open s3://<bucket>/home/<user>/<dir>/<file>.bin failed"),
        ("gs://acme-secret-bucket/jane/ckpt", "gs://<bucket>/<dir>/ckpt"),
        ("file:///home/jane/secret_llm/train.py", "file:///home/<user>/<dir>/train.py"),
        ("hdfs://namenode:8020/user/jane/secret/x.json", "hdfs://<bucket>/user/<dir>/<dir>/x.json"),
        ("s3://KEY:pw@acme/x/train.log", "s3://<secret>@<bucket>/<dir>/train.log"),
        (r"'C:\Users\Jane Doe\secret\train.py'", r"'C:\Users\<user>\<dir>\train.py'"),
        ("~jane/secret/run.sh: not found", "~<user>/<dir>/run.sh: not found"),
        ("UUID GPU-1a2b3c4d-0000-1111-2222-333344445555 gone", "UUID GPU-<uuid> gone"),
        ("Serial Number : 1561221012345", "Serial Number : <serial>"),
    ],
)
def test_hides(text: str, hidden: str) -> None:
    assert hide_places(text, name) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "https://pytorch.org/docs/stable/elastic/errors.html",
        "tcp://10.0.0.1:29500",
        "loss ~5 after 3 steps, ~/data stays for the others",
        "time: 12:30:11 C: drive, a:\\ is no path",
        "serialization took 3 s",
        "GPU-util 98 %",
    ],
)
def test_leaves(text: str) -> None:
    assert hide_places(text, name) == text


def test_names_of_machines() -> None:
    assert machines_in("lost cw-dfw-h100-001-231-026 and gpu-a-07-12") == ["cw-dfw-h100-001-231-026", "gpu-a-07-12"]
    assert machines_in("--tensor-model-parallel-size 4, llama-2-70b-chat, 2026-11-29, gpt-3-175b, mlx5_0") == []
