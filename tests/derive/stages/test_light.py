"""A stage that idles: told where a better split is known, and not where logits or granularity make it what it is."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from memdoctor.model import Fact
from memdoctor.pipeline import diagnose_logs
from tests.derive.stages.test_layouts import assert_better, facts_of, sizes_of, step_ms
from tests.pipelines import Pipeline

LAYOUTS = 24


def told(job: Pipeline, tmp_path: Path) -> list[Fact]:
    facts = facts_of(job, tmp_path)
    assert not [fact for fact in facts if fact.kind == "rank.slow"]
    return [fact for fact in facts if fact.kind == "stage.uneven" and fact.fields["what"] == "time"]


def light(number: int) -> tuple[Pipeline, int]:
    """Layout ``number``, in which one stage holds so little that the others could be clearly quicker."""
    chance = random.Random(f"light {number}")
    pp, each = chance.choice([3, 4, 6]), chance.choice([8, 10, 12])
    stage = chance.randrange(pp)
    sizes = [each] * pp
    sizes[stage] = round(each * chance.uniform(0.2, 0.4))
    while -(-sum(sizes) // pp) >= each:  # as many of the others must be relieved as give up a layer
        each, sizes = each + 2, [size + 2 * (size == each) for size in sizes]
    job = Pipeline(
        chance.choice([1, 2]), pp, chance.choice([1, 2]), tuple(sizes), microbatches=chance.choice([32, 64]), noise=0.005, vocab=8192, seed=number
    )  # fmt: skip
    job.logits_ms = job.layer_ms * job.vocab / (14 * job.hidden)
    return job, stage


@pytest.mark.parametrize("number", range(LAYOUTS))
def test_the_stage_is_named_with_a_split_that_is_better(number: int, tmp_path: Path) -> None:
    job, stage = light(number)
    (found,) = told(job, tmp_path)
    assert (found.fields["stage"], found.fields["reason"]) == (stage, "fewer_layers")
    assert f"stage {stage} of {job.pp} needs only " in found.fields["text"]
    assert_better(job, found.fields["proposal"])
    better = replace(job, layers=sizes_of(found.fields["proposal"], sum(job.layers), job.pp))
    assert step_ms(better) < 0.97 * step_ms(job)


def test_logits_that_fill_a_last_stage_of_few_layers(tmp_path: Path) -> None:
    job = Pipeline(1, 4, 2, (10, 10, 10, 4), microbatches=32, vocab=344064)
    job.logits_ms = 6 * job.layer_ms
    assert max(job.stage_ms()) < 1.05 * min(job.stage_ms())
    assert told(job, tmp_path) == []


def test_no_better_split_to_be_had(tmp_path: Path) -> None:
    """15 layers on 8 stages: whatever holds one of them idles half the time."""
    job = Pipeline(1, 8, 2, (2, 2, 2, 2, 2, 2, 2, 1), microbatches=32, vocab=1024, noise=0.005)
    assert median(job.stage_ms()) > 1.9 * min(job.stage_ms())
    assert told(job, tmp_path) == []
    assert told(replace(job, option="minmax"), tmp_path) == []


@pytest.mark.parametrize("dp", [1, 2])
def test_of_three_stages_a_light_one_makes_no_other_slow(dp: int, tmp_path: Path) -> None:
    (found,) = told(Pipeline(1, 3, dp, (10, 3, 10), microbatches=32, vocab=1024, noise=0.005), tmp_path)
    assert (found.fields["stage"], sorted(found.fields["proposal_split"].split(", "))) == (1, ["7", "8", "8"])


def test_of_three_stages_a_heavy_one_makes_no_other_light(tmp_path: Path) -> None:
    (found,) = told(Pipeline(1, 3, 2, (8, 12, 8), microbatches=32, vocab=1024, noise=0.005), tmp_path)
    assert (found.fields["stage"], found.fields["reason"]) == (1, "layers")


def test_others_that_are_slow_by_themselves_make_no_stage_light(tmp_path: Path) -> None:
    job = Pipeline(1, 4, 1, (8, 8, 8, 8), microbatches=32, vocab=1024, slow={1: 1.4, 2: 1.4, 3: 1.4})
    assert not [fact for fact in facts_of(job, tmp_path) if fact.kind == "stage.uneven" and fact.fields["what"] == "time"]


def test_least_and_greatest_alone(tmp_path: Path) -> None:
    """The work of the stages accounts for the spread: then no rank is suspected."""
    job = Pipeline(1, 4, 2, (10, 10, 10, 4), microbatches=32, vocab=8192, option="minmax")
    (found,) = told(job, tmp_path)
    assert (found.fields["stage"], found.fields["reason"]) == (3, "fewer_layers")
    assert_better(job, found.fields["proposal"])


@pytest.mark.parametrize("dp", [1, 4])
def test_a_spread_without_an_account_may_be_a_slow_rank_as_well(dp: int, tmp_path: Path) -> None:
    job = Pipeline(1, 4, dp, (8, 8, 8, 8), microbatches=32, vocab=1024, slow={2: 1.4}, option="minmax")
    log = tmp_path / "train.log"
    log.write_text(job.text())
    report = diagnose_logs([str(log)])
    assert (report.root_cause, report.confidence) == ("balance.stage_time", "possible")
    assert report.candidates == ("balance.slow_rank",)
    assert len(report.diagnoses) == 1
    assert report.hosts_to_exclude == ()


def test_both_readings_are_one_event(tmp_path: Path) -> None:
    job = Pipeline(1, 4, 2, (8, 8, 8, 8), microbatches=32, vocab=1024, slow={2: 1.4}, option="minmax")
    slow, uneven = sorted(
        (fact for fact in facts_of(job, tmp_path) if fact.kind in ("rank.slow", "stage.uneven")), key=lambda fact: fact.kind
    )
    assert slow.event == uneven.event
    assert slow.rank is None
    assert slow.fields["text"] == f"{uneven.fields['text']}; the log does not say which rank"


def test_a_spread_that_the_logits_account_for_is_not_a_slow_rank(tmp_path: Path) -> None:
    job = Pipeline(1, 4, 2, (8, 8, 8, 8), microbatches=32, vocab=229376, option="minmax")
    job.logits_ms = 4 * job.layer_ms
    log = tmp_path / "train.log"
    log.write_text(job.text())
    report = diagnose_logs([str(log)])
    assert (report.root_cause, report.confidence, report.candidates) == ("balance.stage_time", "likely", ())
