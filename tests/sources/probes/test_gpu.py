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
    ({"ROWS": "none", "PAGES_PENDING_1": 1}, "gpu/remap_pending", "memory pages wait for a reset to be retired", "nvidia-smi -r -i 1"),
    ({"ROW_FAILURE_1": 1, "ROW_PENDING_1": 1}, "gpu/remap_failure", "GPU 1", "--exclude="),
    ({"CLOCKS_2": 0x40}, "gpu/throttle", "hw thermal", "-i 2"),
    ({"CLOCKS_2": 0x80, "CLOCKS_3": 0x8}, "gpu/throttle", "GPU 2, 3", "-i 2,3"),
    ({"CLOCKS_7": 0x20}, "gpu/throttle", "sw thermal", "-i 7"),
    ({"TEMP_4": 85}, "gpu/hot", "85 °C", "temperature"),
    ({"POWER_LIMIT": 400000}, "gpu/power_limit", "400 W", "-pl 700"),
    ({"PCIE_W_6": 8}, "gpu/pcie_width", "x8 of x16", "pcie.link.width"),
    ({"POWER_LIMIT_3": 300000}, "gpu/power_limit", "GPU 3", "-i 3 -pl 700"),
    ({"COMPUTE_MODE_2": 2}, "gpu/prohibited", "GPU 2", "-i 2 -c DEFAULT"),
    ({"COMPUTE_MODE_2": 3}, "gpu/exclusive", "GPU 2", "-i 2 -c DEFAULT"),
    ({"MIG_3": 1, "MEM_3": "none"}, "gpu/mig", "GPU 3", "-i 3 -mig 0"),
    ({"ECC_3": 0}, "gpu/ecc_off", "GPU 3", "-i 3 -e 1"),
    ({"PERSISTENCE_3": 0}, "gpu/persistence", "GPU 3", "persistenced"),
    ({"FABRIC_3": 2}, "gpu/fabric_state", "GPU 3", "nvidia-fabricmanager"),
    ({"HANDLE_3": 999}, "gpu/lost", "GPU 3", "xid"),
    ({"LOST_3": 1, "COUNT": 8}, "gpu/lost", "GPU 3", "--exclude="),
    ({"NVLINKS_3": 0}, "gpu/links_down", "0 of 18", "nvlink -s -i 3"),
    ({"NVLINKS": 0}, "gpu/links_down", "0 of 18", "nvidia-fabricmanager"),
    ({"USED_2": 40 << 30, "PID_2": 999999, "PID_MEM_2": (1 << 64) - 1}, "gpu/held_outside", "up to 40 GiB of GPU 2", "--query-compute-apps"),
    ({"CLOCK_SET_5": 1410}, "gpu/unequal", "GPU 5", "nvidia-smi"),
    ({"MEM_5": 42949672960}, "gpu/unequal", "GPU 5", "nvidia-smi"),
    ({"P2P_3": 3, "P2P_NVLINK_3": 3}, "net/p2p_off", "4 pairs", "topo -m"),
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
        {"USED": 3 << 30},  # what the driver and the desktop keep
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
        ((), {"LOCAL_WORLD_SIZE": "8"}, {"COUNT": 7}, "LOCAL_WORLD_SIZE"),
        ((), {"LOCAL_WORLD_SIZE": "16"}, {"COUNT": 8}, None),  # two ranks a GPU, which is told of the variable
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


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"LOST_3": 1}, "GPU 3 (GPU is lost)"),
        ({"LOST_3": 1, "HANDLE_5": 999}, "GPU 3, 5 (3: GPU is lost; 5: Unknown Error)"),
        ({"HANDLE_3": 999, "HANDLE_4": 15, "HANDLE_5": 2}, "GPU 3-5 (3: Unknown Error; 4: GPU is lost; 5: Invalid Argument)"),
        ({"LOST": 1}, "GPU 0-7 (GPU is lost)"),
    ],
)
def test_every_lost_gpu_is_named(driver: Driver, settings: dict[str, Any], named: str) -> None:
    result = driver.check(**settings)
    assert result.rules == ["gpu/lost"]
    diagnosis = result.diagnosis("gpu/lost")
    assert diagnosis["message"].endswith(f": {named}")
    assert all(each["path"].startswith("NVML, GPU ") for each in diagnosis["evidence"])


