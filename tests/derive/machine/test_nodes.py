"""Sixty-four made-up nodes: the ones that differ are named, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memdoctor.checkup import judge_saved
from memdoctor.cli import main
from memdoctor.model import Fact, Origin
from memdoctor.report import facts as facts_file

GIB = 1 << 30


def node(number: int, **odd: Any) -> tuple[str, list[Fact]]:
    """The facts of one node; ``odd`` replaces fields, ``kind.field`` or a variable (``$NAME``), with None taking it away."""
    host = f"node-{number:02d}"
    settings = {
        "NCCL_DEBUG": "WARN",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_IB_HCA": "mlx5_0",
        "RANK": str(number * 8),
        "SLURM_NODEID": str(number),
        "OMP_NUM_THREADS": "8",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    }
    facts: list[tuple[str, str, str, dict[str, Any]]] = [
        ("host", "host.system", "uname", {"kernel": "6.8.0-45-generic", "os": "Ubuntu 24.04"}),
        ("host", "host.memory", "/proc/meminfo", {"total": 2000 * GIB + number * 1000000, "available": 1900 * GIB - number * GIB, "swap": 0, "swap_used": 0}),
        ("host", "host.shm", "/dev/shm", {"size": 1000 * GIB, "free": 1000 * GIB - number * GIB}),
        ("host", "host.cpu", "/proc/self/status", {"cores": 192, "allowed": 192, "numa_nodes": 2}),
        ("gpu", "gpu.driver", "NVML", {"driver": "570.86.10", "cuda": "12.8"}),
        ("gpu", "gpu.count", "NVML", {"found": 8, "pci": 8, "container": False, "confined": False}),
        ("python", "stack.python", "python", {"path": "/opt/venv/bin/python", "version": "3.12.3"}),
        ("python", "stack.torch", "torch", {"version": "2.9.0+cu128", "cuda": "12.8", "nccl": "2.27.5", "cudnn": "9.10.2", "archs": ["sm_90"], "available": True, "devices": 8}),
        ("python", "stack.package", "site-packages", {"package": "torch", "version": "2.9.0+cu128", "state": "installed"}),
        ("python", "stack.package", "site-packages", {"package": "nvidia-nccl", "version": "2.27.5", "state": "installed"}),
        ("python", "stack.package", "site-packages", {"package": "transformer-engine", "version": "2.10.0", "state": "installed"}),
        ("network", "net.interface", "eth0", {"interface": "eth0", "type": "physical", "up": True, "mtu": 9000, "addresses": [f"10.0.0.{number}"]}),
        ("network", "net.rdma", "mlx5_0", {"device": "mlx5_0", "port": 1, "state": "active", "physical": "linkup", "layer": "InfiniBand", "rate": 400.0, "firmware": "28.39.1002", "gids": 1, "roce_v2": 0}),
        ("network", "net.address", "hostname", {"name": "host", "address": host, "resolved": [f"10.0.0.{number}"], "resolves": True, "loopback": False}),
    ]  # fmt: skip
    for gpu in range(8):
        facts.append(("gpu", "gpu.device", f"NVML, GPU {gpu}", {
            "gpu": gpu, "uuid": f"GPU-{number:04d}{gpu:04d}", "bus_id": f"00000000:{gpu + 16:02X}:00.0", "model": "NVIDIA H100 80GB HBM3", "arch": "9.0", "memory": 85520809984, "used": number * 1000, "reserved": 500000000,
            "temperature": 30.0 + number % 9 + gpu, "slowdown_at": 87.0, "power_limit": 700.0, "power_default": 700.0, "clock_set": 1980, "clock_max": 1980, "width": 16, "width_max": 16, "links_up": 18, "links_down": 0,
            "mig": False, "ecc": True, "persistence": True, "compute_mode": "default", "fabric": "completed", "fabric_status": 0, "processes": 0, "processes_used": 0,
        }))  # fmt: skip
    for name, value in odd.items():
        if name.startswith("$"):
            settings[name[1:]] = value
            continue
        kind, _, field = name.rpartition(".")
        facts = [
            (probe, one, where, {**fields, field: value} if one == kind and field in fields else fields)
            for probe, one, where, fields in facts
        ]
        facts = [(probe, one, where, {k: v for k, v in fields.items() if v is not None}) for probe, one, where, fields in facts]
    for name, value in settings.items():
        if value is not None:
            facts.append(("variables", "env.setting", "environment", {"variable": name, "value": value, "from": "environment"}))
    return host, [Fact(kind, fields, Origin(f"probe.{probe}", where, None, ""), host=host) for probe, kind, where, fields in facts]


def save(folder: Path, number: int, **odd: Any) -> None:
    host, facts = node(number, **odd)
    probes = ["host", "gpu", "python", "variables", "network"]
    (folder / f"{host}.json").write_text(facts_file.render(host, facts, [], probes))


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    for number in range(64):
        save(tmp_path, number)
    return tmp_path


def told(folder: Path) -> list[tuple[str, str, tuple[str, ...]]]:
    report = judge_saved([str(folder)])
    return sorted((each.rule, each.message, each.hosts) for each in report.diagnoses)


def test_sixty_four_equal_nodes(cluster: Path) -> None:
    assert told(cluster) == []


def test_three_planted_differences_are_named_and_nothing_else(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(cluster, 7, **{"gpu.driver.driver": "575.57.08", "gpu.driver.cuda": "12.9"})
    save(cluster, 23, **{"$NCCL_ALGO": "Ring"})
    save(cluster, 41, **{"gpu.device.clock_set": 1410})
    assert told(cluster) == [
        ("env/skew", "GPU clock limit: 1410 MHz on node-41, 1980 MHz on 63 others", ("node-41",)),
        ("env/skew", "driver: 575.57.08 on node-07, 570.86.10 on 63 others", ("node-07",)),
        ("env/skew_variable", "NCCL_ALGO: Ring on node-23, not set on 63 others", ("node-23",)),
    ]
    assert main(["check", str(cluster)]) == 0
    out = capsys.readouterr().out
    assert "3 warnings in 6 checks on 64 nodes." in out
    assert main(["check", str(cluster), "--fail-on", "warning", "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["root_cause"] == "env.skew"
    assert {each["cause"] for each in report["diagnoses"]} == {"env.skew"}
    assert len(report["inputs"]) == 64


@pytest.mark.parametrize(
    ("odd", "differences", "others"),
    [
        ({"gpu.device.model": "NVIDIA H100 PCIe", "gpu.device.memory": 80 * GIB, "gpu.device.power_limit": 350.0, "gpu.device.power_default": 350.0}, ["GPU model"], []),
        ({"gpu.count.found": 7}, ["GPU count"], ["gpu/missing"]),
        ({"stack.torch.nccl": "2.21.5", "stack.package.version": "2.8.0"}, ["torch", "transformer-engine"], []),  # the NCCL of another torch is another one
        ({"stack.torch.nccl": "2.21.5"}, ["NCCL"], []),
        ({"net.interface.interface": "ens5", "$NCCL_SOCKET_IFNAME": "ens5"}, ["NCCL_SOCKET_IFNAME", "network interfaces"], []),
        ({"net.interface.mtu": 1500}, ["MTU"], []),
        ({"net.rdma.state": "down", "net.rdma.physical": "polling"}, ["RDMA devices"], ["net/rdma_down"]),
        ({"net.rdma.firmware": "28.36.1010"}, ["RDMA firmware"], []),
        ({"host.memory.total": 1000 * GIB, "host.memory.available": 900 * GIB}, ["RAM"], []),
        ({"host.memory.total": 1990 * GIB}, [], []),  # firmware keeps a little for itself
        ({"host.system.kernel": "6.5.0-15-generic"}, ["kernel"], []),
        ({"$CUDA_DEVICE_MAX_CONNECTIONS": None}, ["CUDA_DEVICE_MAX_CONNECTIONS"], []),
        ({"$RANK": "5", "$SLURM_NODEID": "99"}, [], []),  # each node has its own
        ({"gpu.device.mig": True}, ["MIG"], ["gpu/mig"]),
    ],
)  # fmt: skip
def test_each_kind_of_difference(cluster: Path, odd: dict[str, Any], differences: list[str], others: list[str]) -> None:
    save(cluster, 11, **odd)
    found = told(cluster)
    assert all(hosts == ("node-11",) for _, _, hosts in found)
    assert sorted(message.partition(":")[0] for rule, message, _ in found if rule.startswith("env/skew")) == sorted(differences)
    assert [rule for rule, _, _ in found if not rule.startswith("env/skew")] == others


def test_equal_odd_nodes_are_told_together(cluster: Path) -> None:
    for number in (3, 4, 5, 6, 7, 8):
        save(cluster, number, **{"host.system.kernel": "6.5.0-15-generic"})
    assert told(cluster) == [
        (
            "env/skew",
            "kernel: 6.5.0-15-generic on node-03, node-04, node-05 and 3 more, 6.8.0-45-generic on 58 others",
            tuple(f"node-{number:02d}" for number in range(3, 9)),
        )
    ]


def test_two_nodes_are_compared_too(tmp_path: Path) -> None:
    """Neither is the odd one, and none is left out."""
    save(tmp_path, 0)
    save(tmp_path, 1, **{"$NCCL_PROTO": "Simple", "gpu.driver.driver": "575.57.08"})
    assert told(tmp_path) == [
        ("env/skew_split", "NCCL_PROTO: not set on node-00; Simple on node-01", ()),
        ("env/skew_split", "driver: 570.86.10 on node-00; 575.57.08 on node-01", ()),
    ]
    report = judge_saved([str(tmp_path)])
    assert (report.confidence, report.action, report.hosts_to_exclude) == ("possible", "fix-config", ())


def test_even_parts(tmp_path: Path) -> None:
    for number in range(8):
        odd = {"gpu.driver.driver": "575.57.08"} if number % 2 else {}
        save(tmp_path, number, **odd)
    values = "570.86.10 on node-00, node-02, node-04, node-06; 575.57.08 on node-01, node-03, node-05, node-07"
    assert told(tmp_path) == [("env/skew_split", f"driver: {values}", ())]


def test_no_value_of_most_nodes(tmp_path: Path) -> None:
    for number in range(7):
        save(tmp_path, number, **{"$NCCL_IB_TIMEOUT": ("20", "22", "23")[number % 3]})
    ((rule, message, hosts),) = told(tmp_path)
    assert (rule, hosts) == ("env/skew_split", ())
    assert message.startswith("NCCL_IB_TIMEOUT: 20 on node-00, node-03, node-06; 22 on node-01, node-04; 23")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HF_HOME", "/local/{}/hf"), ("CUDA_CACHE_PATH", "/local/{}"), ("TORCH_EXTENSIONS_DIR", "/scratch/{}"), ("CUDA_VISIBLE_DEVICES", "GPU-{:04d}0000"),
        ("NCCL_TOPO_FILE", "/etc/topo-{}.xml"), ("NCCL_GRAPH_FILE", "/scratch/node-{:02d}/graph.xml"), ("NCCL_DEBUG_FILE", "/local/node-{:02d}.log"),
    ],
)  # fmt: skip
def test_what_each_node_has_of_its_own(tmp_path: Path, variable: str, value: str) -> None:
    for number in range(4):
        shown = value.format(number) if variable != "CUDA_VISIBLE_DEVICES" else ",".join(f"GPU-{number:04d}{gpu:04d}" for gpu in range(8))
        save(tmp_path, number, **{f"${variable}": shown})
    assert [rule for rule, _, _ in told(tmp_path) if rule.startswith("env/skew")] == []


def test_a_variable_with_another_value_on_every_node(tmp_path: Path) -> None:
    for number, algorithm in enumerate(("Ring", "Tree", "NVLS", "PAT")):
        save(tmp_path, number, **{"$NCCL_ALGO": algorithm})
    report = judge_saved([str(tmp_path)])
    (only,) = [each for each in report.diagnoses if each.rule.startswith("env/skew")]
    assert only.message == "NCCL_ALGO: Ring on node-00; Tree on node-01; NVLS on node-02; PAT on node-03"
    assert (only.confidence, report.hosts_to_exclude) == ("possible", ())


@pytest.mark.parametrize("name", ["NODE_RANK", "GROUP_RANK"])
def test_a_node_rank_that_two_nodes_have(tmp_path: Path, name: str) -> None:
    for number, rank in enumerate(("0", "1", "1", "3")):
        save(tmp_path, number, **{f"${name}": rank})
    report = judge_saved([str(tmp_path)])
    assert [(each.rule, each.message) for each in report.diagnoses] == [("env/node_rank_doubled", f"{name}=1 on 2 nodes: node-01, node-02")]
    assert report.hosts_to_exclude == ()


def test_nodes_are_counted_without_what_belongs_to_none(tmp_path: Path) -> None:
    for number in range(2):
        save(tmp_path, number, **({"gpu.driver.driver": "575.57.08"} if number else {}))
    host, facts = node(0)
    (tmp_path / "again.json").write_text(facts_file.render(host, facts, [], ["host", "gpu", "python", "variables", "network"]))
    summaries = {check.name: check.summary for check in judge_saved([str(tmp_path)]).checks}
    assert summaries["nodes"] == "2 nodes"
    assert summaries["host"].startswith("2 of 2 nodes: ")
    assert not any("of 3 nodes" in summary for summary in summaries.values())


def test_an_address_that_no_two_nodes_share(tmp_path: Path) -> None:
    for number in range(3):
        save(tmp_path, number, **{"$MASTER_ADDR": f"node-{number:02d}"})
    assert [rule for rule, _, _ in told(tmp_path)] == ["env/skew_split"]


def test_a_node_that_shows_fewer_gpus(cluster: Path) -> None:
    save(cluster, 11, **{"$CUDA_VISIBLE_DEVICES": "0,1,2,3"})
    assert told(cluster) == [("env/skew", "visible GPUs: 4 on node-11, 8 on 63 others", ("node-11",))]


def test_a_fix_holds_the_value_of_one_host(cluster: Path) -> None:
    save(cluster, 3, **{"$NCCL_ASYNC_ERROR_HANDLING": "3"})
    save(cluster, 4, **{"$NCCL_ASYNC_ERROR_HANDLING": "1"})
    commands = [fix.command or "" for each in judge_saved([str(cluster)]).diagnoses for fix in each.fixes]
    assert "unset NCCL_ASYNC_ERROR_HANDLING; export TORCH_NCCL_ASYNC_ERROR_HANDLING=3" in commands
    assert not any("3,1" in command or "1,3" in command for command in commands)


def test_a_node_that_has_lost_all_its_variables(cluster: Path) -> None:
    host, facts = node(9)
    kept = [fact for fact in facts if fact.kind != "env.setting"]
    (cluster / f"{host}.json").write_text(facts_file.render(host, kept, [], ["host", "gpu", "python", "variables", "network"]))
    assert told(cluster) == [("env/skew_environment", "environment variables: none on node-09, 5 on 63 others", ("node-09",))]


def test_a_file_that_cannot_be_used_costs_itself_alone(cluster: Path) -> None:
    (cluster / "node-07.json").write_text('{"schema_version": 1, "host":')
    (cluster / "report.json").write_text("[]")
    report = judge_saved([str(cluster)])
    assert report.diagnoses == ()
    assert len(report.inputs) == 63
    assert [skip.reason.split(": ")[0] for skip in report.skips if skip.source == "saved facts"] == [
        str(cluster / "node-07.json"), str(cluster / "report.json"),
    ]  # fmt: skip


def test_a_node_whose_variables_were_not_looked_at_differs_in_nothing(cluster: Path) -> None:
    host, facts = node(9)
    kept = [fact for fact in facts if fact.kind != "env.setting"]
    (cluster / f"{host}.json").write_text(facts_file.render(host, kept, [], ["host", "gpu", "python", "network"]))
    assert told(cluster) == []


def test_two_files_of_one_node_are_one_node(tmp_path: Path) -> None:
    host, facts = node(1)
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(facts_file.render(host, facts, [], ["host", "gpu", "python", "variables", "network"]))
    save(tmp_path, 2)
    odd = [replace(fact, fields={**fact.fields, "driver": "575.57.08"}) if fact.kind == "gpu.driver" else fact for fact in facts]
    (tmp_path / "c.json").write_text(facts_file.render(host, [fact for fact in odd if fact.kind.startswith("gpu.")], [], ["gpu"]))
    report = judge_saved([str(tmp_path)])
    assert [each.message for each in report.diagnoses] == ["driver: 575.57.08 on node-01; 570.86.10 on node-02"]
    assert [skip.reason for skip in report.skips] == [
        f"node-01 has 3 files; of each check the later one counts, {tmp_path / 'c.json'} the last"
    ]


def test_two_nodes_of_one_name(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        _, facts = node(number, **({"gpu.driver.driver": "575.57.08"} if number == 3 else {}))
        (tmp_path / f"{number}.json").write_text(
            facts_file.render("localhost", facts, [], ["host", "gpu", "python", "variables", "network"])
        )
    (only,) = told(tmp_path)
    assert only[1] == "driver: 575.57.08 on localhost#3, 570.86.10 on 2 others"
