"""What --redact hides, and what it must leave alone."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from memdoctor.model import Diagnosis, Evidence, Fix, Incident, InputFile, Report, Run, Skip, Stamp
from memdoctor.report.redact import redact


def report(*lines: str, hosts: tuple[str, ...] = (), message: str = "", path: str = "train.log", **more: object) -> Report:
    diagnosis = Diagnosis(
        id="d1", rule="oom/logits", cause="oom.logits", severity="error", confidence="likely", message=message, why="", not_this="", title="",
        action="fix-config", hosts=hosts, ranks=(7,), first_time=Stamp(1.0, "2026-11-29T13:00:00"),
        evidence=tuple(Evidence(path, 88123, 7, None, line) for line in lines),
    )  # fmt: skip
    given = {"command": "logs", "inputs": (InputFile(path, 1, 2),), "run": Run(), "root_cause": "oom.logits", "confidence": "likely"}
    return Report(**{**given, "action": "fix-config", "diagnoses": (diagnosis,), **more})  # type: ignore[arg-type]


def lines(*given: str, hosts: tuple[str, ...] = ()) -> list[str]:
    return [each.text for each in redact(report(*given, hosts=hosts)).diagnoses[0].evidence]


def line(given: str, hosts: tuple[str, ...] = ()) -> str:
    return lines(given, hosts=hosts)[0]


@pytest.mark.parametrize(
    ("given", "hidden"),
    [
        # hosts
        ("gpu17:1234:1300 [3] NCCL WARN Cuda failure", "host-1:1234:1300 [3] NCCL WARN Cuda failure"),
        ("hydra:1234:1300 [3] NCCL INFO Bootstrap", "host-1:1234:1300 [3] NCCL INFO Bootstrap"),
        ("Nov 29 16:22:10 cn-0042 kernel: NVRM: Xid (PCI:0000:3b:00): 79", "Nov 29 16:22:10 host-1 kernel: NVRM: Xid (PCI:0000:3b:00): 79"),
        ("nfs: server filer not responding, still trying", "nfs: server host-1 not responding, still trying"),
        ("nfs: server nas-2.corp.example OK", "nfs: server host-1 OK"),
        ("NodeName=cn42 Arch=x86_64 CoresPerSocket=56", "NodeName=host-1 Arch=x86_64 CoresPerSocket=56"),
        ("srun: error: cn42: task 3: Killed", "srun: error: host-1: task 3: Killed"),
        ("  host      : a3-node.acme.internal", "  host      : host-1"),
        ("slurmstepd: error: *** JOB 99 ON cn42 CANCELLED AT 2026-11-29T01:00:00 DUE TO TIME LIMIT ***",
         "slurmstepd: error: *** JOB 99 ON host-1 CANCELLED AT 2026-11-29T01:00:00 DUE TO TIME LIMIT ***"),
        ("failed to connect to [cn42]:29500", "failed to connect to [host-1]:29500"),
        ("trying to connect to (cn42, 29500)", "trying to connect to (host-1, 29500)"),
        ("MASTER_ADDR=boss MASTER_PORT=29500", "MASTER_ADDR=host-1 MASTER_PORT=29500"),
        ("cn42 said that cn420 is not node cn42", "host-1 said that cn420 is not node host-1"),
        ("job-master-0.train.svc.cluster.local is gone", "host-1 is gone"),
        # addresses
        ("eth0:10.0.0.5<0> to 10.0.0.6<44321>, 10.0.0.5 again", "eth0:ip-1<0> to ip-2<44321>, ip-1 again"),
        ("[2001:db8::5]:29500 and [::ffff:10.1.2.3]:1", "[ip-1]:29500 and [ip-2]:1"),
        ("ens3:fe80::a00:27ff:fe4e:66a1%ens3<0>", "ens3:ip-1<0>"),
        ("link/ether 0c:42:a1:b2:c3:d4", "link/ether mac-1"),
        # users and paths
        ('File "/home/ann.lee/moonshot/train.py", line 90, in main', 'File "/home/user-1/dir-1/train.py", line 90, in main'),
        ("/Users/ann/Library/x.bin", "/Users/user-1/dir-1/file-1.bin"),
        ("saved /mnt/lustre/moonshot/ckpt/iter_0001000/mp_rank_00/model_optim_rng.pt", "saved /mnt/lustre/dir-1/ckpt/iter_0001000/mp_rank_00/model_optim_rng.pt"),
        ("~/moonshot/run.sh and ./moonshot/a", "~/dir-1/run.sh and ./dir-1/dir-2"),
        ("/home/annlee/x.py: uid=1001(annlee) at /scratch/annlee/y", "/home/user-1/x.py: uid=1001(user-1) at /scratch/user-1/dir-1"),
        ("rsync to ann@cn42:/data", "rsync to user-1@host-1:/data"),
        # secrets
        ("login with hf_AbCdEfGhIjKlMnOpQrStUv", "login with secret-1"),
        ("OPENAI_API_KEY=sk-proj-abcdefghijklmnop1234", "OPENAI_API_KEY=secret-1"),
        ("remote: https://x:ghp_0123456789abcdefABCDEF0123456789abcd@github.com/a", "remote: https://x:secret-1@github.com/a"),
        ("AKIAIOSFODNN7EXAMPLE in bucket", "secret-1 in bucket"),
        ("Authorization: Bearer abc.def-ghi_123", "Authorization: Bearer secret-1"),
        ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "WANDB_API_KEY=secret-1"),
        ('{"password": "hunter2x", "token": "Zm9vYmFyMTIzNDU2Nzg5MA=="}', '{"password": "secret-1", "token": "secret-2"}'),
        ("--hf-token Zm9vYmFyMTIzNDU2Nzg5MA --lr 1", "--hf-token secret-1 --lr 1"),
        ("launch --world_info=eyJub2RlLTAyIjogWzAsIDFdfQ==", "launch --world_info=secret-1"),
    ],
)  # fmt: skip
def test_private_things_go(given: str, hidden: str) -> None:
    assert line(given) == hidden


@pytest.mark.parametrize(
    "given",
    [
        "NCCL version 2.21.5.1+cuda12.4, driver 535.104.12.1, torch==2.4.0.1",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus",
        "GPU 0000:3B:00.0 at 12:34:56 on 2026-11-29T12:34:56.123456",
        "connect to 127.0.0.1:29500, [::1]:29500, [::ffff:127.0.0.1]:1, 0.0.0.0 or docker0 172.17.0.1: Connection refused",
        "what():  CUDA error: c10::Error at std::vector<int>::at(1)",
        "[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=43, OpType=ALLREDUCE, NumelIn=1048576, Timeout(ms)=600000)",
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.05 GiB is free.",
        'File "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 116, in forward',
        "/opt/conda/lib/python3.11/site-packages/deepspeed/runtime/engine.py:1234",
        "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer",
        "store keys: /default_pg/0//cuda//0/2, key=decoder.layers.0.self_attention.linear_qkv.weight",
        "ncclSystemError: NET/IB : mlx5_0:1/RoCE, /dev/shm/nccl-abc123: No space left on device",
        "num_tokens=123456789012345678, eos_token: </s>, token = none, tokens per second per gpu: 12345.6",
        "see https://pytorch.org/docs/stable/notes/cuda.html#environment-variables",
        "DeepSpeed Basic Optimizer = AdamW; node 3, host memory, stage3:2048, rank0, cuda:0",
        "tokenizer_type=GPT2BPETokenizer, key: TransformerLayerSubmodules123",
        "samples/s, forward/backward, N/A, CPU /CUDA, 1/2/3",
    ],
)
def test_evidence_keeps_its_meaning(given: str) -> None:
    assert line(given) == given


def test_a_host_is_the_same_in_every_text() -> None:
    given = report(
        "cn42:1:2 [0] NCCL WARN x", "rank 7 on cn42.acme.internal died", hosts=("cn42", "gpu07"), message="GPU of gpu07 and cn42 lost",
        path="logs/cn42.log", hosts_to_exclude=("gpu07",), not_checked=(("hang/p2p", "no file from cn42"),),
        skips=(Skip("logs/cn42.log", "cut off on gpu07", ("xid",)),), incidents=(Incident(1, "oom.logits", ("d1",)),),
        run=Run(versions={"nccl": "2.21.5.1"}, args={"save": "/ckpt/moonshot/x", "wandb_project": "moonshot", "lr": 0.1, "hosts": ["cn42"]}),
    )  # fmt: skip
    hidden = redact(given)
    diagnosis = hidden.diagnoses[0]
    assert hidden.hosts_to_exclude == ("host-1",)
    assert diagnosis.hosts == ("host-2", "host-1")
    assert diagnosis.message == "GPU of host-1 and host-2 lost"
    assert [each.text for each in diagnosis.evidence] == ["host-2:1:2 [0] NCCL WARN x", "rank 7 on host-2 died"]
    assert hidden.inputs[0].path == "logs/host-2.log" == diagnosis.evidence[0].path
    assert hidden.skips == (Skip("logs/host-2.log", "cut off on host-1", ("xid",)),)
    assert hidden.not_checked == (("hang/p2p", "no file from host-2"),)
    assert hidden.run.versions == {"nccl": "2.21.5.1"}
    assert hidden.run.args == {"save": "/ckpt/dir-1/dir-2", "wandb_project": "name-1", "lr": 0.1, "hosts": ["host-2"]}
    assert (diagnosis.ranks, diagnosis.rule, diagnosis.first_time) == ((7,), "oom/logits", Stamp(1.0, "2026-11-29T13:00:00"))
    assert hidden.incidents == given.incidents


def test_private_folders_of_an_input_go_wherever_it_is_named() -> None:
    hidden = redact(report("x", path="moonshot/train.log", message="moonshot/train.log ends early"))
    assert hidden.inputs[0].path == "dir-1/train.log"
    assert hidden.diagnoses[0].message == "dir-1/train.log ends early"


def test_commands_of_fixes_are_redacted_and_nothing_else_of_them() -> None:
    given = report("x")
    fix = Fix("exclude", "Leave cn42 out.", command="sbatch --exclude=cn42", config=None, risk="safe")
    given = dataclasses.replace(given, diagnoses=(dataclasses.replace(given.diagnoses[0], fixes=(fix,), hosts=("cn42",)),))
    assert redact(given).diagnoses[0].fixes == (
        Fix("exclude", "Leave host-1 out.", command="sbatch --exclude=host-1", config=None, risk="safe"),
    )


def test_stdin_stays_stdin() -> None:
    assert redact(report("x", path="-")).inputs[0].path == "-"


def test_what_is_redacted_already_stays() -> None:
    once = redact(report("cn42:1:2 [0] NCCL WARN 10.0.0.5 /home/ann/moonshot/x.py", hosts=("cn42",)))
    assert redact(once) == once


def test_long_lines_take_no_long_time() -> None:
    hostile = [
        "a." * 50_000,
        "/a" * 50_000,
        ":" * 50_000,
        "token=" * 20_000,
        "a-" * 50_000 + "@",
        "1." * 50_000,
        "--a_" * 20_000,
        "[a" * 30_000,
    ]
    assert len(lines(*hostile)) == len(hostile)


@drawn(
    st.lists(st.sampled_from(["cn42", "10.1.2.3", "/home/annlee/moonshot", "cn42.acme.internal"]) | st.text(max_size=12), max_size=8),
    st.sampled_from(" :/=,[]()\"'|\n"),
)
def test_nothing_private_is_left_whatever_stands_around_it(parts: list[str], between: str) -> None:
    shown = line(between.join(parts), hosts=("cn42",))
    assert not re.search(r"(?<![A-Za-z0-9])cn42(?![A-Za-z0-9])", shown)
    if between in " ,":
        assert "/home/annlee" not in shown
