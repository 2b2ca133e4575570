"""Every log under fixtures/ that dumps its arguments and runs out of memory: which tensor found no room, or that none has that size."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from memdoctor.derive.story import tell
from memdoctor.engine.load import load
from memdoctor.model import Fact, Signal
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
# Requests that no tensor makes: what the card had left was too little even for a segment of small ones.
UNEXPLAINED = {"oom/attention_scores/quiet.log": "64 MiB", "oom/logits/quiet.log": "20 MiB"}
# What the frames of some of them say; the others are held to be explained, whatever by.
TENSORS = {
    "oom/activations/fires.log": "mlp",  # F.silu(y_1) * y_2
    "oom/attention_scores/fires.log": "attention_scores",
    "oom/checkpoint/fires.log": "optimizer_shard",  # exp_avg of load_state_dict
    "oom/evaluation/fires.log": "logits",
    "oom/communication/quiet.log": "hidden",
    "oom/logits/fires.log": "logits_fp32",
    "oom/model_states/fires_ddp.log": "grad_buffer",  # grad_data of _ParamAndGradBuffer
    "oom/model_states/fires_optimizer.log": "embedding_weight_fp32",  # the largest exp_avg_sq
    "oom/base_not_frozen/quiet.log": "hidden",  # down_proj
}


def logs() -> list[Path]:
    dumps = (b"-- arguments --", b'"hidden_size": ', b"end of arguments")
    return [
        path
        for path in sorted(FIXTURES.rglob("*.log"))
        if "bad_rules" not in path.parts and b"Tried to allocate" in (text := path.read_bytes()) and any(dump in text for dump in dumps)
    ]


@cache
def signals() -> tuple[Signal, ...]:
    return tuple(load([rules_dir()]).signals)


def matches(path: Path) -> tuple[list[Fact], list[Fact]]:
    """The OOMs of a log that tell what was asked for, and what allocation arithmetic says of them."""
    facts = tell(read_logs([str(path)], signals(), None)).facts
    told = [fact for fact in facts if fact.kind == "cuda.oom" and fact.fields.get("tried")]
    return told, [fact for fact in facts if fact.kind == "allocation.match"]


@pytest.mark.parametrize("path", logs(), ids=lambda path: str(path.relative_to(FIXTURES)))
def test_the_failing_allocation(path: Path) -> None:
    name = str(path.relative_to(FIXTURES))
    told, found = matches(path)
    assert told
    assert len(found) == len(told), "every request is judged"
    for match in found:
        if name in UNEXPLAINED:
            assert not match.fields["explained"]
            assert match.fields["text"].startswith("unexplained")
        else:
            assert match.fields["explained"], f"{match.fields['text']} ({match.fields['tried']} bytes)"
            assert TENSORS.get(name) in (None, match.fields.get("tensor"))


def test_there_are_many_and_few_stay_unexplained() -> None:
    names = {str(path.relative_to(FIXTURES)) for path in logs()}
    assert len(names) >= 25
    assert names >= UNEXPLAINED.keys() | TENSORS.keys()
