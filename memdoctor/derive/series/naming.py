"""What beats so regularly? An interval of the arguments, or what the log tells at the same iterations."""

from __future__ import annotations

from collections.abc import Sequence

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
_PHASES = {"evaluation": "evaluation", "save": "checkpoint"}


def name_of_beat(beat: Beat, segment: Segment, facts: Sequence[Fact]) -> str:
    """``evaluation``, ``checkpoint``, ``garbage collection``, ``memory report``, or "" where nothing tells."""
    for fact in facts:
        if fact.kind == "run.args":
            values = fact.fields.get("values") or {}
            for name, keys in _INTERVALS:
                if any(_number(values.get(key)) == beat.period for key in keys):
                    return name
    seen: dict[str, int] = {}
    for fact in facts:
        phase = _PHASES.get(str(fact.fields.get("name", ""))) if fact.kind == "run.phase" else None
        iteration = fact.fields.get("step") or fact.fields.get("iteration")
        if phase is not None and isinstance(iteration, int):
            off = (iteration - beat.first) % beat.period
            if min(off, beat.period - off) <= segment.interval:
                seen[phase] = seen.get(phase, 0) + 1
    return max(seen, key=lambda name: seen[name], default="")


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
