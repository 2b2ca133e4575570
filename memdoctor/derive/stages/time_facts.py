"""The facts stage.time, stage.uneven (time) and rank.slow of one attempt."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from memdoctor import units
from memdoctor.derive.stages import rank_speed, time
from memdoctor.derive.stages.expected import Expected
from memdoctor.derive.stages.grid import Grid
from memdoctor.derive.stages.job import BECAUSE, Job, name_ranks, proposal_fields
from memdoctor.derive.stages.proposal import faster, gain_in_time, show_sizes
from memdoctor.derive.stages.samples import Sample, samples_of
from memdoctor.derive.stages.spread import Spread, spread_of, waiting
from memdoctor.memory.cost import bubble
from memdoctor.model import Fact

LIGHT_GAIN = 0.04  # of a step: what the better split must save where no stage is slow, but one is light


def time_facts(job: Job) -> list[Fact]:
    grid = job.grid
    if grid is None:
        return []
    samples = samples_of(job.facts)
    each = [sample for sample in samples if sample.seconds]
    if not each:
        found = spread_of(samples, grid, job.expected) or waiting(job.facts, grid, job.microbatches)
        return [] if found is None else _spread(job, grid, found)
    verdict = time.judge(each, grid, job.expected)
    if verdict is None:
        return []
    last = each[-1].fact
    facts = []
    for stage, seconds in enumerate(verdict.stages):
        ranks = tuple(sorted(rank for rank in each[-1].seconds if grid.stage(rank) == stage))
        layers = job.expected.layers[stage] if job.expected is not None else None
        facts.append(job.fact("stage.time", {"stage": stage, "seconds": seconds, "ranks": ranks, "layers": layers}, last))
    for slow in verdict.slow:
        facts.extend(_slow(job, slow, each))
    if verdict.slowest is not None:
        facts.append(_uneven_time(job, grid, verdict, last))
    elif verdict.lightest is not None:
        facts.extend(_light(job, grid, verdict.stages, verdict.lightest, last))
    return facts


def _slow(job: Job, slow: time.Slow, samples: Sequence[Sample]) -> list[Fact]:
    among = f"the other replicas of stage {slow.stage}" if job.grid is not None and job.grid.pp > 1 else "the other ranks"
    fields = {
        "slow_ranks": slow.ranks,
        "stage": slow.stage,
        "by": slow.by,
        "seconds": slow.seconds,
        "peers": slow.peers,
        "samples": len(samples),
        "how": slow.among,
        "text": f"{name_ranks(slow.ranks)} needs {units.format_duration(slow.seconds)} of compute a step, "
        + (among if slow.among == "replicas" else "stages with the same work")
        + f" {units.format_duration(slow.peers)} (median of {len(samples)} reports)",
    }
    return [job.fact("rank.slow", {**fields, "rank": rank}, samples[-1].fact) for rank in slow.ranks]


def _uneven_time(job: Job, grid: Grid, verdict: time.Verdict, at: Fact) -> Fact:
    stages, slowest = verdict.stages, verdict.slowest
    assert slowest is not None
    others = [seconds for stage, seconds in enumerate(stages) if stage != slowest]
    expected, microbatches = job.expected, job.microbatches
    fields: dict[str, Any] = {
        "what": "time",
        "stage": slowest,
        "other_stage": stages.index(min(stages)),
        "stages": grid.pp,
        "text": f"stage {slowest} of {grid.pp} needs {units.format_duration(stages[slowest])} of compute a step, the others "
        f"{units.format_duration(median(others))}",
        "most": units.format_duration(stages[slowest]),
        "least": units.format_duration(median(others)),
        "over": stages[slowest] / median(others),
        "per_rank": True,
        "bubble": _bubble(job, grid, median(stages), microbatches, expected.vpp if expected else 1),
    }
    why = why_time(slowest, expected, grid)
    fields |= {"reason": why, "because": BECAUSE.get(why)}
    if expected is not None:
        fields["split"] = show_sizes(expected.sizes, grid.pp)
        if job.shapes is not None and job.shapes.layout.framework == "megatron-lm":
            fields |= proposal_fields(faster(stages, expected, microbatches), grid, gain_in_time)
    return job.fact("stage.uneven", fields, at)


def _light(job: Job, grid: Grid, stages: Sequence[float], lightest: int, at: Fact) -> list[Fact]:
    """A stage that idles costs as much as a slow one: what it could take makes all the others slower. Told where a better split is known."""
    expected = job.expected
    assert expected is not None
    better = faster(stages, expected, job.microbatches)
    if better is None or better.gain < LIGHT_GAIN:
        return []
    others = median(seconds for stage, seconds in enumerate(stages) if stage != lightest)
    own = stages[lightest]
    why = "fewer_layers" if expected.layers[lightest] < median(expected.layers) else "light"
    fields: dict[str, Any] = {
        "what": "time",
        "stage": lightest,
        "other_stage": stages.index(max(stages)),
        "stages": grid.pp,
        "text": f"stage {lightest} of {grid.pp} needs only {units.format_duration(own)} of compute a step, the others {units.format_duration(others)}",
        "most": units.format_duration(others),
        "least": units.format_duration(own),
        "over": others / own if own else None,
        "per_rank": True,
        "reason": why,
        "because": BECAUSE[why],
        "bubble": _bubble(job, grid, own, job.microbatches, expected.vpp, who="it"),
        "split": show_sizes(expected.sizes, grid.pp),
        **proposal_fields(better, grid, gain_in_time),
    }
    return [job.fact("stage.uneven", fields, at)]


def why_time(slowest: int, expected: Expected | None, grid: Grid) -> str:
    if expected is not None:
        if expected.layers[slowest] > median(expected.layers):
            return "layers"
        if expected.costs is not None and slowest not in (0, grid.pp - 1) and len(set(expected.costs.layers)) > 1:
            return "moe"
    return "embedding" if slowest == 0 else "logits" if slowest == grid.pp - 1 else "unknown"


def _bubble(job: Job, grid: Grid, compute: float, microbatches: int | None, vpp: int, who: str = "an average stage") -> str | None:
    """How long a stage that computes ``compute`` seconds idles, beside what an even pipeline of this shape would idle."""
    whole = [fact for fact in job.facts if fact.kind == "timer" and fact.fields.get("name") == "forward-backward"]
    if not whole or not microbatches:
        return None
    values = whole[-1].fields.get("values") or {}
    texts = [str(value) for value in values.values()]
    try:
        step = median(float(text) for text in texts) / 1000
    except ValueError:
        return None
    if step <= 0 or compute >= step:
        return None
    ideal = bubble(grid.pp, microbatches, vpp)
    return f"{who} idles {100 * (1 - compute / step):.0f} % of the step, an even pipeline of {grid.pp} stages and {microbatches} micro-batches {100 * ideal:.0f} %"


def _spread(job: Job, grid: Grid, found: Spread) -> list[Fact]:
    """The uneven stages; and, where no stage accounts for the spread, the slow rank that it may be as well: two readings of one event."""
    fields: dict[str, Any] = {
        "what": "time",
        "stage": found.stage,
        "stages": grid.pp,
        "text": found.text,
        "most": units.format_duration(found.most),
        "least": units.format_duration(found.least),
        "over": found.most / found.least if found.least else None,
        "per_rank": False,
        "reason": found.reason,
        "because": BECAUSE.get(found.reason),
    }
    if job.expected is not None:
        fields["split"] = show_sizes(job.expected.sizes, grid.pp)
        if found.stages is not None:
            better = faster(found.stages, job.expected, job.microbatches)
            if found.light and (better is None or better.gain < LIGHT_GAIN):
                return []
            fields |= proposal_fields(better, grid, gain_in_time)
    uneven = job.fact("stage.uneven", fields, found.fact)
    if found.stage is not None:
        return [uneven]
    slow = {"how": "spread", "text": f"{found.text}; the log does not say which rank", "by": fields["over"]}
    return [uneven, job.fact("rank.slow", slow, found.fact, uneven.event)]


def reported_facts(job: Job) -> list[Fact]:
    found = rank_speed.reported(job.facts, job.grid)
    if found is None:
        return []
    speed = f" at {100 / found.over:.0f} % of the fastest rank's throughput" if found.over else ""
    if found.stage is not None and job.grid is not None:
        why = why_time(found.stage, job.expected, job.grid)
        fields: dict[str, Any] = {
            "what": "time",
            "stage": found.stage,
            "stages": job.grid.pp,
            "text": f"stage {found.stage} of {job.grid.pp} is the slowest on all its replicas" + speed,
            "over": found.over,
            "per_rank": True,
            "reason": why,
            "because": BECAUSE.get(why),
            "split": show_sizes(job.expected.sizes, job.grid.pp) if job.expected else None,
        }
        return [job.fact("stage.uneven", fields, found.fact)]
    if found.over:
        text = f"{name_ranks(found.ranks)} is the slowest in {found.reports} reports{speed}"
    else:
        text = f"called slow in {found.reports} straggler reports: ranks {units.format_ranks(found.ranks)}"
    fields = {
        "slow_ranks": found.ranks,
        "by": found.over,
        "samples": found.reports,
        "how": "report",
        "text": text,
    }
    return [job.fact("rank.slow", {**fields, "rank": rank}, found.fact) for rank in found.ranks]
