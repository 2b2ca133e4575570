"""Memory of the stages on generated layouts: uneven or not, which stage, why, and a proposal that is better by the simulation."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from memdoctor.model import Fact
from tests.derive.stages.test_layouts import facts_of, sizes_of
from tests.pipelines import Pipeline

LAYOUTS = 100
QUICK = 34  # of them in the fast tests


def layout(number: int) -> Pipeline:
    """Layout ``number``: every third is dominated by weights, by micro-batches in flight, or by what an end stage holds."""
    chance = random.Random(f"memory {number}")
    tp, pp, dp = chance.choice([1, 2, 4, 8]), chance.choice([2, 4, 8]), chance.choice([1, 2])
    vpp = chance.choice([1, 1, 1, 2])
    each = chance.choice([4, 6, 8]) if vpp == 1 else 2
    job = Pipeline(tp, pp, dp, (each,) * (pp * vpp), vpp, microbatches=chance.choice([16, 64]), reports=2, seed=number, base_mib=4000)
    job.vocab = 8192
    match number % 3:
        case 0:
            job.layer_mib, job.activation_mib = chance.uniform(3000, 4000), chance.uniform(20, 60)
        case 1:
            job.layer_mib, job.activation_mib = chance.uniform(300, 900), chance.uniform(300, 900)
        case _:
            job.layer_mib, job.activation_mib = chance.uniform(800, 1200), chance.uniform(20, 60)
            stage = sum(job.layers[:: job.pp]) * job.layer_mib + job.base_mib
            job.ends_mib = (chance.uniform(0.8, 1.5) * stage, 500.0) if chance.random() < 0.5 else (500.0, chance.uniform(0.8, 1.5) * stage)
    return job


def uneven(facts: list[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.kind == "stage.uneven" and fact.fields["what"] == "memory"]


@pytest.mark.parametrize("number", [*range(QUICK), *(pytest.param(number, marks=pytest.mark.slow) for number in range(QUICK, LAYOUTS))])
def test_memory_verdicts(number: int, tmp_path: Path) -> None:
    job = layout(number)
    stages = job.stage_mib()
    facts = list(facts_of(job, tmp_path))
    found = uneven(facts)
    assert len([fact for fact in facts if fact.kind == "stage.memory"]) == job.pp
    if max(stages) < 1.35 * min(stages):
        assert not found
    elif max(stages) > 1.45 * min(stages) and max(stages) > 1.2 * mean(stages):
        (fact,) = found
        assert fact.fields["stage"] == stages.index(max(stages))
        if number % 3 == 2:
            assert fact.fields["reason"] == ("embedding" if fact.fields["stage"] == 0 else "logits")
        elif job.pp > 2:
            assert fact.fields["reason"] == "warm_up"
        if "proposal" in fact.fields:
            better = replace(job, layers=sizes_of(fact.fields["proposal"], sum(job.layers), job.pp))
            assert sum(better.layers) == sum(job.layers)
            assert max(better.stage_mib()) < max(stages)


def test_both_verdicts_and_proposals_occur(tmp_path: Path) -> None:
    found = [uneven(list(facts_of(layout(number), tmp_path))) for number in range(0, LAYOUTS, 4)]
    assert any(found)
    assert not all(found)
    assert any("proposal" in fact.fields for facts in found for fact in facts)


def test_a_stage_that_holds_more_layers(tmp_path: Path) -> None:
    job = Pipeline(1, 4, 1, (6, 6, 12, 6), layer_mib=1500, activation_mib=20, reports=2)
    (fact,) = uneven(list(facts_of(job, tmp_path)))
    assert fact.fields["reason"] == "layers"
    assert fact.fields["split"] == "6, 6, 12, 6"
    assert fact.fields["stage"] == 2


def test_a_few_hundred_megabytes_are_no_imbalance(tmp_path: Path) -> None:
    job = Pipeline(1, 4, 1, (4,) * 4, layer_mib=10, activation_mib=40, base_mib=100, ends_mib=(0, 0), reports=2)
    assert max(job.stage_mib()) > 2 * min(job.stage_mib())
    assert not uneven(list(facts_of(job, tmp_path)))


def test_one_rank_of_a_stage_that_holds_more_than_its_peers(tmp_path: Path) -> None:
    job = Pipeline(4, 1, 1, (8,), reports=2)
    text = job.text().replace("[Rank 2]", "[Rank 2x]")
    extra = "[Rank 2] (after 2 iterations) memory (MB) | allocated: 20000.00 | max allocated: 30000.00 | reserved: 31000.00 | max reserved: 31000.00\n"
    job.text = lambda: text + extra  # type: ignore[method-assign]
    (fact,) = uneven(list(facts_of(job, tmp_path)))
    assert fact.fields["per_rank"] is True
    assert fact.rank == 2
