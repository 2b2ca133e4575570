"""Which node is not like the others, and which GPU of a node is not like its neighbours.

What must be alike is listed in readings.py. A difference that only follows from another one (a GPU of another model has another size, too) is not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memdoctor import catalog
from memdoctor.derive.machine.facts import by_host, derived, of_kind
from memdoctor.derive.machine.readings import GPU_READINGS, LOWERED, ONE_FOR_NODE, alike, is_own, numbers, readings, show
from memdoctor.model import Fact, Origin
from memdoctor.records import record

MOST_PARTS = 4  # values that are listed where no one is the usual
SOURCE = "probe.nodes"  # no probe by itself: what comes out when several nodes are judged together
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


def differences(facts: Sequence[Fact], looked: Collection[str] = ()) -> list[Fact]:
    """A ``node.difference`` for each node, or GPU of a node, that differs from most of the others, and one where they fall into even parts.

    ``looked`` are hosts whose variables were looked at, though they may have none.
    """
    hosts: dict[str, Sequence[Fact]] = {host: [] for host in looked}
    hosts.update(by_host(facts))
    found = [fact for own in hosts.values() for fact in _among_gpus(own)]
    if len(hosts) > 1:
        found += [*_among_nodes(hosts, looked), *_doubled(hosts)]
    return found


def _doubled(hosts: Mapping[str, Sequence[Fact]]) -> list[Fact]:
    """Nodes that have one number, of which each must have its own."""
    known = {host: numbers(facts) for host, facts in hosts.items()}
    found = []
    for what in ONE_FOR_NODE:
        members: dict[str, list[str]] = {}
        for host, own in sorted(known.items()):
            if what in own:
                members.setdefault(own[what], []).append(host)
        for value, those in members.items():
            if len(those) > 1:
                text = f"{what} is {value} on {_listed(those)}"
                shown = {"what": what, "value": value, "nodes": _listed(those), "number": len(those), "scope": "variables, doubled"}
                found.append(_difference(None, "environment", text, **shown))
    return found


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
        if one is None or (variable and len(values) > 2 and len(one.groups) == len(values) and is_own(_label(what), list(values.values()))):
            continue
        parts[what] = one
    for what, one in parts.items():
        implied = {host for other, its in parts.items() if what in _IMPLIES.get(other, ()) for host in its.odd}
        variable = what.startswith("$")
        scope, where = ("variables", "environment") if variable else ("nodes", "saved facts")
        if one.even:
            if not one.odd <= implied:
                text = "; ".join(f"{show(value)} on {_listed(members)}" for value, members in one.groups[:MOST_PARTS])
                text += f"; {len(one.groups) - MOST_PARTS} more values" if len(one.groups) > MOST_PARTS else ""
                found.append(_difference(None, where, f"{_label(what)}: {text}", what=_label(what), value=text, scope=f"{scope}, even"))
            continue
        usual, members = one.groups[0]
        for value, those in one.groups[1:]:
            shown = {"what": _label(what), "value": show(value), "usual": show(usual), "others": len(members), "scope": scope}
            for host in those:
                if host not in implied:
                    text = f"{_label(what)} is {show(value)}; {len(members)} others: {show(usual)}"
                    found.append(_difference(host, where, text, nodes=_listed(those), number=len(those), **shown))
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
            if alike(usual, value):
                members.append(host)
                break
        else:
            groups.append((value, [host]))
    if len(groups) < 2:
        return None
    return _Parts(tuple((value, tuple(members)) for value, members in sorted(groups, key=lambda group: -len(group[1]))))


def _label(what: str) -> str:
    return what.removeprefix("$")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


# --- the GPUs of one host -----------------------------------------------------------------------------------------------------


def _among_gpus(facts: Sequence[Fact]) -> list[Fact]:
    gpus = of_kind(facts, "gpu.device")
    parts: dict[str, _Parts] = {}
    for what, (field, shape) in GPU_READINGS.items():
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
                text = "; ".join(f"{show(value)} on GPU {_listed(members)}" for value, members in one.groups[:MOST_PARTS])
                scope = f"GPUs of {gpus[0].host}"
                found.append(derived("node.difference", gpus[0], what=what, value=text, scope=scope))
            continue
        usual, members = one.groups[0]
        for value, odd in one.groups[1:]:
            for number in odd:
                if number in implied:
                    continue
                gpu = by_number[number]
                shown = {"what": what, "value": show(value), "usual": show(usual), "gpu": gpu.get("gpu")}
                found.append(derived("node.difference", gpu, number=1, others=len(members), scope=f"GPUs of {gpu.host}", **shown))
    return found
