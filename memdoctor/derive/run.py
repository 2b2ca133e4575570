"""What the logs say about the job itself: frameworks, versions, sizes, iterations, times, arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.derive.steps import Steps
from memdoctor.model import Ended, Fact, FileRead, Run

_BY_KIND = {"nccl.warn": "nccl", "nccl.info": "nccl", "nccl.error": "nccl", "watchdog.timeout": "torch", "process.exit": ""}
_BY_OWNER = {
    "megatron": "megatron-lm",
    "deepspeed": "deepspeed",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "lightning": "lightning",
    "nemo": "nemo",
    "torch": "torch",
}
_BY_SHAPE = {"megatron": "megatron-lm", "deepspeed": "deepspeed", "pipeline": "deepspeed"}
_BY_SITE_PACKAGE = ("megatron", "deepspeed")


def describe(
    facts: Sequence[Fact], files: Sequence[FileRead], steps: Mapping[int, Sequence[Steps]], ended: Ended, attempts: int, ranks: int
) -> Run:
    """The Run of a report; ``ended`` is how the last attempt ended."""
    frameworks: dict[str, None] = {}
    versions: dict[str, str] = {}
    args: dict[str, Any] = {}
    world: int | None = None
    for fact in facts:
        name = str(fact.fields.get("name", ""))
        if fact.kind == "run.version" and name:
            if name in ("megatron-lm", "megatron-core", "deepspeed", "torch", "nccl", "transformers", "accelerate", "lightning", "nemo"):
                frameworks.setdefault("megatron-lm" if name == "megatron-core" else name)
            if fact.fields.get("version"):
                versions.setdefault(name, str(fact.fields["version"]))
        elif fact.kind == "run.args":
            if name:
                frameworks.setdefault(name)
            for key, value in (fact.fields.get("values") or {}).items():
                args.setdefault(key, value)
        elif fact.kind == "run.world" and fact.fields.get("world_size"):
            world = max(world or 0, fact.fields["world_size"])
        elif fact.kind == "config.error" and fact.fields.get("framework"):
            frameworks.setdefault(str(fact.fields["framework"]))
        if _BY_KIND.get(fact.kind):
            frameworks.setdefault(_BY_KIND[fact.kind])
        if fact.kind == "exception" and fact.fields.get("owner") in _BY_OWNER:
            frameworks.setdefault(_BY_OWNER[str(fact.fields["owner"])])
    for file in files:
        for shape in getattr(file.series, "shapes", {}):
            if shape in _BY_SHAPE:
                frameworks.setdefault(_BY_SHAPE[shape])
    spans = [part.iterations() for parts in steps.values() for part in parts]
    firsts = [file.first for file in files if file.first is not None]
    lasts = [file.last for file in files if file.last is not None]
    return Run(
        frameworks=tuple(frameworks),
        versions=versions,
        world_size=world,
        ranks_seen=ranks,
        attempts=attempts,
        ended=ended,
        first_iteration=min((low for low, _ in spans), default=None),
        last_iteration=max((high for _, high in spans), default=None),
        first_time=min(firsts, key=lambda stamp: stamp.epoch, default=None),
        last_time=max(lasts, key=lambda stamp: stamp.epoch, default=None),
        args=args,
    )
