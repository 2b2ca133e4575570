"""Settings as people write them, and the verdict on each."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from memdoctor.derive.variables import Context, judge_variables
from memdoctor.derive.variables.names import edits, nearest
from memdoctor.derive.variables.table import load_table

HOST = Context(
    interfaces=("lo", "eth0", "eth1", "ib0", "docker0"),
    devices=("mlx5_0", "mlx5_1", "mlx5_10", "mlx5_bond_0"),
    gpus=8,
    gpu_ids=tuple(f"GPU-{number}0000000-1111-2222-3333-444444444444" for number in range(8)),
    archs=("9.0",),
    absent=frozenset({"NCCL_TOPO_FILE"}),
    facts={"arch": 9.0, "cpus": 64, "ranks": 8},
)

VALID = """
NCCL_DEBUG=WARN
NCCL_DEBUG=version
NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET      | leftover
NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log
NCCL_DEBUG_FILE=/dev/stderr
NCCL_SOCKET_IFNAME=eth0,eth1
NCCL_SOCKET_IFNAME=eth
NCCL_SOCKET_IFNAME=^docker,lo
NCCL_SOCKET_IFNAME==eth0
NCCL_SOCKET_IFNAME=^=docker0,lo
NCCL_SOCKET_IFNAME=eth0,ens5f0
NCCL_SOCKET_FAMILY=AF_INET
NCCL_IB_HCA=mlx5
NCCL_IB_HCA==mlx5_0:1,mlx5_1:1
NCCL_IB_HCA=^mlx5_bond
NCCL_IB_TIMEOUT=22
NCCL_IB_RETRY_CNT=7
NCCL_IB_GID_INDEX=3
NCCL_IB_TC=106
NCCL_IB_SL=0
NCCL_IB_DISABLE=0
NCCL_IB_QPS_PER_CONNECTION=4 NCCL_IB_SPLIT_DATA_ON_QPS=1
NCCL_IB_ADAPTIVE_ROUTING=1
NCCL_IB_PCI_RELAXED_ORDERING=1
NCCL_NET_GDR_LEVEL=PHB
NCCL_NET_GDR_LEVEL=5
NCCL_P2P_LEVEL=NVL
NCCL_P2P_DISABLE=0
NCCL_P2P_NET_CHUNKSIZE=0x20000
NCCL_CROSS_NIC=1
NCCL_ALGO=Ring
NCCL_ALGO=^NVLS,NVLSTree
NCCL_ALGO=allreduce:tree,ring;broadcast:ring
NCCL_PROTO=Simple
NCCL_PROTO=^LL128
NCCL_BUFFSIZE=8388608
NCCL_BUFFSIZE=+8388608
NCCL_NTHREADS=512
NCCL_MIN_CTAS=4 NCCL_MAX_CTAS=16
NCCL_NVLS_ENABLE=0
NCCL_CUMEM_ENABLE=0
NCCL_NET=Socket NCCL_IB_DISABLE=0
NCCL_NET_PLUGIN=none
NCCL_LAUNCH_ORDER_IMPLICIT=1
NCCL_RAS_ENABLE=0
NCCL_FASTRAK_NUM_FLOWS=2
NCCL_SHM_DISABLE=
NCCL_SYM_CE_THRESHOLD=1048576
TORCH_NCCL_ASYNC_ERROR_HANDLING=1
TORCH_NCCL_BLOCKING_WAIT=false
TORCH_NCCL_DUMP_ON_TIMEOUT=true TORCH_FR_BUFFER_SIZE=20000
TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800
TORCH_DISTRIBUTED_DEBUG=OFF
TORCH_DISTRIBUTED_DEBUG=info
TORCH_CPP_LOG_LEVEL=INFO
GLOO_SOCKET_IFNAME=eth0
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512,garbage_collection_threshold:0.8
PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:[256:1,512:2,1024:4,>:8]
PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
PYTORCH_ALLOC_CONF=expandable_segments:True,
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 PYTORCH_ALLOC_CONF=max_split_size_mb:128
CUDA_VISIBLE_DEVICES=0,1,2,3
CUDA_VISIBLE_DEVICES=7,6,5
CUDA_VISIBLE_DEVICES=GPU-30000000
CUDA_VISIBLE_DEVICES=MIG-41b36db5-bbdd-5a9d-9c2e-fa7b6b4a1e33
CUDA_DEVICE_MAX_CONNECTIONS=1
CUDA_DEVICE_MAX_CONNECTIONS=32
CUDA_DEVICE_ORDER=PCI_BUS_ID
CUDA_LAUNCH_BLOCKING=0
CUDA_MODULE_LOADING=LAZY
CUDA_MPS_PIPE_DIRECTORY=/tmp/mps
CUDA_VERSION=12.8.1
CUBLAS_WORKSPACE_CONFIG=:4096:8
CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8
NVIDIA_TF32_OVERRIDE=1
OMP_NUM_THREADS=8
OMP_NUM_THREADS=4,2
OMP_NUM_THREADS=8 MKL_NUM_THREADS=64
NVTE_FLASH_ATTN=1
NVTE_FUSED_ATTN=0
NVTE_DEBUG=0
TORCH_CUDA_ARCH_LIST=8.0;9.0+PTX
TORCH_CUDA_ARCH_LIST=8.0 9.0a 9.0
HF_HUB_OFFLINE=1
HF_HUB_OFFLINE=False
TOKENIZERS_PARALLELISM=false
DS_ACCELERATOR=cuda
DEEPSPEED_TIMEOUT=60
MASTER_ADDR=node-01 MASTER_PORT=29500
NCCL_IB_DISABLE=false
NCCL_P2P_DISABLE=off
NCCL_NTHREADS=256
NCCL_BUFFSIZE=2147483647
NCCL_SOCKET_NTHREADS=8 NCCL_NSOCKS_PERTHREAD=8
NCCL_IB_HCA=mlx5_1,mlx5_10,mlx5_0
NCCL_LAUNCH_MODE=PARALLEL
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:20.5
PYTORCH_CUDA_ALLOC_CONF=large_segment_size_mb:11
PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0
PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.999
CUDA_VISIBLE_DEVICES=GPU-30000000,GPU-20000000
RANK=7 WORLD_SIZE=8 LOCAL_RANK=7 LOCAL_WORLD_SIZE=8
NVIDIA_VISIBLE_DEVICES=all
HOME=/root
NCCLX=1
TRAIN_DEBUG=1
MODEL_PARALLEL=2
"""

WRONG = """
# misspelt, or never there
NCCL_SOCKET_IF_NAME=eth0 | misspelt NCCL_SOCKET_IFNAME
NCCL_IFNAME=eth0 | misspelt NCCL_SOCKET_IFNAME
NCCL_P2P_DISABLED=1 | misspelt NCCL_P2P_DISABLE
NCCL_DISABLE_P2P=1 | misspelt NCCL_P2P_DISABLE
NCCL_IB_DISABLED=1 | misspelt NCCL_IB_DISABLE
NCCL_DEBUG_LEVEL=INFO | misspelt NCCL_DEBUG
NCCL_DEGUB=INFO | misspelt NCCL_DEBUG
NCLL_DEBUG=INFO | misspelt NCCL_DEBUG
nccl_debug=INFO | misspelt NCCL_DEBUG
NCCL_IB_GID=3 | misspelt NCCL_IB_GID_INDEX
NCCL_IB_TIMEOUTS=22 | misspelt NCCL_IB_TIMEOUT
NCCL_BUFFER_SIZE=4194304 | misspelt NCCL_BUFFSIZE
NCCL_TIMEOUT=3600 | unknown
TORCH_NCCL_TIMEOUT=3600 | unknown
NCCL_MAGIC_SPEED=1 | unknown
TORCH_NCCL_ASYNC_ERROR_HANDLNG=1 | misspelt TORCH_NCCL_ASYNC_ERROR_HANDLING
TORCH_NCCL_HEARTBEAT_TIMEOUT=1800 | unknown
PYTORCH_CUDA_ALOC_CONF=expandable_segments:True | misspelt PYTORCH_CUDA_ALLOC_CONF
CUDA_VISIBLE_DEVICE=0 | misspelt CUDA_VISIBLE_DEVICES
CUDA_MAX_CONNECTIONS=1 | misspelt CUDA_DEVICE_MAX_CONNECTIONS
OMP_NUM_THREAD=8 | misspelt OMP_NUM_THREADS
MASTER_ADDRESS=node-01 | misspelt MASTER_ADDR
NVTE_FLASH_ATTENTION=0 | misspelt NVTE_FLASH_ATTN
NCCL_HEARTBEAT_TIMEOUT_SEC=1800 | misspelt TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC
NCCL_TRACE_BUFFER_SIZE=2000 | misspelt TORCH_NCCL_TRACE_BUFFER_SIZE
NCCL_DUMP_ON_TIMEOUT=1 | misspelt TORCH_NCCL_DUMP_ON_TIMEOUT
NCCL_NAN_CHECK=1 | misspelt TORCH_NCCL_NAN_CHECK
# read otherwise than meant
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:-1 | read_otherwise 18446744073709551615
NCCL_P2P_DISABLE=true | read_otherwise 0 -> 1
NCCL_IB_DISABLE=True | read_otherwise 0 -> 1
NCCL_IB_DISABLE=yes | read_otherwise 0 -> 1
NCCL_NVLS_ENABLE=true | read_otherwise 0 -> 1
NCCL_RAS_ENABLE=on | read_otherwise 0 -> 1
NCCL_P2P_DISABLE="1" | read_otherwise 0 -> 1
NCCL_BUFFSIZE=4M | read_otherwise 4 -> 4194304
NCCL_BUFFSIZE=8MiB | read_otherwise 8 -> 8388608
NCCL_P2P_NET_CHUNKSIZE=512k | read_otherwise 512 -> 524288
NCCL_IB_TC=0106 | read_otherwise 70 -> 106
NCCL_NTHREADS=010 | read_otherwise 8 -> 10
NCCL_IB_TIMEOUT=22s | read_otherwise 22
NCCL_SOCKET_IFNAME=eth0,^lo | read_otherwise ^lo
NCCL_SOCKET_IFNAME=eth0, eth1 | read_otherwise ' eth1'
NCCL_IB_HCA=mlx5_1 | read_otherwise mlx5_1,mlx5_10 -> =mlx5_1
NCCL_DEBUG_FILE=~/nccl.%p.log | read_otherwise
TORCH_FR_BUFFER_SIZE=2k | read_otherwise 2
HF_HUB_OFFLINE=enabled | read_otherwise false -> 1
CUDA_DEVICE_MAX_CONNECTIONS=one | read_otherwise 0
# ignored, refused
NCCL_DEBUG=DEBUG | ignored
NCCL_DEBUG=WARNING | ignored
NCCL_DEBUG=INFOO | ignored -> INFO
NCCL_P2P_DISABLE=2 | ignored
NCCL_P2P_LEVEL=nvl | ignored -> NVL
NCCL_NET_GDR_LEVEL=phb | ignored -> PHB
NCCL_SOCKET_FAMILY=af_inet | ignored -> AF_INET
NCCL_DEBUG_SUBSYS=INIT,NETWORK | ignored
NCCL_IB_RETRY_CNT=10 | ignored
NCCL_IB_TIMEOUT=64 | ignored
NCCL_BUFFSIZE=1024 | ignored
CUDA_DEVICE_ORDER=pci_bus_id | ignored -> PCI_BUS_ID
OMP_NUM_THREADS=0 | ignored
OMP_NUM_THREADS=auto | ignored
CUBLAS_WORKSPACE_CONFIG=4096:8 | ignored -> :4096:8
NCCL_NTHREADS=100 | ignored -> 96
NCCL_NTHREADS=500 | ignored -> 480
NCCL_LL128_NTHREADS=130 | ignored -> 128
NCCL_BUFFSIZE=4294967296 | ignored
PYTORCH_CUDA_ALLOC_CONF=,max_split_size_mb:128 | ignored -> max_split_size_mb:128
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,,max_split_size_mb:128 | ignored -> expandable_segments:True,max_split_size_mb:128
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,, | refused -> expandable_segments:True
PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:1.0 | refused
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:99999999999999999999 | refused
PYTORCH_CUDA_ALLOC_CONF=pinned_num_register_threads:3 | refused
NCCL_ALGO=Rign | refused -> Ring
NCCL_ALGO=allreduces:ring | refused -> allreduce
NCCL_PROTO=LL64 | refused
TORCH_NCCL_BLOCKING_WAIT=on | refused -> 1
TORCH_NCCL_ASYNC_ERROR_HANDLING=true | refused -> 1
TORCH_DISTRIBUTED_DEBUG=DEBUG | refused
NVTE_FLASH_ATTN=true | refused -> 1
MASTER_PORT=tcp | refused
MASTER_PORT=99999 | refused
DS_ACCELERATOR=gpu | refused
TORCH_CUDA_ARCH_LIST=sm_90 | refused -> 9.0
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:true | refused -> expandable_segments:True
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb=128 | refused -> max_split_size_mb:128
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:10 | refused
PYTORCH_CUDA_ALLOC_CONF=max_split_size:128 | refused
PYTORCH_CUDA_ALLOC_CONF=expandable_segment:True | refused -> expandable_segments:True
PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:80 | refused
PYTORCH_ALLOC_CONF=roundup_power2_divisions:3 | refused
# removed, renamed
NCCL_IB_CUDA_SUPPORT=1 | removed
NCCL_TREE_THRESHOLD=0 | removed
NCCL_LL_THRESHOLD=16384 | removed
NCCL_CHECKS_DISABLE=1 | removed
NCCL_ASYNC_ERROR_HANDLING=1 | renamed TORCH_NCCL_ASYNC_ERROR_HANDLING
NCCL_MAX_NCHANNELS=8 | renamed NCCL_MAX_CTAS
NCCL_IB_GDR_LEVEL=PHB | renamed NCCL_NET_GDR_LEVEL
TORCH_NCCL_TRACE_BUFFER_SIZE=2000 | renamed TORCH_FR_BUFFER_SIZE
TRANSFORMERS_CACHE=/data/hf | renamed HF_HOME
# debugging leftovers
NCCL_IB_DISABLE=1 | leftover
NCCL_P2P_DISABLE=1 | leftover
NCCL_SHM_DISABLE=1 | leftover
NCCL_P2P_LEVEL=LOC | leftover
NCCL_P2P_LEVEL=0 | leftover
NCCL_DEBUG=INFO | leftover
NCCL_DEBUG=TRACE | leftover
NCCL_LAUNCH_MODE=GROUP | leftover
CUDA_LAUNCH_BLOCKING=1 | leftover
TORCH_DISTRIBUTED_DEBUG=DETAIL | leftover
TORCH_DISTRIBUTED_DEBUG=detail | leftover
TORCH_NCCL_BLOCKING_WAIT=1 | leftover
NVIDIA_TF32_OVERRIDE=0 | leftover
PYTORCH_NO_CUDA_MEMORY_CACHING=1 | leftover
NVTE_DEBUG=1 | leftover
# risky
NCCL_PROTO=LL128 | risky
NCCL_GDR_FLUSH_DISABLE=1 | risky
TORCH_NCCL_ASYNC_ERROR_HANDLING=0 | risky
TORCH_FR_BUFFER_SIZE=0 | risky
NCCL_DEBUG_FILE=/tmp/nccl.log | risky
KMP_DUPLICATE_LIB_OK=TRUE | risky
NCCL_IB_TIMEOUT=0 | risky
# things of this host
NCCL_SOCKET_IFNAME=ens5 | no_interface
NCCL_SOCKET_IFNAME==eth | no_interface
NCCL_SOCKET_IFNAME=^lo,eth,ib,docker | no_interface
NCCL_IB_HCA=mlx4_0 | no_interface
GLOO_SOCKET_IFNAME=eth | no_interface
GLOO_SOCKET_IFNAME=^lo | no_interface
TP_SOCKET_IFNAME=bond0 | no_interface
CUDA_VISIBLE_DEVICES=0,9,1 | device_list 1
CUDA_VISIBLE_DEVICES=0,1,1 | device_list 0
CUDA_VISIBLE_DEVICES= | device_list 0
CUDA_VISIBLE_DEVICES=-1 | device_list 0
CUDA_VISIBLE_DEVICES=0;1 | device_list 0
CUDA_VISIBLE_DEVICES=0,GPU-30000000 | device_list 1
CUDA_VISIBLE_DEVICES=GPU-30000000,1 | device_list 1
CUDA_VISIBLE_DEVICES=cuda:0 | device_list 0
CUDA_VISIBLE_DEVICES=GPU-99999999 | device_list 0
NCCL_TOPO_FILE=/etc/topo.xml | no_file
# against each other
NCCL_SOCKET_NTHREADS=16 NCCL_NSOCKS_PERTHREAD=8 | contradiction
NCCL_P2P_DISABLE=0 NCCL_MIN_CTAS=16 NCCL_MAX_CTAS=8 | contradiction
NCCL_DEBUG=WARN NCCL_DEBUG_SUBSYS=NET | contradiction
NCCL_DEBUG_SUBSYS=NET | contradiction
NCCL_IB_SPLIT_DATA_ON_QPS=1 | contradiction
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128 | contradiction
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 PYTORCH_ALLOC_CONF=expandable_segments:True | contradiction
TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_BUFFER_SIZE=0 | risky contradiction
TORCH_NCCL_ASYNC_ERROR_HANDLING=1 NCCL_ASYNC_ERROR_HANDLING=3 | renamed contradiction
NVTE_DEBUG_LEVEL=2 | contradiction
NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN=0 NVTE_UNFUSED_ATTN=0 | refused
NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN=0 | leftover
NCCL_NET=IB NCCL_IB_DISABLE=1 | leftover refused
RANK=8 WORLD_SIZE=8 | launch
LOCAL_RANK=4 LOCAL_WORLD_SIZE=4 | launch
LOCAL_WORLD_SIZE=16 WORLD_SIZE=16 | launch
CUDA_VISIBLE_DEVICES=0,1 LOCAL_WORLD_SIZE=8 WORLD_SIZE=8 | launch
OMP_NUM_THREADS=64 LOCAL_WORLD_SIZE=8 | contradiction
OMP_NUM_THREADS=9 LOCAL_WORLD_SIZE=8 | contradiction
OMP_NUM_THREADS=1000 | contradiction
OMP_NUM_THREADS=65,1 | contradiction
MKL_NUM_THREADS=1000 | contradiction
TORCH_CUDA_ARCH_LIST=8.0 | contradiction
"""


def parse(line: str) -> tuple[dict[str, str], str]:
    """``A=1 B=2 | verdict``; a blank in a value is kept where no NAME= follows it."""
    text, _, wanted = line.partition(" | ")
    settings: dict[str, str] = {}
    name = ""
    for word in text.strip().split(" "):
        head, equals, value = word.partition("=")
        if (equals and head.replace("_", "").isalnum() and not head.islower()) or (equals and not settings):
            name = head
            settings[name] = value
        else:
            settings[name] += f" {word}"
    return {name: value.rstrip() for name, value in settings.items()}, wanted.strip()


def cases(text: str) -> list[str]:
    return [line for line in text.strip().splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("line", [line for line in cases(VALID) if "|" not in line])
def test_a_valid_setting_is_left_alone(line: str) -> None:
    assert judge_variables(parse(line)[0], HOST) == []


@pytest.mark.parametrize(
    ("threads", "facts", "wrong"),
    [
        ("9", {"cpus": 8}, True),
        ("8", {"cpus": 8}, False),
        ("3", {"cpus": 2.5}, True),  # a quota of the cgroup
        ("1", {"cpus": 0.5}, False),  # fewer than one there cannot be
        ("2", {"cpus": 0.5}, True),
        ("1000", {}, False),  # nothing is known of the host
    ],
)
@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_threads_of_a_host_of_which_no_ranks_are_known(name: str, threads: str, facts: dict[str, float], wrong: bool) -> None:
    verdicts = judge_variables({name: threads}, Context(facts=facts))
    assert [(verdict.variable, verdict.problem) for verdict in verdicts] == ([(name, "contradiction")] if wrong else [])
    assert all("one process alone" in verdict.text for verdict in verdicts)


@pytest.mark.parametrize("line", [line for line in [*cases(WRONG), *cases(VALID)] if "|" in line])
def test_a_wrong_setting_gets_its_verdict(line: str) -> None:
    settings, wanted = parse(line)
    verdicts = judge_variables(settings, HOST)
    problems, _, correction = wanted.partition(" -> ")
    named = {word for word in problems.split() if word in PROBLEMS}
    rest = " ".join(word for word in problems.split() if word not in PROBLEMS)
    assert {verdict.problem for verdict in verdicts} == named
    assert len(verdicts) == len(named)
    for verdict in verdicts:
        assert verdict.variable in settings
        assert verdict.value == settings[verdict.variable]
        assert verdict.text
    if rest:
        assert rest in (verdicts[0].read, verdicts[0].meant)
    if correction:
        assert verdicts[0].meant == correction


PROBLEMS = (
    "misspelt", "unknown", "read_otherwise", "ignored", "refused", "removed", "renamed", "contradiction", "leftover", "risky", "device_list",
    "no_interface", "no_file", "launch",
)  # fmt: skip


def test_there_are_enough_cases_of_both_sorts() -> None:
    assert len(cases(VALID)) >= 80
    assert len(cases(WRONG)) >= 80


@pytest.mark.parametrize(
    ("settings", "facts", "problem"),
    [
        ({}, {"tp": 8, "arch": 9.0}, "refused"),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "8"}, {"tp": 2, "arch": 8.0}, "refused"),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "8"}, {"cp": 2, "arch": 9.0}, "refused"),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {"tp": 8, "arch": 9.0}, None),
        ({}, {"tp": 8, "arch": 10.0}, None),
        ({}, {"tp": 8}, None),  # the architecture is not known
        ({}, {"tp": 1, "arch": 9.0}, None),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {"fsdp": True}, "refused"),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "8"}, {"fsdp": True}, None),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {"zero_stage": 3}, "leftover"),
        ({"MASTER_ADDR": "localhost"}, {"nodes": 2}, "launch"),
        ({"MASTER_ADDR": "localhost"}, {"nodes": 1}, None),
    ],
)
def test_against_what_the_job_is(settings: dict[str, str], facts: dict[str, object], problem: str | None) -> None:
    verdicts = judge_variables(settings, Context(facts=facts))
    assert [verdict.problem for verdict in verdicts] == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("settings", "versions", "problem", "use"),
    [
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, {"torch": "2.4.0+cu121"}, "unknown", "PYTORCH_CUDA_ALLOC_CONF"),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, {"torch": "2.9.0"}, None, None),
        ({"NCCL_RAS_ENABLE": "0"}, {"nccl": "2.18.5"}, "unknown", None),
        ({"NCCL_RAS_ENABLE": "0"}, {"nccl": "2.24"}, None, None),
        ({"NCCL_RAS_ENABLE": "0"}, {"torch": "2.4.0"}, None, None),  # the version of NCCL is not known
        ({"NCCL_WORK_FIFO_DEPTH": "64"}, {"nccl": "2.21.5"}, None, None),  # it was still read then
        ({"NCCL_WORK_FIFO_DEPTH": "64"}, {"nccl": "2.22.3"}, "removed", "NCCL_WORK_FIFO_BYTES"),
        ({"NCCL_MAX_NCHANNELS": "8"}, {"nccl": "2.16.2"}, None, None),  # the new name came with 2.17
        ({"NCCL_MAX_NCHANNELS": "8"}, {"nccl": "2.17.1"}, "renamed", None),
        ({"NCCL_ASYNC_ERROR_HANDLING": "3"}, {"torch": "2.1.2", "nccl": "2.18.1"}, None, None),
        ({"NCCL_ASYNC_ERROR_HANDLING": "3"}, {"torch": "2.4.0", "nccl": "2.20.5"}, "renamed", None),
        ({"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"}, {"torch": "2.1.2"}, "unknown", "NCCL_ASYNC_ERROR_HANDLING"),
    ],
)
def test_names_come_and_go(settings: dict[str, str], versions: dict[str, str], problem: str | None, use: str | None) -> None:
    verdicts = judge_variables(settings, Context(versions=versions))
    assert [verdict.problem for verdict in verdicts] == ([problem] if problem else [])
    assert [verdict.use for verdict in verdicts] == ([use] if problem else [])


ALLOCATOR = [json.loads(line) for line in (Path(__file__).parents[2] / "data" / "allocator_settings.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("value", "taken"), ALLOCATOR, ids=lambda value: value if isinstance(value, str) else "")
def test_the_allocator_takes_what_torch_takes(value: str, taken: bool) -> None:
    """Recorded from torch 2.13 (torch._C._accelerator_setAllocatorSettings), for the options that a build for CPUs reads, too."""
    verdicts = judge_variables({"PYTORCH_CUDA_ALLOC_CONF": value})
    assert any(verdict.problem == "refused" for verdict in verdicts) is not taken


def test_lines_of_a_file_that_hold_more_than_a_name() -> None:
    for name in ("export NCCL_ALGO", "NCCL_ALGO ", " NCCL_ALGO", "set NCCL_ALGO"):
        (verdict,) = judge_variables({name: "Ring"})
        assert (verdict.problem, verdict.meant) == ("misspelt", "NCCL_ALGO")
    assert judge_variables({"export SOMETHING": "1"}) == []


def test_a_value_that_is_known_in_part_is_not_judged() -> None:
    value = "expandable_segments:Tr"
    assert judge_variables({"PYTORCH_CUDA_ALLOC_CONF": value}, Context(cut=frozenset({"PYTORCH_CUDA_ALLOC_CONF"}))) == []
    assert judge_variables({"PYTORCH_CUDA_ALLOC_CONF": value})


def test_nothing_is_concluded_from_what_is_not_known() -> None:
    settings = {"NCCL_SOCKET_IFNAME": "ens5", "NCCL_IB_HCA": "mlx4", "CUDA_VISIBLE_DEVICES": "0,12", "LOCAL_WORLD_SIZE": "16"}
    assert judge_variables(settings) == []


def test_every_real_name_is_its_own_nearest() -> None:
    table = load_table()
    for name, entry in table.entries.items():
        assert nearest(name, table.entries) == name
        assert entry.get("never") or "gone" in entry or "type" in entry, name
        assert not entry.get("meant") or entry["type" if "type" in entry else "never"], name
        if entry.get("never") and entry.get("meant"):
            assert entry["meant"] in table.entries


@pytest.mark.parametrize(
    ("one", "other", "distance"), [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("abcd", "badc", 2), ("abc", "xyz", 3)]
)
def test_edits(one: str, other: str, distance: int) -> None:
    assert edits(one, other, 2) == min(distance, 3)
    assert edits(other, one, 2) == min(distance, 3)


def test_thousands_of_names_that_nobody_reads() -> None:
    begun = time.monotonic()
    verdicts = judge_variables({f"NCCL_MADE_UP_{number:05d}": "1" for number in range(10_000)})
    assert time.monotonic() - begun < 2
    assert len(verdicts) == 51
    assert verdicts[-1].text == "nor have 9949 more names, which no version of a library reads"
