"""The network: interfaces, RDMA devices and what they need, and the addresses at which the ranks meet."""

from __future__ import annotations

import glob
import os
import re
import socket

from memdoctor.sources.probes import system
from memdoctor.sources.probes.notebook import Notebook, read_text, say
from memdoctor.sources.probes.request import Request

KINDS = ("net.interface", "net.rdma", "net.stack", "net.address")
_BRIDGES = re.compile(r"docker\d|br-|virbr|cni|flannel|cali|veth|kube|vxlan|lxc|podman|tun|tap")
_LOOPBACK = re.compile(r"127\.|::1$")


def probe(notes: Notebook, request: Request) -> None:
    root = request.root

    def interfaces() -> None:
        for one in system.interfaces():
            kind = _kind(root, one.name)
            speed = f", {one.speed} Mbit/s" if one.speed else ""
            excerpt = f"{one.name}: {'up' if one.up else 'down'}, MTU {one.mtu}{speed}, {', '.join(one.addresses) or 'no address'}"
            notes.add(
                "net.interface", path=f"/sys/class/net/{one.name}", excerpt=excerpt, interface=one.name, type=kind, up=one.up, speed=one.speed,
                mtu=one.mtu, addresses=one.addresses,
            )  # fmt: skip

    def rdma_devices() -> None:
        read_rdma(notes, root)

    def host_name() -> None:
        name = socket.gethostname()
        found, problem = resolve(name)
        local = _own_addresses()
        notes.add(
            "net.address", path="hostname", excerpt=f"{name} resolves to {', '.join(found)}" if found else f"{name}: {problem}", name="host", address=name,
            resolved=found, resolves=bool(found), loopback=bool(found) and all(_LOOPBACK.match(one) for one in found),
            here=bool(local.intersection(found)), text=problem,
        )  # fmt: skip

    def master_address() -> None:
        if request.environ.get("MASTER_ADDR"):
            read_master(notes, request.environ["MASTER_ADDR"], request.environ.get("MASTER_PORT", ""), dict(request.environ))

    notes.try_each(interfaces, rdma_devices, host_name, master_address)


def _kind(root: str, name: str) -> str:
    if name == "lo":
        return "loopback"
    if _BRIDGES.match(name) or os.path.isdir(f"{root}/sys/class/net/{name}/bridge"):
        return "bridge"
    return "physical" if os.path.exists(f"{root}/sys/class/net/{name}/device") else "virtual"


def read_rdma(notes: Notebook, root: str = "") -> None:
    """Ports of RDMA devices as sysfs shows them, and what user programs need to reach them."""
    devices = sorted(glob.glob(f"{root}/sys/class/infiniband/*"))
    for device in devices:
        name = os.path.basename(device)
        for port in sorted(glob.glob(f"{device}/ports/*"), key=lambda path: int(os.path.basename(path)) if path[-1].isdigit() else 0):
            state, physical = (_word(read_text(f"{port}/{file}")) for file in ("state", "phys_state"))
            rate = re.match(r"[\d.]+", read_text(f"{port}/rate") or "")
            layer = (read_text(f"{port}/link_layer") or "").strip() or None
            gids, version_two = _gids(port)
            number = int(os.path.basename(port)) if os.path.basename(port).isdigit() else None
            excerpt = f"{name} port {number}: {state}, {physical}, {layer or 'unknown layer'}" + (f", {rate[0]} Gb/s" if rate else "")
            interfaces = sorted(os.listdir(f"{device}/device/net")) if os.path.isdir(f"{device}/device/net") else []
            notes.add(
                "net.rdma", path=f"/sys/class/infiniband/{name}", excerpt=excerpt, device=name, port=number, state=state, physical=physical, layer=layer,
                rate=float(rate[0]) if rate else None, firmware=(read_text(f"{device}/fw_ver") or "").strip() or None,
                board=(read_text(f"{device}/board_id") or "").strip() or None, gids=gids, roce_v2=version_two, interface=next(iter(interfaces), None),
            )  # fmt: skip
    if devices:
        files = glob.glob(f"{root}/dev/infiniband/uverbs*")
        notes.add(
            "net.stack",
            path="/dev/infiniband",
            excerpt=f"{len(files)} device files for {len(devices)} devices",
            name="device_files",
            present=bool(files),
        )
        notes.add(
            "net.stack",
            path="libibverbs.so.1",
            excerpt=_library("libibverbs.so.1"),
            name="verbs_library",
            present=not _library("libibverbs.so.1"),
        )
        modules = read_text(f"{root}/proc/modules") or ""
        peer = bool(re.search(r"^nvidia_peermem\b|^nv_peer_mem\b", modules, re.M))
        open_module = "Open Kernel Module" in (read_text(f"{root}/proc/driver/nvidia/version") or "")
        if re.search(r"^nvidia\b", modules, re.M):
            excerpt = (
                "nvidia_peermem is loaded" if peer else f"nvidia_peermem is not loaded; {'open' if open_module else 'closed'} kernel module"
            )
            notes.add("net.stack", path="/proc/modules", excerpt=excerpt, name="peer_memory", present=peer or open_module)


def _word(text: str | None) -> str | None:
    """``4: ACTIVE`` -> ``active``"""
    return text.partition(":")[2].strip().lower() if text else None


def _gids(port: str) -> tuple[int, int]:
    """How many GIDs are set, and how many of them are of RoCE version 2."""
    used = two = 0
    for path in glob.glob(f"{port}/gids/*")[:256]:
        if (read_text(path) or "").strip().replace("0", "").replace(":", ""):
            used += 1
            two += "v2" in (read_text(f"{port}/gid_attrs/types/{os.path.basename(path)}") or "").lower()
    return used, two


def _library(name: str) -> str:
    """Why a shared library cannot be loaded; "" where it can."""
    import ctypes

    try:
        ctypes.CDLL(name)
    except OSError as error:
        return str(error)
    return ""


def resolve(name: str) -> tuple[list[str], str | None]:
    """The addresses of a host name, and otherwise why there are none."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return [], say(error)
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found)), None


def _own_addresses() -> set[str]:
    return {address for one in system.interfaces() for address in one.addresses}


def read_master(notes: Notebook, address: str, port: str, environ: dict[str, str]) -> None:
    """Does MASTER_ADDR resolve, is it this host, and is MASTER_PORT free here?"""
    found, problem = resolve(address)
    here = bool(_own_addresses().intersection(found))
    # Under torchrun and inside a running job somebody listens there on purpose.
    inside = bool(environ.get("TORCHELASTIC_RUN_ID")) or environ.get("RANK", "0") != "0"
    free = port_is_free(int(port)) if here and not inside and port.isdigit() and 0 < int(port) < 65536 else None
    excerpt = f"MASTER_ADDR={address}" + (f" MASTER_PORT={port}" if port else "") + (f" ({', '.join(found)})" if found else f": {problem}")
    notes.add(
        "net.address", path="environment", excerpt=excerpt, name="master", address=address, port=int(port) if port.isdigit() else None, resolved=found,
        resolves=bool(found), loopback=bool(found) and all(_LOOPBACK.match(one) for one in found), here=here, free=free, text=problem,
    )  # fmt: skip


def port_is_free(port: int) -> bool:
    """True where one could listen on the port; nothing is left listening."""
    for family in (socket.AF_INET6, socket.AF_INET):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind(("", port))
                one.listen(1)
        except PermissionError:
            continue
        except OSError as error:
            if error.errno in (98, 48):  # EADDRINUSE of Linux, of macOS
                return False
            continue
    return True
