"""The axes along which a job is split (tensor, context, data, pipeline, expert), and which ranks are in a group of which axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from memdoctor.model import Fact
from memdoctor.records import record

MOST_RANKS = 1 << 17  # of a job; a bigger number in a log is no world size
_WORDS = {"TENSOR": "tp", "TP": "tp", "CONTEXT": "cp", "CP": "cp", "DATA": "dp", "DP": "dp", "PIPELINE": "pp", "PP": "pp"}
# Descriptions of groups that do not name their axes one by one (Megatron-LM's parallel_state; device meshes name theirs mesh_<axis>).
_NAMED: Mapping[str, frozenset[str]] = {
    "MODEL_PARALLEL_GROUP": frozenset({"tp", "pp"}),
    "DATA_PARALLEL_GROUP_WITH_CP": frozenset({"dp", "cp"}),
    "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP": frozenset({"tp", "dp", "cp"}),
    "EXPERT_MODEL_PARALLEL_GROUP": frozenset({"ep"}),
    "EXPERT_TENSOR_PARALLEL_GROUP": frozenset({"etp"}),
    "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP": frozenset({"etp", "ep"}),
    "EXPERT_DATA_PARALLEL_GROUP": frozenset({"edp"}),
    "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP": frozenset({"etp", "ep", "pp"}),
}
_FAMILIES = ("tp", "cp", "pp", "dp", "ep", "edp", "tp cp", "dp cp", "tp pp", "tp dp", "tp dp cp", "etp ep")
_ARGUMENTS = {
    "tp": ("tensor_model_parallel_size", "tensor_parallel"),
    "cp": ("context_parallel_size",),
    "pp": ("pipeline_model_parallel_size",),
    "ep": ("expert_model_parallel_size",),
    "etp": ("expert_tensor_parallel_size",),
    "world_size": ("world_size",),
}


@record
class Axes:
    """``world`` is the number of ranks that the log tells, None where it does not. ``sizes`` are those of the axes from the one whose
    neighbours are neighbouring ranks on; of the experts in the second mapping. Empty where the log does not tell them. ``nodes``: how many
    the log shows at least; ``several``: it says that there are more than one."""

    world: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    expert_sizes: Mapping[str, int] = field(default_factory=dict)
    several: bool = False
    nodes: int = 0

    def place(self, rank: int) -> str | None:
        """``TP 5, PP 0, DP 1``: only axes that split the job; None where nothing does."""
        if self.world is None or rank >= self.world:
            return None
        own = _coordinates(self.sizes, rank)
        told = [(name, own[name]) for name in ("tp", "pp", "dp", "cp") if self.sizes.get(name, 1) > 1]
        told += [("ep", at) for name, at in _coordinates(self.expert_sizes, rank).items() if name == "ep" and self.expert_sizes[name] > 1]
        return ", ".join(f"{name.upper()} {at}" for name, at in told) or None

    def group(self, axes: frozenset[str], rank: int) -> tuple[int, ...] | None:
        """The ranks that differ from ``rank`` along ``axes`` alone, in ascending order; None where the log does not tell such axes."""
        for sizes in (self.sizes, self.expert_sizes):
            if axes <= sizes.keys():
                ranks, step = [0], 1
                for name, size in sizes.items():
                    if name in axes:
                        ranks = [base + number * step for number in range(size) for base in ranks]
                    else:
                        ranks = [base + _coordinates(sizes, rank)[name] * step for base in ranks]
                    step *= size
                return tuple(sorted(ranks))
        return None

    def families(self) -> Iterator[frozenset[str]]:
        """Axes of which groups are made."""
        for text in _FAMILIES:
            axes = frozenset(text.split())
            if axes <= self.sizes.keys() or axes <= self.expert_sizes.keys():
                yield axes


def axes_named(desc: str) -> frozenset[str]:
    """The axes that a group's description names; empty where it names none."""
    name = desc.upper().strip()
    if name in _NAMED:
        return _NAMED[name]
    if "EMBEDDING" in name or name.startswith("EXPERT"):
        return frozenset()
    return frozenset(_WORDS[word] for word in name.split("_") if word in _WORDS)


def axes_of(facts: Sequence[Fact]) -> Axes:
    """From the facts of the whole log: sizes that lines and dumped arguments tell."""
    sizes = _sizes(facts)
    placed = [fact.fields.get("world_size") or 0 for fact in facts if fact.kind == "rank.place"]
    world = max([sizes.get("world_size", 0), *(size for size in placed if isinstance(size, int))])
    if not 1 < world <= MOST_RANKS:
        several = any((fact.fields.get("nodes") or 0) > 1 for fact in facts if fact.kind == "run.world")
        return Axes(several=several, nodes=len({fact.host for fact in facts if fact.host is not None}))
    tp, cp, pp = (sizes.get(name, 1) for name in ("tp", "cp", "pp"))
    if tp * cp * pp == 1 and not any(fact.kind == "run.world" and fact.fields.get("tp") for fact in facts):
        return Axes(world)
    if world % (tp * cp * pp):
        return Axes(world)
    own = {"tp": tp, "cp": cp, "dp": world // (tp * cp * pp), "pp": pp}
    ep, etp = sizes.get("ep", 1), sizes.get("etp", tp)
    experts = {"etp": etp, "ep": ep, "edp": world // (etp * ep * pp), "pp": pp} if ep > 1 and world % (etp * ep * pp) == 0 else {}
    if _stages_first(facts):
        own = {name: own[name] for name in ("tp", "cp", "pp", "dp")}
        experts = {name: experts[name] for name in ("etp", "ep", "pp", "edp") if name in experts}
    return Axes(world, own, experts)


def _sizes(facts: Sequence[Fact]) -> dict[str, int]:
    found: dict[str, int] = {}

    def take(name: str, value: Any) -> None:
        try:
            number = int(str(value))
        except ValueError:
            return
        if number > 0:
            found[name] = max(number, found.get(name, 0)) if name == "world_size" else found.get(name, number)

    for fact in facts:
        if fact.kind == "run.world":
            for name in ("tp", "cp", "pp", "ep", "world_size"):
                take(name, fact.fields.get(name))
        elif fact.kind == "run.args":
            values = fact.fields.get("values") or {}
            for name, arguments in _ARGUMENTS.items():
                for argument in arguments:
                    take(name, values.get(argument))
    return found


def _stages_first(facts: Sequence[Fact]) -> bool:
    values = (fact.fields.get("values") or {} for fact in facts if fact.kind == "run.args")
    return any(str(each.get("use_tp_pp_dp_mapping")).lower() == "true" for each in values)


def _coordinates(sizes: Mapping[str, int], rank: int) -> dict[str, int]:
    at = {}
    for name, size in sizes.items():
        at[name] = rank % size
        rank //= size
    return at
