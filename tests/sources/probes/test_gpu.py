"""The GPU check from the command line down to the driver: the real pynvml against a made-up libnvidia-ml.so.1."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.stand_in.driver import Driver, build


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return build(tmp_path_factory.mktemp("driver"))


def test_a_healthy_board(driver: Driver) -> None:
    result = driver.check()
    assert (result.rules, result.code) == ([], 0)
    (check,) = result.report["checks"]
    assert (check["name"], check["status"]) == ("gpu", "ok")
    assert "8 x NVIDIA H100 80GB HBM3 (79.65 GiB)" in check["summary"]
    assert "Hopper: BF16, TF32, FP8, flash attention 2 and 3" in check["summary"]
    assert "driver 570.86.10 (CUDA 12.8)" in check["summary"]
    assert result.report["skips"] == []


# (settings of the stand-in, the one rule that names it, what its message holds, what its first fix holds)
FAULTS = [
    ({"LOST_3": 1}, "gpu/lost", "GPU 3", "xid"),
    ({"HANDLE_2": 15}, "gpu/lost", "GPU 2", "xid"),
    ({"INIT": 18}, "gpu/driver_changed", "versions do not match", "rmmod"),
    ({"INIT": 999}, "gpu/handle_lost", "unknown error", None),
    ({"ECC_UNC_5": 3, "ECC_TOTAL_5": 9}, "gpu/ecc_counted", "GPU 5", "-i 5"),
    ({"ROW_PENDING_1": 1}, "gpu/remap_pending", "GPU 1", "nvidia-smi -r -i 1"),
    ({"ROW_FAILURE_1": 1, "ROW_PENDING_1": 1}, "gpu/remap_failure", "GPU 1", "--exclude="),
    ({"CLOCKS_2": 0x40}, "gpu/throttle", "hw thermal", "-i 2"),
    ({"CLOCKS_2": 0x80, "CLOCKS_3": 0x8}, "gpu/throttle", "GPU 2, 3", "-i 2,3"),
    ({"CLOCKS_7": 0x20}, "gpu/throttle", "sw thermal", "-i 7"),
    ({"TEMP_4": 85}, "gpu/hot", "85 °C", "temperature"),
    ({"POWER_LIMIT": 400000}, "gpu/power_limit", "400 W", "-pl 700"),
    ({"PCIE_W_6": 8}, "gpu/pcie_width", "x8 of x16", "pcie.link.width"),
    ({"COMPUTE_MODE": 2}, "gpu/prohibited", "GPU 0-7", "-c DEFAULT"),
    ({"COMPUTE_MODE": 3}, "gpu/exclusive", "a second process is refused", "-c DEFAULT"),
    ({"MIG": 1, "MEM": "none"}, "gpu/mig", "GPU 0-7", "-mig 0"),
    ({"ECC": 0}, "gpu/ecc_off", "GPU 0-7", "-e 1"),
    ({"PERSISTENCE": 0}, "gpu/persistence", "GPU 0-7", "persistenced"),
    ({"NVLINKS_UP_3": 16}, "gpu/links_down", "16 of 18", "nvlink -s -i 3"),
    ({"NVLINKS_UP": 0}, "gpu/links_down", "0 of 18", "nvlink"),
    ({"LINK_RECOVERY_3": 2}, "gpu/link_errors", "2 recoveries", "nvlink -e -i 3"),
    ({"FABRIC": 2}, "gpu/fabric_state", "in_progress", "nvidia-fabricmanager"),
    ({"FABRIC": 3, "FABRIC_STATUS": 5}, "gpu/fabric_state", "status 5", "nvidia-fabricmanager"),
    ({"P2P": 3, "P2P_NVLINK": 3}, "net/p2p_off", "28 pairs", "topo -m"),
    ({"USED_2": 40 << 30}, "gpu/memory_unexplained", "40 GiB of 79.65 GiB", "nvidia-smi"),
    ({"NAME_7": "NVIDIA H100 PCIe", "NVLINKS_7": 0, "NVLINKS_UP_7": 0}, "gpu/unequal", "GPU 7", "nvidia-smi"),
    ({"POWER_LIMIT_7": 690000}, "gpu/unequal", "690 W", "nvidia-smi"),
    ({"COUNT": 8, "NAME": "Tesla V100-SXM2-32GB", "CC": "7.0", "NVLINKS": 6, "FABRIC": "none", "ROWS": "none"}, "env/bf16_emulated", "emulated, slow", "--fp16"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "rule", "message", "command"), FAULTS, ids=lambda value: "" if not isinstance(value, dict) else " ".join(value)
)
def test_a_planted_fault_is_named_and_nothing_else(
    driver: Driver, settings: dict[str, Any], rule: str, message: str, command: str | None
) -> None:
    result = driver.check(**settings)
    assert result.rules == [rule]
    diagnosis = result.diagnosis(rule)
    assert message in diagnosis["message"]
    if command is not None:
        assert any(command in (fix["command"] or "") for fix in diagnosis["fixes"]), diagnosis["fixes"]
    assert result.code == (1 if diagnosis["severity"] == "error" else 0)
    assert diagnosis["evidence"], "a diagnosis carries what it rests on"


@pytest.mark.parametrize(
    "settings",
    [
        {"CLOCKS": 0x5, "TEMP": 79},  # at its power limit, and warm
        {"ECC_TOTAL": 12, "ROWS": 4},  # history
        {"COUNT": 1, "NVLINKS_UP": 0, "FABRIC": "none"},  # one GPU of a board, handed to a virtual machine
        {"NAME": "NVIDIA H100 PCIe", "NVLINKS": 12, "NVLINKS_UP": 0, "FABRIC": "none"},  # no bridge is installed
        {"NAME": "NVIDIA L40S", "CC": "8.9", "NVLINKS": 0, "FABRIC": "none", "POWER_LIMIT": 350000, "POWER_DEFAULT": 350000},
        {"CLOCKS": "none", "FABRIC": "none", "POWER_LIMIT": "none", "ECC": "none", "MIG": "none", "ROWS": "none"},  # an old driver
        {"LINK_CRC_1": 40, "LINK_REPLAY_1": 3},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_what_only_looks_like_a_fault(driver: Driver, settings: dict[str, Any]) -> None:
    assert driver.check(**settings).rules == []


@pytest.mark.parametrize(
    ("arguments", "variables", "settings", "by"),
    [
        (("--expect-gpus", "8"), {}, {"COUNT": 7}, "--expect-gpus"),
        (("--expect-gpus", "8"), {}, {"COUNT": 8}, None),
        (("--expect-gpus", "4"), {}, {"COUNT": 8}, None),
        ((), {"SLURM_GPUS_ON_NODE": "8"}, {"COUNT": 7}, "SLURM_GPUS_ON_NODE"),
        ((), {"SLURM_GPUS_PER_NODE": "h100:8"}, {"COUNT": 7}, "SLURM_GPUS_PER_NODE"),
        ((), {"SLURM_GPUS_ON_NODE": "4"}, {"COUNT": 8}, None),
        ((), {"LOCAL_WORLD_SIZE": "4"}, {"COUNT": 2}, "LOCAL_WORLD_SIZE"),
        ((), {"LOCAL_WORLD_SIZE": "2"}, {"COUNT": 2}, None),
        (("--expect-gpus", "2"), {"LOCAL_WORLD_SIZE": "4"}, {"COUNT": 2}, None),
    ],
)
def test_gpus_that_should_be_there(
    driver: Driver, arguments: tuple[str, ...], variables: dict[str, str], settings: dict[str, Any], by: str | None
) -> None:
    result = driver.check(*arguments, variables=variables, **settings)
    assert result.rules == (["gpu/missing"] if by else [])
    assert result.code == int(by is not None)
    if by:
        assert f"(expected by {by})" in result.diagnosis("gpu/missing")["message"]


def test_no_driver_where_gpus_are_expected(driver: Driver) -> None:
    result = driver.check("--expect-gpus", "8", INIT=9)
    assert result.code == 1
    assert result.rules in (["env/driver_absent"], ["env/container_without_gpus"])
    assert "8 expected by --expect-gpus" in result.report["diagnoses"][0]["message"]


def test_a_process_that_holds_a_gpu(driver: Driver) -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as holder:
        result = driver.check(PID_2=holder.pid, PID_MEM_2=8 << 30, USED_2=9 << 30)
        assert holder.stdin is not None
        holder.stdin.close()
    diagnosis = result.diagnosis("gpu/held")
    assert result.rules == ["gpu/held"]
    assert f"process {holder.pid}" in diagnosis["message"]
    assert "8 GiB of GPU 2" in diagnosis["message"]
    assert any(f"kill {holder.pid}" in (fix["command"] or "") for fix in diagnosis["fixes"])


def test_a_call_that_hangs_costs_one_time_limit(driver: Driver) -> None:
    result = driver.check("--timeout", "1.5", HANG="nvmlDeviceGetTemperature:3")
    assert 1.5 <= result.seconds < 12  # once, not once for each call and GPU
    assert result.rules == ["gpu/no_answer"]
    assert "within 1.5 s at GPU 3, nvmlDeviceGetTemperature" in result.diagnosis("gpu/no_answer")["message"]
    assert any("GPU 3, nvmlDeviceGetTemperature" in skip["reason"] for skip in result.report["skips"])


def test_a_hang_at_the_start(driver: Driver) -> None:
    result = driver.check("--timeout", "1", HANG="nvmlInitWithFlags")
    assert result.rules == ["gpu/no_answer"]
    assert "nvmlInit" in result.diagnosis("gpu/no_answer")["message"]


def test_a_driver_that_crashes_takes_nothing_with_it(driver: Driver) -> None:
    result = driver.check("--only", "host", ABORT="nvmlDeviceGetName:3")
    assert "gpu/no_answer" in result.rules
    assert {check["name"] for check in result.report["checks"]} == {"gpu", "host"}
    assert any("SIGABRT" in skip["reason"] for skip in result.report["skips"])


def test_nothing_is_left_running(driver: Driver) -> None:
    driver.check("--timeout", "1", HANG="nvmlDeviceGetCount_v2")
    left = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if str(driver.folder).encode() in environ.read_bytes():
                left.append(environ.parent.name)
    assert left == []


def test_an_interrupt_ends_the_child_too(driver: Driver) -> None:
    environ = {**driver.environ(HANG="nvmlDeviceGetCount_v2"), "MARK": "interrupted-check"}
    with subprocess.Popen(
        [sys.executable, "-m", "memdoctor", "check", "--only", "gpu", "--timeout", "100"], env=environ, stdout=subprocess.PIPE
    ) as running:
        deadline = time.monotonic() + 20
        while not children(running.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        (child,) = children(running.pid)
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130
    deadline = time.monotonic() + 5
    while os.path.exists(f"/proc/{child}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{child}")


def children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout
    return [int(word) for word in listed.split()]


def test_the_text_of_a_healthy_machine_is_one_line_a_check(driver: Driver) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memdoctor", "check", "--only", "gpu"],
        env={**driver.environ(), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("[✓] GPUs: 8 x NVIDIA H100 80GB HBM3") or done.stdout.startswith("[+] GPUs: 8 x")
    assert done.stdout.endswith("\nNothing wrong found in 1 check.\n")
    assert os.environ.get("STANDIN_COUNT") is None


FAKE_TORCH = """
import time, types
__version__ = "2.9.0+cu128"
version = types.SimpleNamespace(cuda="12.8", hip=None)
_C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True, _cuda_getArchFlags=lambda: "{archs}")
class _Cuda(types.SimpleNamespace):
    def is_available(self): {available}
    def device_count(self): return 8
    def init(self): raise RuntimeError("CUDA unknown error")
