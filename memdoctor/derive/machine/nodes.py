"""Which node is not like the others, and which GPU of a node is not like its neighbours.

What must be alike is listed here. A difference that only follows from another one (a GPU of another model has another size, too) is not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from memdoctor import catalog, units
from memdoctor.derive.machine.facts import by_host, derived, first, of_kind
from memdoctor.model import Fact, Origin
from memdoctor.records import record

# Variables that differ from rank to rank or from node to node by their nature.
_OWN = (
    "RANK", "LOCAL_RANK", "GROUP_RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_JOB_GPUS", "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK", "NCCL_HOSTID", "TORCHELASTIC_ERROR_FILE", "NCCL_DEBUG_FILE", "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_TOPOLOGY_ADDR", "CUDA_CACHE_PATH", "TORCH_EXTENSIONS_DIR", "TORCH_HOME", "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR", "PYTORCH_KERNEL_CACHE_PATH", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "HF_ASSETS_CACHE", "HF_MODULES_CACHE",
    "HF_XET_CACHE", "TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
)  # fmt: skip
_ONE_FOR_ALL = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")  # with these no two nodes may differ
MOST_PARTS = 4  # values that are listed where no one is the usual
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
    "GPU count": ("interconnect", "visible GPUs"),
    "GPU model": ("GPU memory", "GPU power limit", "GPU clock limit", "NVLinks of a GPU", "GPU architecture"),
    "driver": ("CUDA of the driver",),
    "torch": ("NCCL", "cuDNN", "CUDA of torch", "nvidia-nccl", "nvidia-cudnn", "triton"),
    "nvidia-nccl": ("NCCL",),
    "nvidia-cudnn": ("cuDNN",),
    "CUDA of torch": ("NCCL", "cuDNN", "nvidia-nccl", "nvidia-cudnn"),
}  # fmt: skip
Show = Callable[[Any], str]


def differences(facts: Sequence[Fact], looked: Collection[str] = ()) -> list[Fact]:
    """A ``node.difference`` for each node, or GPU of a node, that differs from most of the others, and one where they fall into even parts.

    ``looked`` are hosts whose variables were looked at, though they may have none.
    """
    hosts: dict[str, Sequence[Fact]] = {host: [] for host in looked}
    hosts.update(by_host(facts))
    found = [fact for own in hosts.values() for fact in _among_gpus(own)]
    if len(hosts) > 1:
        found += _among_nodes(hosts, looked)
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
    settings = {str(fact.get("variable")): str(fact.get("value") or "") for fact in of_kind(facts, "env.setting")}
    host = str(facts[0].host or "") if facts else ""
    own = {
        name: value.replace(host, "<host>") if host and host in value and name not in _ONE_FOR_ALL else value
        for name, value in settings.items()
    }
    values.update({f"${name}": value for name, value in own.items() if name not in _OWN})
    values["visible GPUs"] = _visible(settings.get("CUDA_VISIBLE_DEVICES"), values["GPU count"])
    return {name: value for name, value in values.items() if value is not None}


@record
class _Parts:
    """Who has which value, the most frequent first."""

    groups: tuple[tuple[Any, tuple[str, ...]], ...]

    @property
    def even(self) -> bool:
        """True where no value is the usual one: it must be the most frequent by itself, and that of at least half."""
        sizes = [len(members) for _, members in self.groups]
        return sizes[0] == sizes[1] or 2 * sizes[0] < sum(sizes)

    @property
    def odd(self) -> frozenset[str]:
        return frozenset(member for _, members in self.groups[0 if self.even else 1 :] for member in members)


def _among_nodes(hosts: Mapping[str, Sequence[Fact]], looked: Collection[str]) -> list[Fact]:
    known = {host: readings(facts) for host, facts in hosts.items()}
    seen = {host for host, facts in hosts.items() if host in looked or of_kind(facts, "env.setting")}
    found, bare = _without_variables(known, seen)
    parts: dict[str, _Parts] = {}
    for what in dict.fromkeys(name for values in known.values() for name in values):
        values = {host: own[what] for host, own in known.items() if what in own}
        variable = what.startswith("$")
        if variable:  # a variable that a host has not set is a value, too
            values = {host: own.get(what, "not set") for host, own in known.items() if host in seen and host not in bare}
        one = _parts(values)
        if one is None or (variable and _label(what) not in _ONE_FOR_ALL and len(values) > 2 and len(one.groups) == len(values)):
            continue  # where each node has another value, it is its own by nature
        parts[what] = one
    for what, one in parts.items():
        implied = {host for other, its in parts.items() if what in _IMPLIES.get(other, ()) for host in its.odd}
        variable = what.startswith("$")
        scope, where = ("variables", "environment") if variable else ("nodes", "saved facts")
        if one.even:
            if not one.odd <= implied:
                text = "; ".join(f"{_show(value)} on {_listed(members)}" for value, members in one.groups[:MOST_PARTS])
                text += f"; {len(one.groups) - MOST_PARTS} more values" if len(one.groups) > MOST_PARTS else ""
                found.append(_difference(None, where, f"{_label(what)}: {text}", what=_label(what), value=text, scope=f"{scope}, even"))
            continue
        usual, members = one.groups[0]
        for value, alike in one.groups[1:]:
            shown = {"what": _label(what), "value": _show(value), "usual": _show(usual), "others": len(members), "scope": scope}
            for host in alike:
                if host not in implied:
                    text = f"{_label(what)} is {_show(value)}; {len(members)} others: {_show(usual)}"
                    found.append(_difference(host, where, text, nodes=_listed(alike), number=len(alike), **shown))
    return found


def _without_variables(known: Mapping[str, Mapping[str, Any]], seen: Collection[str]) -> tuple[list[Fact], frozenset[str]]:
    """Nodes to which none of the variables came that the others have: told once, and not for each variable."""
    counts = {host: sum(name.startswith("$") for name in known[host]) for host in sorted(seen)}
    bare = [host for host, count in counts.items() if count == 0]
    others = [count for count in counts.values() if count]
    if not bare or len(bare) >= len(others) or min(others) < 2:
        return [], frozenset()
    usual = Counter(others).most_common(1)[0][0]
    more = {"what": "environment variables", "value": "none", "usual": str(usual), "others": len(others), "scope": "environment"}
    text = f"none of the {usual} variables that {len(others)} others have"
    return [_difference(host, "environment", text, nodes=_listed(bare), number=len(bare), **more) for host in bare], frozenset(bare)


def _difference(host: str | None, where: str, text: str, **fields: Any) -> Fact:
    origin = Origin(SOURCE, f"{host}: {where}" if host is not None else where, None, text)
    return Fact("node.difference", catalog.with_computed("node.difference", fields), origin, host=host)


def _parts(values: Mapping[str, Any]) -> _Parts | None:
    """Who has which value; None where all are alike."""
    groups: list[tuple[Any, list[str]]] = []
    for host, value in sorted(values.items()):
        for usual, members in groups:
            if _alike(usual, value):
                members.append(host)
                break
        else:
            groups.append((value, [host]))
    if len(groups) < 2:
        return None
    return _Parts(tuple((value, tuple(members)) for value, members in sorted(groups, key=lambda group: -len(group[1]))))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Size) and isinstance(other, Size):
        return abs(one - other) <= NEAR * max(abs(one), abs(other))
    return bool(one == other)


def _visible(listed: str | None, found: Any) -> int | None:
    """How many GPUs CUDA shows; which ones may differ from node to node."""
    if not isinstance(found, int) or listed is None:
        return found if isinstance(found, int) else None
    return min(found, len([part for part in listed.split(",") if part.strip()]))


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
    parts: dict[str, _Parts] = {}
    for what, (field, shape) in _GPU_READINGS.items():
        if field == "power_limit" and any((gpu.get("power_share") or 1.0) < LOWERED for gpu in gpus):
            continue
        one = _parts(
            {str(gpu.fields.get("gpu", place)): shape(gpu.get(field)) for place, gpu in enumerate(gpus) if gpu.get(field) is not None}
        )
        if one is not None:
            parts[what] = one
    by_number = {str(gpu.fields.get("gpu", place)): gpu for place, gpu in enumerate(gpus)}
    found = []
    for what, one in parts.items():
        implied = {number for other, its in parts.items() if what in _IMPLIES.get(other, ()) for number in its.odd}
        if one.even:
            if not one.odd <= implied:
                text = "; ".join(f"{_show(value)} on GPU {_listed(members)}" for value, members in one.groups[:MOST_PARTS])
                scope = f"GPUs of {gpus[0].host}"
                found.append(derived("node.difference", gpus[0], what=what, value=text, scope=scope))
            continue
        usual, members = one.groups[0]
        for value, odd in one.groups[1:]:
            for number in odd:
                if number in implied:
                    continue
                gpu = by_number[number]
                shown = {"what": what, "value": _show(value), "usual": _show(usual), "gpu": gpu.get("gpu")}
                found.append(derived("node.difference", gpu, number=1, others=len(members), scope=f"GPUs of {gpu.host}", **shown))
    return found
