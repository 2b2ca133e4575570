"""Which node is not like the others, and which GPU of a node is not like its neighbours.

What must be alike is listed here. A difference that only follows from another one (a GPU of another model has another size, too) is not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memdoctor import units
from memdoctor.derive.machine.facts import by_host, derived, first, of_kind
from memdoctor.model import Fact, Origin

# Variables that differ from rank to rank or from node to node by their nature.
_OWN = (
    "RANK", "LOCAL_RANK", "GROUP_RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_JOB_GPUS", "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK", "NCCL_HOSTID", "TORCHELASTIC_ERROR_FILE", "NCCL_DEBUG_FILE",
)  # fmt: skip
SOURCE = "probe.nodes"  # no probe by itself: what comes out when several nodes are judged together
NEAR = 0.03  # two sizes that differ by less are of one kind: firmware keeps a little of the RAM for itself
_PACKAGES = (
    "torch",
    "triton",
    "nvidia-nccl",
    "nvidia-cudnn",
    "deepspeed",
    "megatron-core",
    "transformer-engine",
    "flash-attn",
    "flash-attn-3",
    "apex",
    "xformers",
    "bitsandbytes",
)
# what -> what it makes superfluous
_IMPLIES = {
    "GPU count": ("interconnect",),
    "GPU model": ("GPU memory", "GPU power limit", "GPU clock limit", "NVLinks of a GPU", "GPU architecture"),
    "driver": ("CUDA of the driver",),
    "torch": ("NCCL", "cuDNN", "CUDA of torch", "nvidia-nccl", "nvidia-cudnn", "triton"),
    "nvidia-nccl": ("NCCL",),
    "nvidia-cudnn": ("cuDNN",),
    "CUDA of torch": ("NCCL", "cuDNN", "nvidia-nccl", "nvidia-cudnn"),
}  # fmt: skip
Show = Callable[[Any], str]


def differences(facts: Sequence[Fact]) -> list[Fact]:
    """A ``node.difference`` for each node, or GPU of a node, that differs from most of the others."""
    hosts = by_host(facts)
    found = [fact for own in hosts.values() for fact in _among_gpus(own)]
    if len(hosts) > 1:
        found += _among_nodes(hosts)
    return found


def readings(facts: Sequence[Fact]) -> dict[str, Any]:
    """What must be alike on all nodes: name -> value; a number is compared with a tolerance."""
    gpus, driver, torch = of_kind(facts, "gpu.device"), first(facts, "gpu.driver"), first(facts, "stack.torch")
    packages = {str(fact.get("package")): fact.get("version") for fact in of_kind(facts, "stack.package")}
    interfaces = [
        fact for fact in of_kind(facts, "net.interface") if fact.get("type") == "physical" and fact.get("up") and fact.get("addresses")
    ]
    rdma = of_kind(facts, "net.rdma")
    values: dict[str, Any] = {
        "GPU count": first(facts, "gpu.count").get("found"),
        "GPU model": _most([gpu.get("model") for gpu in gpus]),
        "GPU memory": _number(_most([gpu.get("memory") for gpu in gpus])),
        "GPU power limit": _watts(_most([gpu.get("power_limit") for gpu in gpus])),
        "GPU clock limit": _megahertz(_most([gpu.get("clock_set") for gpu in gpus])),
        "NVLinks of a GPU": _most([gpu.get("links_up") for gpu in gpus]),
        "ECC": _switch(_most([gpu.get("ecc") for gpu in gpus])),
        "MIG": _switch(_most([gpu.get("mig") for gpu in gpus])),
        "driver": driver.get("driver"),
        "CUDA of the driver": driver.get("cuda"),
        "Python": first(facts, "stack.python").get("version"),
        "CUDA of torch": torch.get("cuda"),
        "NCCL": torch.get("nccl"),
        "cuDNN": torch.get("cudnn"),
        "kernel": first(facts, "host.system").get("kernel"),
        "RAM": _number(first(facts, "host.memory").get("usable")),
        "/dev/shm": _number(first(facts, "host.shm").get("size")),
        "CPUs": first(facts, "host.cpu").get("usable"),
        "network interfaces": ", ".join(sorted(str(fact.get("interface")) for fact in interfaces)) or None,
        "MTU": _most([fact.get("mtu") for fact in interfaces]),
        "RDMA devices": ", ".join(sorted({str(fact.get("device")) for fact in rdma if fact.get("state") == "active"}))
        or ("none" if rdma else None),
        "RDMA rate": _most([fact.get("rate") for fact in rdma if fact.get("state") == "active"]),
        "RDMA firmware": _most([fact.get("firmware") for fact in rdma]),
    }
    values.update({name: packages.get(name) or ("not installed" if "torch" in packages else None) for name in _PACKAGES})
    settings = {str(fact.get("variable")): fact.get("value") for fact in of_kind(facts, "env.setting")}
    values.update({f"${name}": value for name, value in settings.items() if name not in _OWN})
    return {name: value for name, value in values.items() if value is not None}


def _among_nodes(hosts: Mapping[str, Sequence[Fact]]) -> list[Fact]:
    known = {host: readings(facts) for host, facts in hosts.items()}
    looked = {host for host, facts in hosts.items() if of_kind(facts, "env.setting")}
    odd: dict[str, list[tuple[str, Any, Any, int]]] = {}  # what -> (host, value, usual value, how many have it)
    for what in dict.fromkeys(name for values in known.values() for name in values):
        values = {host: own[what] for host, own in known.items() if what in own}
        if what.startswith("$"):  # a variable that a host has not set is a value, too
            values = {host: own.get(what, "not set") for host, own in known.items() if host in looked}
        for host, value, usual, number in _odd(values):
            odd.setdefault(what, []).append((host, value, usual, number))
    found = []
    for what, entries in odd.items():
        for host, value, usual, number in entries:
            if any(what in _IMPLIES.get(other, ()) and host in {entry[0] for entry in odd[other]} for other in odd):
                continue
            alike = sorted(entry[0] for entry in entries if entry[1] == value)
            value_shown, usual_shown, variable = _show(value), _show(usual), what.startswith("$")
            where = "environment" if variable else "saved facts"
            text = f"{_label(what)} is {value_shown}; {number} others: {usual_shown}"
            origin = Origin(SOURCE, f"{host}: {where}", None, text)
            found.append(
                derived(
                    "node.difference", replace(hosts[host][0], origin=origin, event=""), what=_label(what), value=value_shown, usual=usual_shown,
                    nodes=_listed(alike), number=len(alike), others=number, scope="variables" if variable else "nodes",
                )
            )  # fmt: skip
    return found


def _odd(values: Mapping[str, Any]) -> list[tuple[str, Any, Any, int]]:
    """The hosts whose value is not the usual one: the most frequent, of equals the one that comes first."""
    if len(values) < 2:
        return []
    groups: list[tuple[Any, list[str]]] = []
    for host, value in sorted(values.items()):
        for usual, members in groups:
            if _alike(usual, value):
                members.append(host)
                break
        else:
            groups.append((value, [host]))
    if len(groups) == 1:
        return []
    usual, members = max(groups, key=lambda group: len(group[1]))
    return [(host, value, usual, len(members)) for value, hosts in groups if value is not usual for host in hosts]


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Size) and isinstance(other, Size):
        return abs(one - other) <= NEAR * max(abs(one), abs(other))
    return bool(one == other)


class Size(float):
    """A number of bytes, which need not be exactly alike."""


def _number(value: Any) -> Size | None:
    return None if value is None else Size(value)


def _watts(value: Any) -> str | None:
    return None if value is None else f"{value:.0f} W"


def _megahertz(value: Any) -> str | None:
    return None if value is None else f"{value} MHz"


def _switch(value: Any) -> str | None:
    return None if value is None else "on" if value else "off"


def _most(values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return Counter(known).most_common(1)[0][0] if known else None


def _show(value: Any) -> str:
    return units.format_size(value) if isinstance(value, Size) else str(value)


def _label(what: str) -> str:
    return what.removeprefix("$")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


# --- the GPUs of one host -----------------------------------------------------------------------------------------------------

_GPU_READINGS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "GPU model": ("model", lambda value: value),
    "GPU memory": ("memory", _number),
    "GPU power limit": ("power_limit", _watts),
    "GPU clock limit": ("clock_set", _megahertz),
}  # ECC, MIG and the compute mode have rules of their own, which name the one GPU, too
LOWERED = 0.95  # of the card's own power limit: below it gpu/power_limit names the GPU


def _among_gpus(facts: Sequence[Fact]) -> list[Fact]:
    gpus = of_kind(facts, "gpu.device")
    odd: dict[str, list[tuple[str, Any, Any, int]]] = {}
    for what, (field, shape) in _GPU_READINGS.items():
        if field == "power_limit" and any((gpu.get("power_share") or 1.0) < LOWERED for gpu in gpus):
            continue
        values = {str(number): shape(gpu.get(field)) for number, gpu in enumerate(gpus) if gpu.get(field) is not None}
        odd[what] = _odd(values)
    found = []
    for what, entries in odd.items():
        for number, value, usual, count in entries:
            if any(what in _IMPLIES.get(other, ()) and number in {entry[0] for entry in odd[other]} for other in odd):
                continue
            gpu = gpus[int(number)]
            found.append(
                derived(
                    "node.difference",
                    gpu,
                    what=what,
                    value=_show(value),
                    usual=_show(usual),
                    gpu=gpu.get("gpu"),
                    number=1,
                    others=count,
                    scope=f"GPUs of {gpu.host}",
                )
            )
    return found
