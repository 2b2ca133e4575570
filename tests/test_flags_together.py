"""Flags of Megatron-LM that work only together, or never beside each other: what is to be pasted keeps to it."""

from __future__ import annotations

import pytest

from memdoctor.engine.load import load
from memdoctor.handbook.tables import read_advice
from memdoctor.resources import rules_dir

NEEDS = {
    "--use-precision-aware-optimizer": "--use-distributed-optimizer",
    "--optimizer-cpu-offload": "--use-precision-aware-optimizer",
    "--exp-avg-dtype": "--use-precision-aware-optimizer",
    "--async-save": "--use-persistent-ckpt-worker",  # from core 0.16 on it is switched off without
    "--recompute-modules": "--recompute-granularity selective",
    "--recompute-method": "--recompute-granularity full",
}
COUNTED = ("--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split")
NAMED = ("--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers")
LAYOUT = ("--pipeline-model-parallel-layout",)

FIXES = [(rule.id, fix.do, fix.command) for rule in load([rules_dir()]).rules for fix in rule.fixes if fix.command]
ADVICE = [
    (each.id, paste.note, paste.command)
    for each in read_advice(rules_dir() / "tables" / "advice.yaml")
    for paste in each.pastes
    if paste.command
]


@pytest.mark.parametrize(("id_", "said", "command"), [*FIXES, *ADVICE])
def test_flags_together(id_: str, said: str, command: str) -> None:
    words = command.split()
    assert [flag for flag, other in NEEDS.items() if flag in words and other not in command] == []
    assert sum(any(flag in words for flag in way) for way in (COUNTED, NAMED, LAYOUT)) <= 1
    if any(flag in words for flag in COUNTED):
        assert "divisible" in said or "layers plus" in said or "k·P" in said, "it says what must then divide"