cuda = _Cuda(nccl=types.SimpleNamespace(version=lambda: (2, 27, 5)))
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91002))
def device(*a): raise RuntimeError("no kernels here")
"""


def interpreter(folder: Path, **parts: str) -> str:
    """A virtual environment with a made-up torch for CUDA 12.8."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    package = next(folder.glob("lib/python*/site-packages")) / "torch"
    package.mkdir()
    (package.parent / "torch-2.9.0+cu128.dist-info").mkdir()
    given = {"archs": "sm_80 sm_90", "available": "return True", **parts}
    (package / "__init__.py").write_text(re.sub(r"\{(\w+)\}", lambda match: given[match[1]], FAKE_TORCH))
    return str(folder / "bin" / "python")


@pytest.mark.parametrize(
    ("settings", "parts", "rules"),
    [
        ({}, {}, []),
        ({"DRIVER": "550.54.15", "CUDA": 12040}, {}, ["env/driver_minor"]),
        ({"DRIVER": "470.82.01", "CUDA": 11040}, {"available": "return False"}, ["env/driver_below_torch"]),
        ({"NAME": "NVIDIA B200", "CC": "10.0"}, {}, ["env/gpu_not_in_build"]),
        ({"NAME": "NVIDIA B200", "CC": "10.0"}, {"archs": "sm_80 sm_90 compute_90"}, ["env/gpu_by_ptx"]),
        ({"NAME": "NVIDIA L40S", "CC": "8.9", "NVLINKS": 0, "FABRIC": "none"}, {"archs": "sm_80 sm_86 sm_90"}, []),
        ({}, {"available": "return False"}, ["env/torch_sees_no_gpu"]),
        ({"FABRIC": 2}, {"available": "return False"}, ["gpu/fabric_state"]),
    ],
)
def test_torch_against_the_driver(
    driver: Driver, tmp_path: Path, settings: dict[str, Any], parts: dict[str, str], rules: list[str]
) -> None:
    python = interpreter(tmp_path / "venv", **parts)
    result = driver.check("--only", "python", "--python", python, variables={"CUDA_HOME": str(tmp_path)}, **settings)
    assert result.rules == rules


def test_a_driver_that_hangs_is_not_asked_again_through_torch(driver: Driver, tmp_path: Path) -> None:
    python = interpreter(tmp_path / "venv", available="time.sleep(1000)")
    result = driver.check(
        "--only", "python", "--timeout", "2", "--python", python, variables={"CUDA_HOME": str(tmp_path)}, HANG="nvmlDeviceGetName"
    )
    assert result.rules == ["gpu/no_answer"]
    assert result.seconds < 12
    assert {check["name"]: check["status"] for check in result.report["checks"]} == {"gpu": "wrong", "python": "ok"}
