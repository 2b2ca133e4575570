"""The network: RDMA devices out of a made-up /sys, addresses and ports of this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from memdoctor.sources.probes import network
from memdoctor.sources.probes.notebook import Notebook
from memdoctor.sources.probes.request import Request
from tests.sources.probes.test_host import facts_of, tree

PORT = {
    "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n", "/sys/class/infiniband/mlx5_0/ports/1/phys_state": "5: LinkUp\n",
    "/sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n", "/sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    "/sys/class/infiniband/mlx5_0/fw_ver": "28.39.1002\n", "/sys/class/infiniband/mlx5_0/board_id": "MT_0000000838\n",
    "/sys/class/infiniband/mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:5c25:7303:00d4:aa10\n",
    "/sys/class/infiniband/mlx5_0/ports/1/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000\n",
}  # fmt: skip


def test_an_active_port(tmp_path: Path) -> None:
    notes = Notebook("network", "here")
    network.read_rdma(
        notes, tree(tmp_path, {**PORT, "/dev/infiniband/uverbs0": "", "/proc/modules": "nvidia_peermem 1 0 - Live\nnvidia 1 0 - Live\n"})
    )
    (port,) = facts_of(notes, "net.rdma")
    assert port == {
        "device": "mlx5_0", "port": 1, "state": "active", "physical": "linkup", "layer": "InfiniBand", "rate": 400.0, "firmware": "28.39.1002",
        "board": "MT_0000000838", "gids": 1, "roce_v2": 0,
    }  # fmt: skip
    stack = {fact["name"]: fact["present"] for fact in facts_of(notes, "net.stack")}
    assert stack["device_files"] is True
    assert stack["peer_memory"] is True


def test_a_port_of_roce(tmp_path: Path) -> None:
    files = {name: text.replace("InfiniBand", "Ethernet") for name, text in PORT.items()}
    files["/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0"] = "RoCE v2\n"
    files["/sys/class/infiniband/mlx5_0/device/net/ens5f0/mtu"] = "9000\n"
    notes = Notebook("network", "here")
    network.read_rdma(notes, tree(tmp_path, files))
    (port,) = facts_of(notes, "net.rdma")
    assert (port["layer"], port["roce_v2"], port["interface"]) == ("Ethernet", 1, "ens5f0")
    assert [fact["present"] for fact in facts_of(notes, "net.stack") if fact["name"] == "device_files"] == [False]


def test_no_rdma_device(tmp_path: Path) -> None:
    notes = Notebook("network", "here")
    network.read_rdma(notes, str(tmp_path))
    assert notes.facts == []


def test_a_port_that_is_taken() -> None:
    with socket.socket() as one:
        one.bind(("", 0))
        port = one.getsockname()[1]
        one.listen(1)
        assert not network.port_is_free(port)
        for variables, free in (({}, False), ({"TORCHELASTIC_RUN_ID": "x"}, None), ({"RANK": "3"}, None)):
            notes = Notebook("network", "here")
            network.read_master(notes, "localhost", str(port), variables)
            assert notes.facts[0].get("free") is free, variables
            assert notes.facts[0].get("here") is True
    assert network.port_is_free(port)


@pytest.mark.parametrize("port", ["", "tcp", "0", "70000"])
def test_a_port_that_is_none(port: str) -> None:
    notes = Notebook("network", "here")
    network.read_master(notes, "localhost", port, {})
    assert notes.facts[0].get("free") is None


def test_a_name_that_does_not_resolve() -> None:
    notes = Notebook("network", "here")
    network.read_master(notes, "no-such-host.invalid", "29500", {})
    fact = notes.facts[0]
    assert (fact.get("resolves"), fact.get("here"), fact.get("free")) == (False, False, None)
    assert fact.get("text")
    assert network.resolve("a..b")[0] == []  # no name at all
    assert network.resolve("x" * 300)[0] == []


def test_the_machine_that_runs_this() -> None:
    notes = Notebook("network", "here")
    network.probe(notes, Request())
    interfaces = facts_of(notes, "net.interface")
    assert {"loopback"} <= {one["type"] for one in interfaces}
    assert [fact.get("name") for fact in notes.facts if fact.kind == "net.address"] == ["host"]
