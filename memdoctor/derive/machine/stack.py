"""The parts of the stack against each other: driver, torch, GPUs, nvcc, and libraries of which there are two."""

from __future__ import annotations

import os
from collections.abc import Sequence

from memdoctor.derive.machine.facts import derived, first, of_kind, table, version
from memdoctor.model import Fact


def compare_stack(facts: Sequence[Fact]) -> list[Fact]:
    """``stack.driver``, ``stack.arch``, ``stack.nvcc`` and ``stack.clash``, as far as both sides are known."""
    torch = next(iter(of_kind(facts, "stack.torch")), None)
    found = _clashes(facts)
    if torch is not None and torch.get("cuda"):
        found += _driver(facts, torch) + _archs(facts, torch) + _nvcc(facts, torch)
    return found


def _driver(facts: Sequence[Fact], torch: Fact) -> list[Fact]:
    driver, cuda = first(facts, "gpu.driver"), version(torch.get("cuda"))
    if not driver.get("driver") or not cuda:
        return []
    floors = table("driver_floors")
    full = (floors.get("full") or {}).get(f"{cuda[0]}.{cuda[1] if len(cuda) > 1 else 0}")
    minor = (floors.get("minor") or {}).get(str(cuda[0]))
    have = version(driver["driver"])
    name, need = "enough", full
    if minor is not None and have < version(minor):
        name, need = "too_old", minor
    elif minor is None and version(driver.get("cuda")) and version(driver.get("cuda"))[0] < cuda[0]:
        name, need = "too_old", None
    elif full is not None and have < version(full):
        name = "minor"
    return [
        derived(
            "stack.driver",
            torch,
            name=name,
            driver=driver["driver"],
            driver_cuda=driver.get("cuda"),
            torch_cuda=torch.get("cuda"),
            need=need,
        )
    ]


def _archs(facts: Sequence[Fact], torch: Fact) -> list[Fact]:
    built = [str(arch) for arch in torch.get("archs") or ()]
    found = []
    for gpu in of_kind(facts, "gpu.device"):
        if not built or len(version(gpu.get("arch"))) < 2:
            continue
        known = {name: gpu.get(name) for name in ("gpu", "model", "arch")}
        need = _first_cuda(str(gpu.get("arch")))
        found.append(derived("stack.arch", gpu, name=served(str(gpu.get("arch")), built), archs=" ".join(built), need=need, **known))
    return found


def served(arch: str, built: Sequence[str]) -> str:
    """Code for sm_86 runs on 8.6 and 8.9, not on 9.0; compute_90 (PTX) is compiled at start for any later GPU; sm_90a runs on 9.0 alone."""
    want = version(arch)
    if len(want) < 2:
        return "unknown"
    for entry in built:
        kind, _, number = entry.partition("_")
        if not number[:-1].isdigit() and not number.isdigit():
            continue
        digits = number.rstrip("af")
        have = (int(digits[:-1]), int(digits[-1]))
        if kind == "sm" and (want == have if number[-1] in "af" else want[0] == have[0] and want >= have):
            return "served"
    for entry in built:
        kind, _, number = entry.partition("_")
        if kind == "compute" and number.isdigit() and want >= (int(number[:-1]), int(number[-1])):
            return "ptx"
    return "missing"


def _first_cuda(arch: str) -> str | None:
    """The first CUDA toolkit that knows the architecture."""
    firsts = {
        "8.0": "11.0",
        "8.6": "11.1",
        "8.9": "11.8",
        "9.0": "11.8",
        "10.0": "12.8",
        "10.3": "12.9",
        "11.0": "13.0",
        "12.0": "12.8",
        "12.1": "12.9",
    }
    return firsts.get(arch)


def _nvcc(facts: Sequence[Fact], torch: Fact) -> list[Fact]:
    tool = next(iter(of_kind(facts, "stack.tool", name="nvcc")), None)
    have, want = version(tool.get("version")) if tool is not None else (), version(torch.get("cuda"))
    if tool is None or not have or not want:
        return []
    name = "same" if have[:2] == want[:2] else "minor" if have[0] == want[0] else "major"
    return [derived("stack.nvcc", tool, name=name, nvcc=tool.get("version"), torch_cuda=torch.get("cuda"), path=tool.get("path"))]


def _clashes(facts: Sequence[Fact]) -> list[Fact]:
    """Two copies loaded into one process, or one that took the place of the package's own."""
    found = []
    packages = {fact.get("package"): fact for fact in of_kind(facts, "stack.package")}
    for name, package in (
        ("nccl", "nvidia-nccl"),
        ("cudart", "nvidia-cuda-runtime"),
        ("cublas", "nvidia-cublas"),
        ("cudnn", "nvidia-cudnn"),
    ):
        loaded = of_kind(facts, "stack.library", name=name)
        folders = {os.path.dirname(str(fact.get("path"))): fact for fact in loaded}
        foreign = [fact for fact in folders.values() if fact.get("origin") != "package"]
        own = next((fact for fact in folders.values() if fact.get("origin") == "package"), None)
        wheel = packages.get(package)
        if len(folders) > 1 and foreign:
            meant = own or next(fact for fact in folders.values() if fact is not foreign[0])
            found.append(_clash(foreign[0], str(meant.get("path")), meant.get("version"), name))
        elif foreign and wheel is not None:
            found.append(_clash(foreign[0], f"the package {package}", wheel.get("version"), name))
    return found


def _clash(fact: Fact, meant: str, meant_version: object, name: str) -> Fact:
    by = {"search_path": "LD_LIBRARY_PATH", "preload": "LD_PRELOAD"}.get(str(fact.get("origin")), "the system's search path")
    return derived(
        "stack.clash",
        fact,
        name=name,
        first=fact.get("path"),
        first_version=fact.get("version"),
        meant=meant,
        meant_version=meant_version,
        by=by,
    )
