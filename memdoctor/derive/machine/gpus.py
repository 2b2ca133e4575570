"""GPUs in the light of the tables: what an architecture can do, how many links a model has, how many GPUs there should be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from memdoctor.derive.machine.facts import completed, derived, of_kind, table
from memdoctor.model import Fact

_SLOWED = ("hw_slowdown", "hw_thermal", "power_brake", "sw_thermal")
_FEATURES = ("family", "bf16", "tf32", "fp8", "fp4", "flash2", "flash3")


def complete_gpus(facts: Sequence[Fact], expect: int | None) -> list[Fact]:
    """The facts of one host, with the GPUs completed, the expected number added, and a ``gpu.state`` for each fault that a reading names."""
    siblings = len(of_kind(facts, "gpu.device"))
    left = {gpu.get("gpu"): unexplained(gpu) for gpu in of_kind(facts, "gpu.device")}
    unsized = {process.get("gpu") for process in of_kind(facts, "gpu.process") if process.get("memory") is None}
    numbers = {gpu.get("uuid"): gpu.get("gpu") for gpu in of_kind(facts, "gpu.device") if gpu.get("uuid")}
    result = []
    for fact in facts:
        if fact.kind == "gpu.device":
            arch = (table("gpus").get("archs") or {}).get(str(fact.get("arch"))) or {}
            links = expected_links(str(fact.get("model") or "")) if siblings > 1 and fact.get("mig") is not True else None
            rest = None if fact.get("gpu") in unsized else left[fact.get("gpu")]
            usual = fact.get("ecc_default") if fact.get("ecc_default") is not None else ecc_default(str(fact.get("model") or ""))
            features = {name: arch.get(name) for name in _FEATURES}
            fact = completed(fact, siblings=siblings, links_expected=links, unexplained=rest, ecc_default=usual, **features)
            result += [fact, *states(fact)]
        elif fact.kind == "gpu.process" and fact.get("memory") is None:
            result.append(completed(fact, within=left.get(fact.get("gpu"))))
        elif fact.kind == "gpu.count":
            number, by = expected(fact, expect)
            result.append(completed(fact, expected=number, by=by))
        elif fact.kind == "stack.device":
            result.append(completed(fact, gpu=numbers.get(fact.get("uuid"))))
        else:
            result.append(fact)
    return result


def expected_links(model: str) -> int | None:
    for entry in table("gpus").get("links") or []:
        if fnmatchcase(model, entry["model"]):
            return int(entry["links"]) if entry["links"] is not None else None
    return None


def unexplained(gpu: Fact) -> int | None:
    """Bytes in use that no process is listed for; what the driver keeps for itself is in ``used`` only where it is not told apart."""
    if gpu.get("used") is None or gpu.get("processes") is None:
        return None
    return max(0, int(gpu.get("used")) - int(gpu.get("processes_used") or 0))


def ecc_default(model: str) -> bool | None:
    """False for the cards that are sold with ECC switched off; None for those of which it is not known."""
    return False if any(fnmatchcase(model, pattern) for pattern in table("gpus").get("without_ecc") or []) else None


def expected(count: Fact, told: int | None) -> tuple[int | None, str | None]:
    """How many GPUs should be there and who says so: --expect-gpus, else whoever expects more than are found, else nobody."""
    if told is not None:
        return told, "--expect-gpus"
    found, pci = count.get("found") or 0, count.get("pci")
    claims: list[tuple[int, str]] = []
    for claim in count.get("claims") or ():
        name, _, value = str(claim).partition("=")
        match = re.search(r"(\d+)$", value)  # Slurm also writes h100:8
        # Ranks are no GPUs: where the bus shows no more of them, or each has several ranks, the launcher asked for too many.
        is_rank = name == "LOCAL_WORLD_SIZE" and match is not None and found and (pci == found or int(match[1]) % found == 0)
        if match is not None and not is_rank:
            claims.append((int(match[1]), name))
    # A container, or a job that got some of the GPUs, still sees the whole PCI bus.
    if pci and (found == 0 or not (count.get("container") or count.get("confined"))):
        claims.append((pci, "the PCI bus"))
    return next((claim for claim in claims if claim[0] > found), claims[0] if claims else (None, None))


def states(gpu: Fact) -> list[Fact]:
    """What a reading of NVML says is wrong, in the words of `nvidia-smi -q`."""
    named: list[tuple[str, str, float | None]] = []
    for reason in gpu.get("reasons") or ():
        if reason in _SLOWED:
            named.append((reason, f"clocks are held down: {reason.replace('_', ' ')}", None))
    if gpu.get("ecc_volatile"):
        named.append(
            (
                "ecc_uncorrectable",
                f"{gpu.get('ecc_volatile')} uncorrectable ECC errors since the last reset",
                float(gpu.get("ecc_volatile")),
            )
        )
    if gpu.get("remap_pending") or gpu.get("pages_pending"):
        text = "memory rows wait for a reset to be remapped" if gpu.get("remap_pending") else "memory pages wait for a reset to be retired"
        named.append(("remap_pending", text, None))
    if gpu.get("remap_failure"):
        named.append(("remap_failure", "a memory row could not be remapped", None))
    return [
        derived(
            "gpu.state",
            replace(gpu, origin=replace(gpu.origin, excerpt=text)),
            name=name,
            gpu=gpu.get("gpu"),
            bus_id=gpu.get("bus_id"),
            model=gpu.get("model"),
            value=value,
            text=text,
        )
        for name, text, value in named
    ]
