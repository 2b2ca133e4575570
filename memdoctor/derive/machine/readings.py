"""What must be alike on all nodes, and on all GPUs of a node: name -> value, and when two values are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memdoctor import units
from memdoctor.derive.machine.facts import first, of_kind
from memdoctor.model import Fact

# Variables that differ from rank to rank or from node to node by their nature.
_OWN = (
    "RANK", "LOCAL_RANK", "GROUP_RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_JOB_GPUS", "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK", "NCCL_HOSTID", "TORCHELASTIC_ERROR_FILE", "NCCL_DEBUG_FILE", "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_TOPOLOGY_ADDR", "CUDA_CACHE_PATH", "TORCH_EXTENSIONS_DIR", "TORCH_HOME", "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR", "PYTORCH_KERNEL_CACHE_PATH", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "HF_ASSETS_CACHE", "HF_MODULES_CACHE",
    "HF_XET_CACHE", "TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
)  # fmt: skip
_OWN_PLACES = ("/", "~", "file:")  # a file or folder may lie elsewhere on each node
ONE_FOR_NODE = ("NODE_RANK", "GROUP_RANK")  # with these no two nodes may be alike
ONE_FOR_ALL = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")  # with these no two nodes may differ
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
        name: value.replace(host, "<host>") if host and host in value and name not in ONE_FOR_ALL else value
        for name, value in settings.items()
    }
    values.update({f"${name}": value for name, value in own.items() if name not in _OWN})
    values["visible GPUs"] = _visible(settings.get("CUDA_VISIBLE_DEVICES"), values["GPU count"])
    return {name: value for name, value in values.items() if value is not None}


def is_own(variable: str, values: Sequence[str]) -> bool:
    """True where a variable may differ on every node by its nature: its values are places in the file system."""
    return variable not in ONE_FOR_ALL and all(value.startswith(_OWN_PLACES) for value in values)


def numbers(facts: Sequence[Fact]) -> dict[str, str]:
    """The variables of ``ONE_FOR_NODE`` and their values on one node."""
    return {
        str(fact.get("variable")): str(fact.get("value")) for fact in of_kind(facts, "env.setting") if fact.get("variable") in ONE_FOR_NODE
    }


def alike(one: Any, other: Any) -> bool:
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


def show(value: Any) -> str:
    return units.format_size(value) if isinstance(value, Size) else str(value)


GPU_READINGS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "GPU model": ("model", lambda value: value),
    "GPU memory": ("memory", _number),
    "GPU power limit": ("power_limit", _watts),
    "GPU clock limit": ("clock_set", _megahertz),
}  # ECC, MIG and the compute mode have rules of their own, which name the one GPU, too
LOWERED = 0.95  # of the card's own power limit: below it gpu/power_limit names the GPU