# model -> how it answers in health; each is one GPU as it comes, eight of them on its usual board
A100 = {
    "NAME": "NVIDIA A100-SXM4-80GB",
    "CC": "8.0",
    "NVLINKS": 12,
    "FABRIC": "none",
    "MEM": 85899345920,
    "POWER_LIMIT": 400000,
    "POWER_DEFAULT": 400000,
    "CLOCK_SET": 1275,
    "CLOCK_MAX": 1410,
}
GEFORCE = {"NVLINKS": 0, "FABRIC": "none", "ROWS": "none", "MIG": "none", "MEM": 25757220864, "CLOCK_SET": "none"}
MODELS: dict[str, dict[str, Any]] = {
    "V100": {"NAME": "Tesla V100-SXM2-32GB", "CC": "7.0", "NVLINKS": 6, "FABRIC": "none", "ROWS": "none", "MIG": "none", "MEM": 34359738368, "POWER_LIMIT": 300000, "POWER_DEFAULT": 300000},
    "T4": {"NAME": "Tesla T4", "CC": "7.5", "NVLINKS": 0, "FABRIC": "none", "ROWS": "none", "MIG": "none", "MEM": 16106127360, "POWER_LIMIT": 70000, "POWER_DEFAULT": 70000, "P2P": 1, "P2P_NVLINK": 5},
    "A100": A100,
    "A100 PCIe": {**A100, "NAME": "NVIDIA A100 80GB PCIe", "NVLINKS": 0, "P2P_NVLINK": 5},
    "H100": {},
    "H200": {"NAME": "NVIDIA H200", "MEM": 150754820096},
    "B200": {"NAME": "NVIDIA B200", "CC": "10.0", "MEM": 192265846784, "POWER_LIMIT": 1000000, "POWER_DEFAULT": 1000000, "DRIVER": "580.65.06", "CUDA": "13000"},
    "RTX 3090": {**GEFORCE, "NAME": "NVIDIA GeForce RTX 3090", "CC": "8.6", "ECC": "none", "ECC_DEFAULT": "none", "POWER_LIMIT": 350000, "POWER_DEFAULT": 350000, "P2P_NVLINK": 5},
    "RTX 4090": {**GEFORCE, "NAME": "NVIDIA GeForce RTX 4090", "CC": "8.9", "ECC": 0, "ECC_DEFAULT": "none", "POWER_LIMIT": 450000, "POWER_DEFAULT": 450000, "P2P": 1, "P2P_NVLINK": 5},
}  # fmt: skip
ABLE = {
    "V100": "Volta: BF16 only emulated, slow, no flash attention 2", "T4": "Turing: BF16 only emulated, slow, no flash attention 2",
    "A100": "Ampere: BF16, TF32, flash attention 2", "A100 PCIe": "Ampere: BF16, TF32, flash attention 2",
    "H100": "Hopper: BF16, TF32, FP8, flash attention 2 and 3", "H200": "Hopper: BF16, TF32, FP8, flash attention 2 and 3",
    "B200": "Blackwell: BF16, TF32, FP8, FP4, flash attention 2",
    "RTX 3090": "Ampere: BF16, TF32, flash attention 2", "RTX 4090": "Ada: BF16, TF32, FP8, flash attention 2",
}  # fmt: skip
NOTED = {"V100": ["env/bf16_emulated"], "T4": ["env/bf16_emulated", "net/no_p2p"], "RTX 4090": ["net/no_p2p"]}


@pytest.mark.parametrize("model", MODELS)
def test_every_model_in_health(driver: Driver, model: str) -> None:
    result = driver.check(**MODELS[model])
    assert result.rules == NOTED.get(model, [])
    assert {each["severity"] for each in result.report["diagnoses"]} <= {"note"}
    assert result.code == 0
    (check,) = result.report["checks"]
    assert (check["status"], ABLE[model] in check["summary"]) == ("ok", True)


@pytest.mark.parametrize("model", [model for model in MODELS if model not in ("T4", "A100 PCIe", "RTX 3090", "RTX 4090")])
def test_a_board_whose_links_are_gone(driver: Driver, model: str) -> None:
    for settings in ({"NVLINKS": 0}, {"NVLINKS_3": 0}, {"NVLINKS_UP_3": 4}):
        result = driver.check(**{**MODELS[model], **settings})
        assert [each for each in result.rules if each not in NOTED.get(model, [])] == ["gpu/links_down"], settings


@pytest.mark.parametrize("model", MODELS)
def test_a_fault_of_one_gpu_of_any_model(driver: Driver, model: str) -> None:
    for settings, rule in (
        ({"HANDLE_3": 999}, "gpu/lost"),
        ({"ECC_UNC_5": 2}, "gpu/ecc_counted"),
        ({"CLOCKS_2": 0x40}, "gpu/throttle"),
        ({"PCIE_W_6": 4}, "gpu/pcie_width"),
    ):
        result = driver.check(**{**MODELS[model], **settings})
        assert [each for each in result.rules if each not in NOTED.get(model, [])] == [rule]
        number = next(name for name in settings).rpartition("_")[2]
        assert f"GPU {number}" in result.diagnosis(rule)["message"]


