"""Readings of the host out of made-up /proc and /sys trees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memdoctor.sources.probes import cgroup, disks, host
from memdoctor.sources.probes.gpu import pci_gpus
from memdoctor.sources.probes.notebook import Notebook
from memdoctor.sources.probes.request import Request

GIB = 1 << 30


def tree(root: Path, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/self/cgroup": "0::/\n"}, cgroup.Limits()),
        (
            {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": f"{64 * GIB}\n", "/sys/fs/cgroup/memory.current": f"{GIB}\n", "/sys/fs/cgroup/cpu.max": "800000 100000\n",
             "/sys/fs/cgroup/pids.max": "4096\n", "/sys/fs/cgroup/pids.current": "17\n"},
            cgroup.Limits(64 * GIB, GIB, 8.0, 4096, 17, "/sys/fs/cgroup/memory.max"),
        ),
        (  # the tightest limit on the way up counts
            {"/proc/self/cgroup": "0::/job/step\n", "/sys/fs/cgroup/job/memory.max": f"{8 * GIB}\n", "/sys/fs/cgroup/job/step/memory.max": "max\n", "/sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
             "/sys/fs/cgroup/job/cpu.max": "50000 100000\n"},
            cgroup.Limits(8 * GIB, None, 0.5, None, None, "/sys/fs/cgroup/job/memory.max"),
        ),
        (  # version 1, seen from inside a container: the path of /proc/self/cgroup is that of the host
            {"/proc/self/cgroup": "5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n2:pids:/docker/abc\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{16 * GIB}\n",
             "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{2 * GIB}\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "400000\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
             "/sys/fs/cgroup/pids/pids.max": "max\n"},
            cgroup.Limits(16 * GIB, 2 * GIB, 4.0, None, None, "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        ),
        (  # "no limit" of version 1
            {"/proc/self/cgroup": "5:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n"},
            cgroup.Limits(),
        ),
        ({"/proc/self/cgroup": "garbage", "/sys/fs/cgroup/memory.max": "a lot"}, cgroup.Limits()),
        ({}, cgroup.Limits()),
    ],
)  # fmt: skip
def test_cgroup(tmp_path: Path, files: dict[str, str], expected: cgroup.Limits) -> None:
    assert cgroup.limits(tree(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({}, {}, None),
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({"/proc/1/cgroup": "1:name=systemd:/kubepods/burstable/pod1\n"}, {}, "kubernetes"),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, {}, None),
        ({}, {"APPTAINER_NAME": "image.sif"}, "apptainer"),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
    ],
)
def test_container(tmp_path: Path, files: dict[str, str], environ: dict[str, str], kind: str | None) -> None:
    assert host.container(tree(tmp_path, files), environ) == kind


@pytest.mark.parametrize(
    ("environ", "nodes"),
    [
        ({}, None),
        ({"SLURM_NNODES": "4"}, 4),
        ({"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, 2),
        ({"WORLD_SIZE": "x"}, None),
        ({"GROUP_WORLD_SIZE": "3"}, 3),
    ],
)
def test_nodes_of_the_job(environ: dict[str, str], nodes: int | None) -> None:
    assert host._nodes(environ) == nodes


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({}, "off"),
        ({"/sys/kernel/iommu_groups/0/type": "DMA-FQ\n", "/sys/kernel/iommu_groups/1/type": "identity\n"}, "translated"),
        ({"/sys/kernel/iommu_groups/0/type": "identity\n"}, "passthrough"),
        ({"/sys/kernel/iommu_groups/0/other": "", "/proc/cmdline": "quiet iommu=pt"}, "passthrough"),
    ],
)
def test_iommu(tmp_path: Path, files: dict[str, str], value: str) -> None:
    assert host._iommu(tree(tmp_path, files)) == value


def test_the_machine_that_runs_this() -> None:
    notes = Notebook("host", "here")
    host.probe(notes, Request(environ=dict(os.environ)))
    kinds = {fact.kind for fact in notes.facts}
    assert kinds == set(host.KINDS)
    memory = next(fact for fact in notes.facts if fact.kind == "host.memory")
    assert 0 < memory.get("available") <= memory.get("total")
    assert memory.get("usable") <= memory.get("total")
    assert all(fact.host == "here" and fact.origin.source == "probe.host" and fact.origin.excerpt for fact in notes.facts)
    assert notes.skips == []


def test_one_step_that_fails_costs_only_itself() -> None:
    notes = Notebook("host", "here")

    def first_thing() -> None:
        raise OSError(5, "Input/output error", "/proc/x")

    def second_thing() -> None:
        notes.add("host.shm", path="/dev/shm", size=1, free=1)

    notes.try_each(first_thing, second_thing)
    assert [skip.reason for skip in notes.skips] == ["first thing: Input/output error: /proc/x"]
    assert [fact.kind for fact in notes.facts] == ["host.shm"]


def test_disks(tmp_path: Path) -> None:
    notes = Notebook("disks", "here")
    disks.probe(notes, Request(environ={"HOME": str(tmp_path), "TMPDIR": str(tmp_path / "not" / "there")}))
    (missing, fact, *_) = notes.facts
    assert missing.get("missing")
    assert (fact.get("name"), fact.get("path")) == ("tmp", str(tmp_path / "not" / "there"))  # told by the nearest folder that is there
    assert 0 <= fact.get("free") <= fact.get("size")
    assert list(tmp_path.iterdir()) == []


def gpu_device(root: Path, name: str, vendor: str, class_: str, driver: str = "") -> None:
    tree(root, {f"/sys/bus/pci/devices/{name}/vendor": vendor, f"/sys/bus/pci/devices/{name}/class": class_})
    if driver:
        (root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (root / f"sys/bus/pci/devices/{name}/driver").symlink_to(root / "sys/bus/pci/drivers" / driver)


def test_gpus_on_the_bus(tmp_path: Path) -> None:
    assert pci_gpus(str(tmp_path)) is None
    gpu_device(tmp_path, "0000:3b:00.0", "0x10de\n", "0x030200\n", "nvidia")
    gpu_device(tmp_path, "0000:5e:00.0", "0x10de\n", "0x030000\n")  # no driver has it
    gpu_device(tmp_path, "0000:5e:00.1", "0x10de\n", "0x040300\n")  # its sound
    gpu_device(tmp_path, "0000:86:00.0", "0x10de\n", "0x030200\n", "vfio-pci")  # given to a virtual machine
    gpu_device(tmp_path, "0000:af:00.0", "0x10de\n", "0x068000\n")  # an NVSwitch
    gpu_device(tmp_path, "0000:01:00.0", "0x1a03\n", "0x030000\n")  # the management controller's
    assert pci_gpus(str(tmp_path)) == 2


def facts_of(notes: Notebook, kind: str) -> list[dict[str, Any]]:
    return [dict(fact.fields) for fact in notes.facts if fact.kind == kind]
