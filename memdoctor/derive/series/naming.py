"""What beats so regularly? An interval of the arguments, or what the log tells at the same iterations."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from memdoctor.derive.series.pace import Beat
from memdoctor.derive.series.segments import Segment
from memdoctor.model import Fact

# Arguments of Megatron-LM, the Trainer and DeepSpeed that say how often something is done, the commonest first.
_INTERVALS = (
    ("evaluation", ("eval_interval", "eval_steps", "val_check_interval")),
    ("checkpoint", ("save_interval", "save_steps", "non_persistent_save_interval")),
    ("garbage collection", ("manual_gc_interval",)),
    ("memory report", ("log_memory_interval",)),
)
TOGETHER = 0.7  # of the times that the most frequent one is told, from which on another belongs to the same beat
_PHASES = {"evaluation": "evaluation", "save": "checkpoint"}


def name_of_beat(beat: Beat, segment: Segment, facts: Sequence[Fact]) -> str:
    """``evaluation``, ``checkpoint`` (or both with "and" between), ``garbage collection``, ``memory report``, or "" where nothing tells."""
    for fact in facts:
        if fact.kind == "run.args":
            values = fact.fields.get("values") or {}
            for name, keys in _INTERVALS:
                if any(_number(values.get(key)) == beat.period for key in keys):
                    return name
    seen: Counter[str] = Counter()
    for name, iteration in _told(segment, facts):
        off = (iteration - beat.first) % beat.period
        if min(off, beat.period - off) <= segment.interval:
            seen[name] += 1
    often = TOGETHER * max(seen.values(), default=0)
    return " and ".join(sorted((name for name in seen if seen[name] >= often), reverse=True))  # many evaluate and then save


def _told(segment: Segment, facts: Sequence[Fact]) -> Iterator[tuple[str, float]]:
    """What lines beside the steps say was done, and at which iteration."""
    for fact in facts:
        name = _PHASES.get(str(fact.fields.get("name", ""))) if fact.kind == "run.phase" else None
        if name is not None:  # the step of an evaluation counts its own
            iteration = fact.fields.get("step") if name == "checkpoint" else None
            iteration = iteration if iteration is not None else fact.fields.get("iteration")
            if isinstance(iteration, int):
                yield name, iteration
    steps = segment.steps
    table = steps.series.beside.tables.get("validation")
    if table is not None:
        table.pack()
        lines, iterations = steps.lines, steps.column("iteration")
        for line in islice(table.line, 0, len(table)):
            row = bisect_right(lines, line) - 1
            if row >= 0:
                yield "evaluation", iterations[row]


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