@pytest.mark.parametrize(
    ("settings", "summary"),
    [
        ({"MEM_3": "none"}, "7 x NVIDIA H100 80GB HBM3 (79.65 GiB), 1 x NVIDIA H100 80GB HBM3 (memory not told), Hopper"),
        ({"MEM": "none", "NAME": "NVIDIA GB10", "CC": "12.1", "COUNT": 1, "NVLINKS": 0}, "1 x NVIDIA GB10 (memory not told), Blackwell"),
        ({f"MEM_{gpu}": (80 + 4 * gpu) << 30 for gpu in range(8)}, "5 others, Hopper"),
    ],
)
def test_every_gpu_is_in_the_summary(driver: Driver, settings: dict[str, Any], summary: str) -> None:
    (check,) = driver.check(**settings).report["checks"]
    assert summary in check["summary"]


def test_no_gpu_is_no_tick(driver: Driver) -> None:
    result = driver.check(COUNT=0)
    (check,) = result.report["checks"]
    assert (check["status"], check["summary"]) == ("skipped", "the driver lists no GPU")
    assert result.code == 0
    (evidence,) = result.report["diagnoses"][0]["evidence"]
    assert (evidence["path"], evidence["text"].startswith("lists 0, ")) == ("NVML", True)
    expected = driver.check("--expect-gpus", "8", COUNT=0)
    assert (expected.code, [each["severity"] for each in expected.report["diagnoses"]]) == (1, ["error"])


def test_several_faults_of_one_gpu_are_all_named(driver: Driver) -> None:
    result = driver.check(PCIE_W_3=8, POWER_LIMIT_3=300000, NVLINKS_UP_3=16, TEMP_3=85, ECC_3=0, PERSISTENCE_3=0)
    assert result.rules == ["gpu/ecc_off", "gpu/hot", "gpu/links_down", "gpu/pcie_width", "gpu/persistence", "gpu/power_limit"]


def test_a_healthy_machine_with_an_older_driver(tmp_path: Path) -> None:
    """R470 has an older call for processes; pynvml tells so by an exception that is none of NVML's."""
    old = build(tmp_path, "-DOLD")
    result = old.check(**MODELS["A100"], DRIVER="470.82.01", CUDA=11040)
    assert (result.rules, result.report["skips"]) == ([], [])
    assert "driver 470.82.01" in result.report["checks"][0]["summary"]
    held = old.check(**MODELS["A100"], DRIVER="470.82.01", PID_2=999999, PID_MEM_2=8 << 30, USED_2=9 << 30)
    assert held.rules == ["gpu/held_outside"]


def test_a_text_that_is_none_costs_one_reading(driver: Driver) -> None:
    """An error of our own reading is a skip, no fault of the card."""
    result = driver.check(NAME_3=os.fsdecode(b"\xff"))
    assert result.rules == []
    assert ["GPU 3, nvmlDeviceGetName could not be read: UnicodeDecodeError" in skip["reason"] for skip in result.report["skips"]] == [True]


def test_memory_that_is_told_in_part(driver: Driver) -> None:
    result = driver.check(USED_2=40 << 30, PID_2=999999, PID_MEM_2=1 << 30)
    assert result.rules == ["gpu/held_outside", "gpu/memory_unexplained"]
    assert "39 GiB of 79.65 GiB are in use, and no process is listed for it" in result.diagnosis("gpu/memory_unexplained")["message"]


def test_another_program_of_that_number_is_never_to_be_ended(driver: Driver) -> None:
    for pid in (1, os.getpid()):
        result = driver.check(PID_2=pid, PID_MEM_2=8 << 30, USED_2=9 << 30)
        assert result.rules == ["gpu/held_outside"]
        assert not any("kill" in (fix["command"] or "") for each in result.report["diagnoses"] for fix in each["fixes"])


def test_a_zombie_is_not_to_be_killed(driver: Driver) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        deadline = time.monotonic() + 20
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
            time.sleep(0.05)
        result = driver.check(PID_2=child.pid, PID_MEM_2=8 << 30, USED_2=9 << 30)
    if in_a_container():
        assert result.rules == ["gpu/held_outside"]
        return
    assert result.rules == ["gpu/zombie"]
    commands = " ".join(fix["command"] or "" for fix in result.diagnosis("gpu/zombie")["fixes"])
    assert f"kill {child.pid}" not in commands
    assert f"kill {os.getpid()}" in commands


def in_a_container() -> bool:
    return os.readlink("/proc/self/ns/pid") != "pid:[4026531836]"


