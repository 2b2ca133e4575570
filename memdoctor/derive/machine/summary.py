"""One line for each check of what was found, for those in which nothing is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memdoctor import units
from memdoctor.derive.machine.facts import by_host, first, of_kind
from memdoctor.model import Fact

PROBE = "probe."


def summaries(facts: Sequence[Fact]) -> dict[str, str]:
    """probe -> what it found, in one line; of several hosts what most of them have."""
    hosts = by_host(fact for fact in facts if fact.kind != "node.difference")  # that of nodes in even parts belongs to none of them
    result = {}
    for probe in dict.fromkeys(fact.origin.source.removeprefix(PROBE) for fact in facts if fact.origin.source.startswith(PROBE)):
        shape = _SHAPES.get(probe)
        if shape is None:
            continue
        lines = Counter(line for own in hosts.values() if (line := shape(own)))
        if not lines:
            continue
        line, number = lines.most_common(1)[0]
        result[probe] = line if len(hosts) == 1 else f"{number} of {len(hosts)} nodes: {line}"
    return result


def _join(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def _host(facts: Sequence[Fact]) -> str:
    cpu, memory, shm, system = (first(facts, kind) for kind in ("host.cpu", "host.memory", "host.shm", "host.system"))
    return _join(
        system.get("os"),
        f"{units.format_count(cpu['usable'])} CPUs" if cpu.get("usable") else None,
        f"{units.format_size(memory['usable'])} RAM" if memory.get("usable") else None,
        f"/dev/shm {units.format_size(shm['size'])}" if shm.get("size") is not None else None,
        f"in a container ({system['container']})" if system.get("container") else None,
    )


def _disks(facts: Sequence[Fact]) -> str:
    rooms = [
        f"{fact.get('path')} {units.format_size(fact.get('free'))} free"
        for fact in of_kind(facts, "host.disk")
        if fact.get("free") is not None
    ]
    return _join(*rooms[:3])


def _gpu(facts: Sequence[Fact]) -> str:
    gpus, driver = of_kind(facts, "gpu.device"), first(facts, "gpu.driver")
    models = Counter(_model(fact) for fact in gpus)
    versions = f"driver {driver['driver']}" + (f" (CUDA {driver['cuda']})" if driver.get("cuda") else "") if driver.get("driver") else None
    parts = [f"{number} x {model}" for model, number in models.most_common(3)]
    others = sum(models.values()) - sum(number for _, number in models.most_common(3))
    parts += [f"{others} others"] if others else []
    if gpus:
        parts.append(features(gpus[0].fields))
    return _join(*parts, versions)


def _model(gpu: Fact) -> str:
    size = units.format_size(gpu.get("memory")) if gpu.get("memory") else "memory not told"
    return f"{gpu.get('model') or 'GPU of unknown model'} ({size})"


def features(gpu: Mapping[str, Any]) -> str:
    """What the architecture can do: ``BF16, TF32, FP8, flash attention 2 and 3``."""
    if not gpu.get("family"):
        return ""
    able = [label for label, name in (("BF16", "bf16"), ("TF32", "tf32"), ("FP8", "fp8"), ("FP4", "fp4")) if gpu.get(name) == "native"]
    if gpu.get("bf16") == "emulated":
        able.append("BF16 only emulated, slow")
    flash = [number for number in ("2", "3") if gpu.get(f"flash{number}") == "native"]
    able += [f"flash attention {' and '.join(flash)}"] if flash else ["no flash attention 2"]
    return f"{gpu['family']}: {', '.join(able)}"


def _xids(facts: Sequence[Fact]) -> str:
    found = of_kind(facts, "gpu.xid")
    return f"{len(found)} kinds of Xid" if found else ""


def _python(facts: Sequence[Fact]) -> str:
    torch, python = first(facts, "stack.torch"), first(facts, "stack.python")
    packages = [
        f"{fact.get('package')} {fact.get('version')}"
        for fact in of_kind(facts, "stack.package")
        if fact.get("version") and fact.get("state") == "installed" and not _minor(fact)
    ]
    parts = [f"Python {python['version']}" if python.get("version") else None]
    if torch.get("version"):
        parts.append(f"torch {torch['version']}" + (f" (CUDA {torch['cuda']})" if torch.get("cuda") else " (CPU only)"))
        parts.append(f"NCCL {torch['nccl']}" if torch.get("nccl") else None)
    return _join(*parts, *packages)


def _minor(fact: Fact) -> bool:
    package = str(fact.get("package"))
    return package in ("torch", "numpy", "ninja", "torchvision", "peft", "accelerate") or package.startswith("nvidia-")


def _kernels(facts: Sequence[Fact]) -> str:
    ran = of_kind(facts, "kernel.run")
    by_device = Counter(fact.get("device") for fact in ran if fact.get("state") == "ok")
    on = [f"{number} run right on {'the GPU' if device == 'cuda' else 'the CPU'}" for device, number in sorted(by_device.items(), key=str)]
    waiting = sum(fact.get("state") == "needs_build" for fact in ran)
    built = sum(fact.get("state") == "built" for fact in ran)
    return _join(*on, f"{built} built" if built else None, f"{waiting} are built at first use" if waiting else None)


def _locks(facts: Sequence[Fact]) -> str:
    return f"{len(of_kind(facts, 'host.lock'))} locks"


def _variables(facts: Sequence[Fact]) -> str:
    number = len(of_kind(facts, "env.setting"))
    return f"{number} {'setting' if number == 1 else 'settings'}"


def _network(facts: Sequence[Fact]) -> str:
    interfaces = [
        str(fact.get("interface")) for fact in of_kind(facts, "net.interface") if fact.get("type") == "physical" and fact.get("up")
    ]
    ports = of_kind(facts, "net.rdma")
    active = [fact for fact in ports if fact.get("state") == "active"]
    rates = Counter(f"{fact.get('rate'):g} Gb/s {fact.get('layer') or ''}".strip() for fact in active if fact.get("rate"))
    rdma = (
        f"{len(active)} of {len(ports)} RDMA ports active" + (f" ({rates.most_common(1)[0][0]})" if rates else "")
        if ports
        else "no RDMA device"
    )
    return _join(" ".join(interfaces[:6]), rdma)


_SHAPES: Mapping[str, Callable[[Sequence[Fact]], str]] = {
    "host": _host, "disks": _disks, "gpu": _gpu, "xids": _xids, "python": _python, "kernels": _kernels, "locks": _locks, "variables": _variables,
    "network": _network,
}  # fmt: skip
# What a check says that found nothing to tell of, and nothing wrong.
EMPTY: Mapping[str, str] = {"xids": "none since the start of the system", "locks": "none left behind", "variables": "none set that matters"}
