"""Uneven times where the log does not tell the time of each rank: the least and greatest of all ranks, or what the first stage waits."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from memdoctor import units
from memdoctor.derive.stages.expected import Expected
from memdoctor.derive.stages.grid import Grid
from memdoctor.derive.stages.samples import Sample
from memdoctor.model import Fact
from memdoctor.records import record

UNEVEN = 1.3  # greatest over least: more than twice what replicas and the batch loading of the end stages make of an even pipeline
STEADY = 0.7  # share of the reports
WAIT = 2.0  # times what an even pipeline would wait
LEAST_WAIT = 0.25  # of its own compute


@record
class Spread:
    """``stage`` is the one whose work should make the spread, as the slowest or (``light``) the quickest; None where that does not explain it:
    then it may be a slow rank as well."""

    stage: int | None
    text: str
    most: float
    least: float
    reason: str
    fact: Fact
    stages: tuple[float, ...] | None = None
    light: bool = False


def spread_of(samples: Sequence[Sample], grid: Grid, expected: Expected | None) -> Spread | None:
    """From reports of least and greatest. Without a pipeline they tell nothing: attention lengths and loading differ as much."""
    pairs = [sample.spread for sample in samples if sample.spread is not None and sample.spread[0] > 0]
    if grid.pp < 2 or not pairs:
        return None
    ratios = [high / low for low, high in pairs]
    if median(ratios) < UNEVEN or sum(ratio >= UNEVEN for ratio in ratios) < STEADY * len(ratios):
        return None
    least, most = median(low for low, _ in pairs), median(high for _, high in pairs)
    fact = samples[-1].fact
    text = f"a step takes {units.format_duration(least)} of compute on the quickest rank and {units.format_duration(most)} on the slowest"
    shares = expected.stages() if expected is not None else None
    if shares is None:
        return Spread(None, text, most, least, "unknown", fact)
    assert expected is not None
    of = f"of {grid.pp}"
    stages = tuple(share * most / max(shares) for share in shares)
    slowest, lightest = shares.index(max(shares)), shares.index(min(shares))
    if 2 * (shares[slowest] / _others(shares, slowest) - 1) >= most / least - 1:
        many = expected.layers[slowest] > median(expected.layers)
        reason = "layers" if many else "logits" if slowest == grid.pp - 1 else "embedding" if slowest == 0 else "moe"
        return Spread(slowest, f"{text}; by its work that is stage {slowest} {of}", most, least, reason, fact, stages)
    if 2 * (_others(shares, lightest) / shares[lightest] - 1) >= most / least - 1:
        few = "fewer_layers" if expected.layers[lightest] < median(expected.layers) else "light"
        text = f"{text}; by its work the quickest is stage {lightest} {of}"
        return Spread(lightest, text, most, least, few, fact, stages, light=True)
    return Spread(None, text, most, least, "unknown", fact)


def _others(shares: Sequence[float], stage: int) -> float:
    """Median work of the other stages."""
    return median(share for other, share in enumerate(shares) if other != stage)


def waiting(facts: Sequence[Fact], grid: Grid, microbatches: int | None) -> Spread | None:
    """DeepSpeed prints the times of rank 0 alone: what stage 0 waits for gradients, beside the (p - 1) / m of an even pipeline."""
    computed = [fact for fact in facts if fact.kind == "pipeline.wait" and fact.fields.get("forward") is not None]
    waited = [fact for fact in facts if fact.kind == "pipeline.wait" and fact.fields.get("recv_grad") is not None]
    if grid.pp < 2 or not microbatches or len(computed) < 3 or len(waited) < 3:
        return None
    compute = median(fact.fields["forward"] + (fact.fields.get("backward") or 0.0) for fact in computed[1:])
    wait = median(fact.fields["recv_grad"] for fact in waited[1:])
    even = compute * (grid.pp - 1) / microbatches
    if compute <= 0 or wait < WAIT * even or wait < LEAST_WAIT * compute:
        return None
    text = (
        f"stage 0 waits {wait / compute:.0%} of its compute time for gradients, an even pipeline ({grid.pp} stages, {microbatches} "
        f"micro-batches) {even / compute:.0%}: a later stage is slower"
    )
    return Spread(None, text, compute + wait, compute, "unknown", waited[-1])
