"""This run beside one that worked: what differs in versions, arguments, variables, layout, pace, memory and loss."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from memdoctor.derive.series.loss import losses_of
from memdoctor.derive.series.pace import WARM_UP
from memdoctor.derive.series.robust import SAMPLE, median
from memdoctor.derive.series.rows import Rows
from memdoctor.model import Fact, Run

MOST = 50_000  # lines of a segment whose loss is compared
SLOWER = 0.05  # by which step time or memory may differ from run to run
LOSS = 0.02  # the same for the loss at equal iterations

# What differs from run to run and means nothing: places, names, ranks, ports, times.
_NOISE = re.compile(
    r"(?:^|_)(?:path|paths|dir|name|file|rank|local_rank|port|addr|host|save|load|id|hash|time|date|project|entity|tracker|url)$"
    r"|^(?:wandb|tensorboard|master|rdzv|log_dir|output|exp_|job_|comm_id|data_cache)|^(?:global_rank|iteration|consumed_\w+|start_iteration)$",
    re.I,
)
# Arguments that decide memory, speed or the loss: they are told before the others.
_TELLING = re.compile(
    r"(?:^|[_.])(?:lr|learning_rate|batch|microbatches|seq|bf16|fp16|fp8|precision|dtype|recompute|parallel|layers|hidden|heads|experts|moe|zero|stage|offload"
    r"|clip|gradient|grad|warmup|decay|optimizer|loss|scale|attention|flash|overlap|seed|data|train|tokenizer|vocab)(?:_|$)",
    re.I,
)
# What a difference is likely to matter by, the most telling first.
KINDS = ("version", "layout", "variable", "argument", "step_time", "memory", "loss")


class Side(Protocol):
    """What is compared of a run (a Story)."""

    @property
    def facts(self) -> Sequence[Fact]: ...

    @property
    def run(self) -> Run: ...

    @property
    def series(self) -> Rows: ...


def compare(good: Side, this: Side) -> dict[str, Any]:
    """``differences``: what differs, each with its kind, name and both values; ``equal``: how many of each kind do not; and the numbers
    that were measured in both (seconds, bytes; the loss over the iterations that both have)."""
    differences: list[dict[str, Any]] = []
    equal: dict[str, int] = {}
    for kind, one, other in (
        ("version", good.run.versions, this.run.versions),
        ("layout", _layout(good.facts), _layout(this.facts)),
        ("variable", _variables(good.facts), _variables(this.facts)),
        ("argument", _arguments(good), _arguments(this)),
    ):
        found, same = _unlike(kind, one, other)
        differences += found
        equal[kind] = same
    measured: dict[str, Any] = {}
    for name, pair, room in (
        ("step_time", (_step_time(good.series), _step_time(this.series)), SLOWER),
        ("memory", (_memory(good.series), _memory(this.series)), SLOWER),
        ("loss", _losses(good.series, this.series), LOSS),
    ):
        first, second = pair
        if first is None or second is None or not first:
            continue
        measured[name] = {"good": first, "this": second, "ratio": second / first}
        if abs(second / first - 1) > room:
            differences.append({"kind": name, "name": name, "good": first, "this": second})
    order = {kind: place for place, kind in enumerate(KINDS)}
    differences.sort(
        key=lambda each: (
            order[each["kind"]],
            each["good"] is None or each["this"] is None,
            each["kind"] == "argument" and not _TELLING.search(each["name"]),
            each["name"],
        )
    )
    return {"differences": differences, "equal": equal, "measured": measured}


def _unlike(kind: str, good: Mapping[str, Any], this: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """What differs, and how much is equal. A side that tells nothing at all of the kind is not compared: its log only lacks it."""
    if not good or not this:
        return [], 0
    differences = []
    same = 0
    for name in sorted({*good, *this}):
        one, other = good.get(name), this.get(name)
        if one == other:
            same += 1
        elif not (kind == "argument" and _NOISE.search(name.rpartition(".")[2])):
            differences.append({"kind": kind, "name": name, "good": one, "this": other})
    return differences, same


def _layout(facts: Sequence[Fact]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for fact in facts:
        if fact.kind == "run.world":
            for name in ("world_size", "nodes", "tp", "pp", "dp", "cp", "ep"):
                if fact.fields.get(name) is not None:
                    found.setdefault(name, fact.fields[name])
    return found


def _variables(facts: Sequence[Fact]) -> dict[str, Any]:
    return {
        str(fact.fields["variable"]): fact.fields.get("value")
        for fact in facts
        if fact.kind in ("nccl.info", "env.setting") and fact.fields.get("variable") and fact.fields.get("value") is not None
    }


def _arguments(side: Side) -> dict[str, Any]:
    found = dict(side.run.args)
    for fact in side.facts:
        if fact.kind == "run.config":
            for name, value in (fact.fields.get("values") or {}).items():
                found.setdefault(f"{fact.fields.get('name', 'config')}.{name}", value)
    return found


def _step_time(rows: Rows) -> float | None:
    """Median seconds of a step, without the first lines of each segment."""
    values = [
        value / 1000
        for part in rows.parts
        if part.segment.has("ms")
        for value in part.segment.values("ms")[WARM_UP :: 1 + len(part.segment) // SAMPLE]
        if value > 0
    ]
    return median(values) if values else None


def _memory(rows: Rows) -> float | None:
    held = [value for part in rows.parts for value in part.memory.values()]
    held += [max(part.segment.values("memory")) for part in rows.parts if part.segment.has("memory")]
    return max((value for value in held if value == value), default=None)  # no NaN


def _losses(good: Rows, this: Rows) -> tuple[float | None, float | None]:
    """Median losses over the last tenth of the iterations that both have."""
    one, other = _loss_by_time(good), _loss_by_time(this)
    if not one or not other:
        return None, None
    end = min(one[-1][0], other[-1][0])
    start = end - 0.1 * (end - max(one[0][0], other[0][0]))
    if start > end:
        return None, None
    return _between(one, start, end), _between(other, start, end)


def _loss_by_time(rows: Rows) -> list[tuple[float, float]]:
    return sorted(
        (time, value)
        for part in rows.parts
        if part.segment.has("loss")
        for losses in (losses_of(part.segment),)  # the finite ones: a Trainer prints 0 for NaN
        for time, value in zip(*_thinned(losses.times, losses.values), strict=True)
    )


def _thinned(*columns: Sequence[float]) -> list[Sequence[float]]:
    return [column[:: 1 + len(column) // MOST] for column in columns]


def _between(points: Sequence[tuple[float, float]], start: float, end: float) -> float | None:
    first, last = bisect_left(points, (start,)), bisect_left(points, (end, float("inf")))
    values = [value for _, value in points[first:last]]
    return median(values) if values else None
