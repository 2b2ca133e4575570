"""A stage that nearly fills its card beside one that does not, by less than makes stages uneven."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.model import Fact
from tests.derive.stages.test_layouts import facts_of
from tests.pipelines import Pipeline

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of {} GiB of which 1.00 GiB is free. Including "
    "non-PyTorch memory, this process has 95.00 GiB memory in use. Of the allocated memory 93.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by "
    "PyTorch but unallocated.\n"
)


def job(pp: int = 2, *, base: float = 40000.0, activation: float = 1600.0, ends: tuple[float, float] = (0.0, 0.0)) -> Pipeline:
    """16 layers a stage; without ``ends`` stage k holds base + (pp - k) × 16 × activation MiB."""
    return Pipeline(
        1, pp, 2, (16,) * pp, microbatches=32, vocab=8192, base_mib=base, layer_mib=300.0, activation_mib=activation, ends_mib=ends
    )


def gaps(pipeline: Pipeline, tmp_path: Path, more: str = "") -> list[Fact]:
    (tmp_path / "x").mkdir()

    class Text(Pipeline):
        def text(self) -> str:
            return pipeline.text() + more

    facts = facts_of(Text(1, 1, 1, (1,)), tmp_path / "x")
    return [fact for fact in facts if fact.kind == "stage.uneven" and fact.fields["what"] == "headroom"]


def test_warm_up_explains_it(tmp_path: Path) -> None:
    first, last = job().stage_mib()
    assert last < first < 1.4 * last
    assert first - last > 24 * 1024
    (found,) = gaps(job(), tmp_path)
    assert (found.fields["stage"], found.fields["other_stage"], found.rank) == (0, 1, 0)
    assert found.fields["because"].startswith("1F1B keeps 2 micro-batches in flight there and 1 on stage 1: ")
    assert found.fields["because"].endswith(" of it by the model of the stages")


def test_of_four_stages_the_fullest_and_the_emptiest_count(tmp_path: Path) -> None:
    (found,) = gaps(job(4, base=60000.0, activation=400.0), tmp_path)
    assert (found.fields["stage"], found.fields["other_stage"]) == (0, 3)
    assert "keeps 4 micro-batches in flight there and 1 on stage 3: " in found.fields["because"]


def test_a_last_stage_with_the_logits_is_no_warm_up(tmp_path: Path) -> None:
    (found,) = gaps(job(base=57000.0, activation=100.0, ends=(0.0, 26000.0)), tmp_path)
    assert (found.fields["stage"], found.fields["reason"]) == (1, "logits")
    assert "1F1B" not in found.fields["because"]


@pytest.mark.parametrize(
    "pipeline",
    [
        job(base=26000.0, activation=800.0),  # 55 and 43 GiB
        job(base=104000.0),  # 156 and 131 GiB
        job(base=30000.0),  # 84 and 59 GiB: uneven by more, which stage_memory says
        job(base=27600.0, activation=1100.0),  # 66 and 49 GiB: a card of 80 has room
        job(1),
    ],
    ids=["little", "a small ratio", "more", "room", "no pipeline"],
)
def test_nothing_to_say(pipeline: Pipeline, tmp_path: Path) -> None:
    assert gaps(pipeline, tmp_path) == []


def test_the_card_counts_where_an_out_of_memory_error_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert len(gaps(job(), tmp_path / "a", OOM.format("95.00"))) == 1
    (tmp_path / "b").mkdir()
    assert gaps(job(), tmp_path / "b", OOM.format("139.80")) == []


def test_without_sizes_of_the_model_part_of_it_is_said_to_be_the_schedule(tmp_path: Path) -> None:
    text = "\n".join(line for line in job().text().splitlines() if not line.strip().startswith(("hidden_size", "num_layers")))

    class Text(Pipeline):
        def text(self) -> str:
            return text

    facts = facts_of(Text(1, 1, 1, (1,)), tmp_path)
    (found,) = [fact for fact in facts if fact.kind == "stage.uneven" and fact.fields["what"] == "headroom"]
    assert found.fields["because"] == "1F1B keeps more micro-batches in flight on the earlier stages, which is part of it"