@pytest.mark.parametrize(
    ("numbers", "uses", "seen"),
    [
        ("pid:[1]", False, False),
        ("pid:[1]", None, False),
        ("pid:[1]", True, True),
        ("own", False, False),
        ("own", None, True),
        ("own", True, True),
    ],
)
def test_whose_number_it_is(monkeypatch: pytest.MonkeyPatch, numbers: str, uses: bool | None, seen: bool) -> None:
    """In a container a number of the host names another program, unless that one is seen to have the driver open."""
    from memdoctor.sources.probes import gpu, system
    from memdoctor.sources.probes.notebook import Notebook

    monkeypatch.setattr(gpu, "FIRST_PIDS", os.readlink("/proc/self/ns/pid") if numbers == "own" else numbers)
    monkeypatch.setattr(system, "uses_gpu", lambda pid: uses)
    notes = Notebook("gpu", "here")
    gpu._note_processes(notes, [{"gpu": 2, "of_pid": os.getpid(), "memory": 8 << 30}])
    (fact,) = notes.facts
    assert fact.get("seen") is seen
    assert (fact.get("command") is not None) is seen


def test_a_process_with_the_driver_open_is_known(tmp_path: Path) -> None:
    import mmap

    from memdoctor.sources.probes.system import uses_gpu

    assert uses_gpu(os.getpid()) is False
    library = tmp_path / "libcuda.so.570.86.10"
    library.write_bytes(b"x" * 4096)
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        assert uses_gpu(os.getpid())


def test_no_driver_where_gpus_are_expected(driver: Driver) -> None:
    from memdoctor.sources.probes.host import container

    rule = "env/container_without_gpus" if container("", dict(driver.environ())) is not None else "env/driver_absent"
    result = driver.check("--expect-gpus", "8", INIT=9)
    assert (result.rules, result.code) == ([rule], 1)
    diagnosis = result.diagnosis(rule)
    assert "the NVIDIA driver is installed, but not loaded; 8 expected by --expect-gpus" in diagnosis["message"]
    assert any("modprobe nvidia" in (fix["command"] or "") for fix in diagnosis["fixes"])


def test_a_driver_that_is_not_loaded_where_none_is_expected(driver: Driver) -> None:
    result = driver.check(INIT=9)
    assert (result.rules, result.code) == (["env/driver_not_loaded"], 0)
    assert any("modprobe nvidia" in (fix["command"] or "") for fix in result.diagnosis("env/driver_not_loaded")["fixes"])


@pytest.mark.parametrize("content", [b"", b"garbage"])
def test_a_library_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(content)
    result = Driver(tmp_path).check()
    assert result.rules == ["env/driver_not_loaded"]
    assert "library cannot be loaded: " in result.diagnosis("env/driver_not_loaded")["message"]
    assert "was not found" not in result.diagnosis("env/driver_not_loaded")["message"]


def test_what_the_library_prints_costs_nothing(driver: Driver, tmp_path: Path) -> None:
    noisy = build(tmp_path, "-DNOISY")
    result = noisy.check()
    assert (result.rules, result.report["skips"]) == ([], [])


def test_a_process_that_holds_a_gpu(driver: Driver, tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.570.86.10"
    library.write_bytes(b"x" * 4096)
    script = f"import mmap, sys; file = open({str(library)!r}, 'rb'); kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        result = driver.check(PID_2=holder.pid, PID_MEM_2=8 << 30, USED_2=9 << 30)
        assert holder.stdin is not None
        holder.stdin.close()
    diagnosis = result.diagnosis("gpu/held")
    assert result.rules == ["gpu/held"]
    assert f"process {holder.pid}" in diagnosis["message"]
    assert "8 GiB of GPU 2" in diagnosis["message"]
    assert [(fix["command"], fix["risk"]) for fix in diagnosis["fixes"]] == [
        (f"ps -o pid,ppid,user,etime,cmd -p {holder.pid}", "safe"),
        (f"kill {holder.pid}", "costly"),
    ]


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


@pytest.mark.parametrize(
    ("settings", "on_the_bus", "rules"), [({"HANDLE_3": 999}, 8, []), ({"LOST_3": 1}, 8, []), ({"COUNT": 7}, 8, ["missing"]), ({}, 8, [])]
)
def test_a_lost_gpu_is_not_missing_besides(
    driver: Driver, tmp_path: Path, settings: dict[str, Any], on_the_bus: int, rules: list[str]
) -> None:
    """NVML still lists a card that has lost its answer; the bus is asked for those that NVML does not list."""
    from memdoctor.derive.machine import derive_machine
    from memdoctor.sources.probes import gpu
    from memdoctor.sources.probes.notebook import Notebook
    from memdoctor.sources.probes.request import Request

    for number in range(on_the_bus):
        folder = tmp_path / "sys" / "bus" / "pci" / "devices" / f"0000:{number + 16:02x}:00.0"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text("0x10de\n")
        (folder / "class").write_text("0x030200\n")
    notes = Notebook("gpu", "here")
    gpu.probe(notes, Request(environ=driver.environ(**settings), root=str(tmp_path)))
    (count,) = [fact for fact in derive_machine(notes.facts) if fact.kind == "gpu.count"]
    assert count.get("pci") == on_the_bus
    assert bool(count.get("missing")) is bool(rules)
