"""Compute time of each rank, one sample a report: forward and backward pass without the loading of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from memdoctor.model import Fact
from memdoctor.records import record

WARM_UP = 1  # reports left out at the start: compilation and the allocator's first requests


@record
class Sample:
    """One report. ``seconds`` by rank; or only the least and the greatest of all ranks (``spread``)."""

    fact: Fact
    seconds: dict[int, float]
    spread: tuple[float, float] | None = None


def samples_of(facts: Sequence[Fact]) -> list[Sample]:
    """The reports of one attempt in order, without those of the warm-up where there are enough.

    A report names the loading of the batch (part of the forward pass), the forward pass and the backward pass, in this order.
    """
    found: list[Sample] = []
    loading: Fact | None = None
    forward: Fact | None = None
    for fact in facts:
        if fact.kind != "timer":
            continue
        name = fact.fields.get("name")
        if name == "batch-generator":
            loading, forward = fact, None
        elif name == "forward-compute":
            forward = fact
        elif name == "backward-compute" and forward is not None:
            found.append(_sample(loading, forward, fact))
            loading = forward = None
    found = [sample for sample in found if sample.seconds or sample.spread]
    return found[WARM_UP:] if len(found) > 2 * WARM_UP else found


def _sample(loading: Fact | None, forward: Fact, backward: Fact) -> Sample:
    if forward.fields.get("low") is not None:
        low, high = (forward.fields.get(name, 0.0) + (backward.fields.get(name) or 0.0) for name in ("low", "high"))
        return Sample(backward, {}, (low, high))
    first, second = _by_rank(forward), _by_rank(backward)
    without = _by_rank(loading) if loading is not None else {}
    return Sample(backward, {rank: max(0.0, first[rank] - without.get(rank, 0.0)) + second[rank] for rank in first if rank in second})


def _by_rank(fact: Fact) -> dict[int, float]:
    """Rank → seconds; the block prints milliseconds."""
    result = {}
    for rank, text in (fact.fields.get("values") or {}).items():
        try:
            result[int(rank)] = float(text) / 1000
        except ValueError:
            continue
    return result


def medians(samples: Sequence[Sample]) -> dict[int, float]:
    """The median of each rank over the reports in which it stands."""
    ranks = {rank for sample in samples for rank in sample.seconds}
    return {rank: median(sample.seconds[rank] for sample in samples if rank in sample.seconds) for rank in sorted(ranks)}
