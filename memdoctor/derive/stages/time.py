"""Is a pipeline stage slower than the others, or is it one rank of a stage? What tells them apart are ranks at the same work.

Ranks of one stage (its data- and context-parallel replicas) do the same. One that is slower than these is a slow rank. Where all replicas
of a stage are slow the split is uneven. With a single replica what the arguments let one expect of the stage decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from memdoctor.derive.stages.expected import Expected
from memdoctor.derive.stages.grid import Grid
from memdoctor.derive.stages.samples import Sample, medians
from memdoctor.records import record

SLOW = 1.10  # times the median of its peers; replicas of a healthy job stay within 2-3 % of each other
UNEVEN = 1.15  # times the median of the stages: the least imbalance whose cure is worth a restart
STEADY = 0.7  # share of the reports in which it must show


@record
class Slow:
    """``ranks``: one, or a tensor-parallel group, within which nobody can tell who is late. ``by``: times the median of the peers."""

    ranks: tuple[int, ...]
    stage: int
    seconds: float
    peers: float
    among: str  # "replicas" of its own stage, or "stages" with the same work

    @property
    def by(self) -> float:
        return self.seconds / self.peers


@record
class Verdict:
    """``stages``: seconds of each stage, slow ranks left out. ``slowest``: the stage that is slow by its work, if one is; else ``lightest``:
    one that has much less to do than all the others."""

    stages: tuple[float, ...]
    slow: tuple[Slow, ...]
    slowest: int | None
    lightest: int | None = None


def judge(samples: Sequence[Sample], grid: Grid, expected: Expected | None) -> Verdict | None:
    """None where the reports do not cover every stage."""
    known = medians(samples)
    replicas = _replicas(known, grid)
    if not known or set(replicas) != set(range(grid.pp)):
        return None
    slow = [found for stage, times in replicas.items() for found in _among_replicas(stage, times, samples, grid)]
    late = {rank for found in slow for rank in found.ranks}
    stages = [median(time for ranks, time in replicas[stage].values() if not late.intersection(ranks)) for stage in range(grid.pp)]
    slowest = lightest = None
    if grid.pp > 1:
        slowest = max(range(grid.pp), key=lambda stage: stages[stage])
        others = sorted(time for stage, time in enumerate(stages) if stage != slowest)
        if stages[slowest] < UNEVEN * median(others[1:] or others):  # of three stages a light one alone would make another look slow
            lightest = _lightest(stages, samples, grid, late, expected)
        if lightest is not None or stages[slowest] < UNEVEN * median(others) or not _steady(slowest, samples, grid, late):
            slowest = None
    if slowest is not None and len(replicas[slowest]) == 1 and not _by_its_work(slowest, stages, expected):
        ranks, time = next(iter(replicas[slowest].values()))
        peers = median(time for stage, time in enumerate(stages) if stage != slowest)
        return Verdict(tuple(stages), (*slow, Slow(ranks, slowest, time, peers, "stages")), None)
    return Verdict(tuple(stages), tuple(slow), slowest, lightest)


def _lightest(stages: Sequence[float], samples: Sequence[Sample], grid: Grid, late: set[int], expected: Expected | None) -> int | None:
    """The stage that steadily idles, and by its work should: others that are all slow by themselves make a stage look light, too."""
    stage = min(range(grid.pp), key=lambda stage: stages[stage])
    others = median(time for other, time in enumerate(stages) if other != stage)
    if expected is None or others < UNEVEN * stages[stage] or not _steady(stage, samples, grid, late, light=True):
        return None
    share = expected.stages() or [float(layers) for layers in expected.layers]
    work = median(cost for other, cost in enumerate(share) if other != stage)
    return stage if 2 * (work - share[stage]) * stages[stage] >= (others - stages[stage]) * share[stage] else None


def _replicas(known: Mapping[int, float], grid: Grid) -> dict[int, dict[int, tuple[tuple[int, ...], float]]]:
    """Stage → replica → its ranks and their median time."""
    groups: dict[int, dict[int, list[int]]] = {}
    for rank in known:
        groups.setdefault(grid.stage(rank), {}).setdefault(grid.replica(rank), []).append(rank)
    return {
        stage: {replica: (tuple(ranks), median(known[rank] for rank in ranks)) for replica, ranks in by_replica.items()}
        for stage, by_replica in groups.items()
    }


def _among_replicas(stage: int, times: Mapping[int, tuple[tuple[int, ...], float]], samples: Sequence[Sample], grid: Grid) -> list[Slow]:
    """Replicas that are slower than the others of their stage; not more than half of them can be."""
    found = []
    for replica, (ranks, time) in times.items():
        others = [ranks_time for other, ranks_time in times.items() if other != replica]
        if not others:
            continue
        peers = median(time for _, time in others)
        if time < SLOW * peers:
            continue
        peer_ranks = [rank for ranks, _ in others for rank in ranks]
        if _share(samples, ranks, peer_ranks, (1 + SLOW) / 2) >= STEADY:
            found.append(Slow(ranks, stage, time, peers, "replicas"))
    return found if 2 * len(found) <= len(times) else []


def _share(samples: Sequence[Sample], ranks: Sequence[int], peers: Sequence[int], least: float) -> float:
    """Share of the reports in which ``ranks`` took ``least`` times as long as ``peers``."""
    seen = hits = 0
    for sample in samples:
        own = [sample.seconds[rank] for rank in ranks if rank in sample.seconds]
        other = [sample.seconds[rank] for rank in peers if rank in sample.seconds]
        if own and other:
            seen += 1
            hits += median(own) >= least * median(other)
    return hits / seen if seen else 0.0


def _steady(stage: int, samples: Sequence[Sample], grid: Grid, late: set[int], *, light: bool = False) -> bool:
    ranks = [rank for sample in samples[:1] for rank in sample.seconds]
    own = [rank for rank in ranks if grid.stage(rank) == stage and rank not in late]
    others = [rank for rank in ranks if grid.stage(rank) != stage and rank not in late]
    more, less = (others, own) if light else (own, others)
    return _share(samples, more, less, (1 + UNEVEN) / 2) >= STEADY


def _by_its_work(stage: int, stages: Sequence[float], expected: Expected | None) -> bool:
    """True where what the stage holds explains at least half of what it takes longer; unknown work explains the first and the last."""
    share = expected.stages() if expected is not None else None
    if share is None:
        if expected is not None and expected.layers[stage] > median(expected.layers):
            return True
        return stage in (0, len(stages) - 1)
    others = [cost for other, cost in enumerate(share) if other != stage]
    times = [time for other, time in enumerate(stages) if other != stage]
    predicted, measured = share[stage] / median(others) - 1, stages[stage] / median(times) - 1
    return predicted >= measured / 2
