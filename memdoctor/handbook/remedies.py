"""The fixes of several rules: each once, by framework or by what there is to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memdoctor.handbook.entries import Paste, Remedy
from memdoctor.model import Fix

# The order in which frameworks stand; others follow by name.
ORDER = ("megatron-lm", "deepspeed", "pytorch", "transformers", "accelerate", "torchrun", "slurm", "nccl")
NAMES = {
    "megatron-lm": "Megatron-LM",
    "deepspeed": "DeepSpeed",
    "pytorch": "PyTorch",
    "transformers": "Hugging Face Trainer",
    "accelerate": "Accelerate",
    "nccl": "NCCL",
    "slurm": "Slurm",
    "nemo": "NeMo",
    "triton": "Triton",
}
_FRAMEWORK_SUFFIX = re.compile(r"-(?:megatron|deepspeed|torch|pytorch|transformers|hf|accelerate)$")


def unique(fixes: Iterable[Fix]) -> tuple[Fix, ...]:
    """The fixes without those that say or paste again what an earlier one does."""
    said: set[tuple[object, ...]] = set()
    pasted: set[tuple[object, ...]] = set()
    kept = []
    for fix in fixes:
        sentence = (fix.framework, fix.do, fix.command, fix.config)
        paste = (fix.framework, _FRAMEWORK_SUFFIX.sub("", fix.id), fix.command, fix.config)
        if sentence in said or ((fix.command or fix.config) and paste in pasted):
            continue
        said.add(sentence)
        pasted.add(paste)
        kept.append(fix)
    return tuple(kept)


def by_rule(rules: Iterable[tuple[str, Sequence[Fix]]]) -> list[list[tuple[Remedy, str]]]:
    """What there is to do about each (title, fixes) of one cause, with the title of the rule before it that says so already; "" where none does."""
    told: list[tuple[Fix, str]] = []
    found = []
    for title, fixes in rules:
        before = {fix: next((by for other, by in told if len(unique([other, fix])) == 1), "") for fix in fixes}
        told += [(fix, title) for fix in fixes if not before[fix]]
        titles = {remedy.do: [before[fix] for fix in fixes if fix.do == remedy.do] for remedy in merged(fixes)}
        found.append([(remedy, titles[remedy.do][0] if all(titles[remedy.do]) else "") for remedy in merged(fixes)])
    return found


def by_framework(fixes: Sequence[Fix]) -> list[tuple[str | None, list[Fix]]]:
    """The fixes for any framework, then those of each, in the order of ``ORDER``."""
    groups: dict[str | None, list[Fix]] = {}
    for fix in fixes:
        groups.setdefault(fix.framework, []).append(fix)
    return sorted(groups.items(), key=lambda group: rank(group[0]))


def merged(fixes: Iterable[Fix]) -> tuple[Remedy, ...]:
    """What there is to do, each sentence once, with what to paste for every framework that has it."""
    found: dict[str, list[Fix]] = {}
    for fix in fixes:
        found.setdefault(fix.do, []).append(fix)
    return tuple(_remedy(do, same) for do, same in found.items())


def _remedy(do: str, fixes: list[Fix]) -> Remedy:
    pastes = dict.fromkeys(Paste(fix.framework, fix.command, fix.config) for fix in sorted(fixes, key=lambda fix: rank(fix.framework)))
    return Remedy(do, fixes[0].risk, next((fix.saves for fix in fixes if fix.saves), None), tuple(pastes))


def rank(framework: str | None) -> tuple[int, str]:
    """Sorts frameworks: first what is for any of them."""
    if framework is None:
        return -1, ""
    return (ORDER.index(framework) if framework in ORDER else len(ORDER)), framework


def name(framework: str) -> str:
    return NAMES.get(framework, framework)
