"""Settings of a host in the light of the host: the verdicts on its variables, and what they say about its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memdoctor.derive.machine.facts import completed, derived, first, of_kind, version
from memdoctor.derive.variables import Context, judge_variables
from memdoctor.model import Fact

ENVIRONMENT = "environment"  # where a setting is from that no file holds


def settings_of(facts: Sequence[Fact]) -> dict[str, str]:
    return {str(fact.get("variable")): str(fact.get("value") or "") for fact in of_kind(facts, "env.setting")}


def local_ranks(facts: Sequence[Fact]) -> int | None:
    """How many ranks this host runs: as the launcher says, else one a GPU."""
    settings = settings_of(facts)
    for name in ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"):
        if settings.get(name, "").isdigit() and int(settings[name]) > 0:
            return int(settings[name])
    found = first(facts, "gpu.count").get("found")
    return int(found) if found else None


def complete_cpu(facts: Sequence[Fact]) -> list[Fact]:
    ranks = local_ranks(facts)
    return [completed(fact, local_ranks=ranks) if fact.kind == "host.cpu" else fact for fact in facts]


def context_of(facts: Sequence[Fact]) -> Context:
    """What is known of the host; parts that no probe looked at stay unknown."""
    interfaces = [str(fact.get("interface")) for fact in of_kind(facts, "net.interface") if fact.get("up") and fact.get("addresses")]
    devices = sorted({str(fact.get("device")) for fact in of_kind(facts, "net.rdma")})
    gpus = of_kind(facts, "gpu.device")
    archs = sorted({str(fact.get("arch")) for fact in gpus if fact.get("arch")})
    cpu, torch = first(facts, "host.cpu"), first(facts, "stack.torch")
    known: dict[str, Any] = {
        "cpus": cpu.get("usable"),
        "ranks": local_ranks(facts),
        "nodes": first(facts, "host.system").get("nodes"),
        "arch": ".".join(str(part) for part in version(archs[0])[:2]) if len(archs) == 1 else None,
    }
    found = first(facts, "gpu.count").get("found")
    uuids = tuple(str(fact.get("uuid")) for fact in gpus if fact.get("uuid"))
    return Context(
        interfaces=tuple(interfaces) or None,
        devices=tuple(devices) or None,
        gpus=int(found) if isinstance(found, int) else None,
        gpu_ids=uuids if uuids and len(uuids) == found else None,
        archs=tuple(archs) or None,
        cut=frozenset(str(fact.get("variable")) for fact in of_kind(facts, "env.setting") if fact.get("cut")),
        versions={name: str(value) for name, value in (("nccl", torch.get("nccl")), ("torch", torch.get("version"))) if value},
        absent=frozenset(str(fact.get("variable")) for fact in of_kind(facts, "env.setting") if fact.get("absent")),
        facts={name: value for name, value in known.items() if value is not None},
    )


def verdicts(facts: Sequence[Fact]) -> list[Fact]:
    """One ``env.variable`` for each thing that is wrong with a setting."""
    given = {str(fact.get("variable")): fact for fact in of_kind(facts, "env.setting")}
    if not given:
        return []
    ranks = local_ranks(facts)
    found = []
    for verdict in judge_variables(settings_of(facts), context_of(facts)):
        source = given.get(verdict.variable) or given.get(verdict.other or "") or next(iter(given.values()))
        file = str(source.get("from")) if source.get("from") not in (None, ENVIRONMENT) else None
        place = {"file": file, "env_variable": verdict.variable if file is None else None}
        known = {name: getattr(verdict, name) for name in ("variable", "value", "read", "meant", "text", "use", "other")}
        found.append(derived("env.variable", source, name=verdict.problem, ranks=ranks, **known, **place))
    return found
