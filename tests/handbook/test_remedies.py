"""Fixes of several rules: each once, by framework or by what there is to do."""

from __future__ import annotations

from memdoctor.handbook.entries import Paste
from memdoctor.handbook.near import near
from memdoctor.handbook.remedies import by_framework, by_rule, merged, unique
from memdoctor.model import Fix

ANY = Fix("look", "Look.", command="nvidia-smi")
MEGATRON = Fix("batch", "Halve it.", command="--micro-batch-size 1", framework="megatron-lm", saves="half")
DEEPSPEED = Fix("batch-deepspeed", "Halve it.", config="{}", framework="deepspeed", risk="costly")
AGAIN = Fix("batch", "Halve it, said otherwise.", command="--micro-batch-size 1", framework="megatron-lm")
WORDS = Fix("talk", "Ask.", framework="nemo")


def test_unique() -> None:
    assert unique([ANY, MEGATRON, ANY, AGAIN, DEEPSPEED]) == (ANY, MEGATRON, DEEPSPEED)
    bare = [Fix("a", "One."), Fix("a", "Two.")]
    assert unique(bare) == tuple(bare)  # nothing is pasted twice where there is nothing to paste


def test_by_rule() -> None:
    """A fix stands whole under the first rule that has it, and is only named under others."""
    first, second = by_rule([("One", [ANY, MEGATRON]), ("Two", [WORDS, AGAIN, DEEPSPEED])])
    assert [(remedy.do, title) for remedy, title in first] == [("Look.", ""), ("Halve it.", "")]
    assert [(remedy.do, title) for remedy, title in second] == [("Ask.", ""), ("Halve it, said otherwise.", "One"), ("Halve it.", "")]
    assert by_rule([("One", []), ("Two", [ANY])])[0] == []


def test_by_framework() -> None:
    assert [(name, len(group)) for name, group in by_framework([WORDS, DEEPSPEED, MEGATRON, ANY])] == [
        (None, 1),
        ("megatron-lm", 1),
        ("deepspeed", 1),
        ("nemo", 1),
    ]


def test_merged() -> None:
    look, halve, ask = merged([ANY, DEEPSPEED, MEGATRON, WORDS])
    assert (look.do, halve.do, ask.do) == ("Look.", "Halve it.", "Ask.")
    assert [paste.framework for paste in halve.pastes] == ["megatron-lm", "deepspeed"]
    assert halve.frameworks == ("megatron-lm", "deepspeed")
    assert (halve.saves, halve.risk) == ("half", "costly")
    assert ask.pastes == (Paste("nemo"),)
    assert ask.pastes[0].empty


def test_near() -> None:
    known = ["oom.logits", "oom.host", "oom/logits", "nan.data"]
    assert near("oom", known) == "; there are oom.logits, oom.host, oom/logits"
    assert near("host", known) == "; there are oom.host"
    assert near("nan.dta", known) == "; did you mean 'nan.data'?"
    assert near("something else", known) == ""
    assert near("a", [f"a.x{number}" for number in range(12)]).endswith("and 4 more")
    assert near("oom.host", ["oom.host", "oom.hosts"]) == "; did you mean 'oom.hosts'?"  # never what was typed
    assert near("oom.host", ["oom.host"]) == ""
