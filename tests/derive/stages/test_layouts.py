"""Verdicts on generated layouts: uneven stages, slow ranks, and nothing, told apart; and proposals that are better by the same model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from memdoctor.derive.story import tell
from memdoctor.engine.load import load
from memdoctor.memory.megatron import layout_layers
from memdoctor.model import Fact, Signal
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs
from tests.pipelines import Pipeline

LAYOUTS = 100


@cache
def signals() -> tuple[Signal, ...]:
    return tuple(load([rules_dir()]).signals)


def facts_of(job: Pipeline, tmp_path: Path) -> Sequence[Fact]:
    log = tmp_path / "train.log"
    log.write_text(job.text())
    return tell(read_logs([str(log)], signals(), None)).facts


def layout(number: int) -> tuple[Pipeline, str]:
    """Layout ``number`` and what is true of it: even, uneven or slow."""
    chance = random.Random(f"layout {number}")
    truth = ("even", "uneven", "slow")[number % 3]
    tp = chance.choice([1, 1, 2, 4, 8])
    pp = chance.choice([2, 4, 4, 8])
    dp = chance.choice([1, 2, 4, 8])
    vpp = chance.choice([1, 1, 2, 4])
    if truth == "slow" and chance.random() < 0.2:
        pp, vpp, dp = 1, 1, chance.choice([2, 4, 8])
    while tp * pp * dp > 128:
        dp = max(1, dp // 2)
        tp = tp if tp * pp * dp <= 128 else tp // 2
    each = chance.choice([2, 3, 4, 6]) if vpp == 1 else chance.choice([1, 2])
    job = Pipeline(
        tp,
        pp,
        dp,
        (each,) * (pp * vpp),
        vpp,
        microbatches=chance.choice([8, 16, 32, 64]),
        noise=chance.choice([0.005, 0.01, 0.02]),
        seed=number,
    )
    stage = each * vpp
    job.vocab = 8192  # and what it costs
    job.logits_ms = job.layer_ms * job.vocab / (14 * job.hidden)
    if truth == "uneven":
        kind = chance.choice(["logits", "layers", "layers"] if vpp == 1 else ["logits"])
        if kind == "logits":
            job.logits_ms = job.layer_ms * stage * chance.uniform(0.3, 1.2)
            job.vocab = round(job.logits_ms / job.layer_ms * 14 * job.hidden / 128) * 128  # about as the operations count it
        else:
            heavy = chance.randrange(pp)
            sizes = list(job.layers)
            sizes[heavy] += max(1, round(each * chance.uniform(0.4, 1.0)))
            job.layers = tuple(sizes)
    elif truth == "slow":
        victim = chance.randrange(job.world)
        job.slow = {victim: chance.uniform(1.2, 1.8)}
    else:
        job.logits_ms = job.layer_ms * stage * chance.uniform(0.0, 0.07)
    return job, truth


@pytest.mark.parametrize("number", range(LAYOUTS))
def test_stage_and_slow_rank_verdicts(number: int, tmp_path: Path) -> None:
    job, truth = layout(number)
    facts = facts_of(job, tmp_path)
    uneven = [fact for fact in facts if fact.kind == "stage.uneven" and fact.fields["what"] == "time"]
    slow = [fact for fact in facts if fact.kind == "rank.slow"]
    if truth == "even":
        assert not uneven
        assert not slow
    elif truth == "slow":
        assert not uneven
        (victim,) = job.slow
        assert {fact.rank for fact in slow} == set(job.group(victim))
    else:
        assert not slow
        (found,) = uneven
        times = job.stage_ms()
        assert found.fields["stage"] == times.index(max(times))
        if "proposal" in found.fields:
            assert_better(job, found.fields["proposal"])
        else:
            assert best_move(job) > 0.96 * step_ms(job), "a better split exists"


def step_ms(job: Pipeline) -> float:
    """The step of a 1F1B pipeline: the slowest stage for every micro-batch, the others once to fill and drain."""
    stages = [time / job.microbatches for time in job.stage_ms()]
    return job.microbatches * max(stages) + (sum(stages) - max(stages)) / job.vpp


def best_move(job: Pipeline) -> float:
    """The shortest step that moving one layer off the slowest stage can reach."""
    heavy = job.stage_ms().index(max(job.stage_ms()))
    found = []
    for source in range(heavy, len(job.layers), job.pp):
        for target in range(len(job.layers)):
            sizes = list(job.layers)
            sizes[source] -= 1
            sizes[target] += 1
            if min(sizes) >= 0 and target != source:
                found.append(step_ms(replace(job, layers=tuple(sizes))))
    return min(found)


def assert_better(job: Pipeline, proposal: str) -> None:
    """The proposed split, put through the simulation, has a shorter step."""
    better = replace(job, layers=sizes_of(proposal, sum(job.layers), job.pp))
    assert len(better.layers) == len(job.layers)
    assert sum(better.layers) == sum(job.layers)
    assert step_ms(better) < step_ms(job)


def sizes_of(proposal: str, layers: int, pp: int) -> tuple[int, ...]:
    words = proposal.split()
    if words[0] == "--pipeline-model-parallel-layout":
        return layout_layers(words[1])
    first, last = int(words[1]), int(words[3])
    return (first, *([(layers - first - last) // (pp - 2)] * (pp - 2) if pp > 2 else []), last)


def test_the_hundred_layouts_are_of_all_kinds() -> None:
    jobs = [layout(number) for number in range(LAYOUTS)]
    assert {truth for _, truth in jobs} == {"even", "uneven", "slow"}
    assert {job.pp for job, _ in jobs} >= {1, 2, 4, 8}
    assert {job.vpp for job, _ in jobs} == {1, 2, 4}
    assert {job.dp for job, _ in jobs} == {1, 2, 4, 8}
    assert {job.tp for job, _ in jobs} == {1, 2, 4, 8}
