"""Every flag, key, variable and command that a rule, a cause or a piece of advice names exists: once and somewhere in a sentence, today in what is to be pasted."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from memdoctor.engine.load import load
from memdoctor.engine.schema import Rule
from memdoctor.engine.versions import fits
from memdoctor.handbook.entries import Advice
from memdoctor.handbook.tables import read_advice, read_causes
from memdoctor.model import Fix
from memdoctor.resources import rules_dir
from tests.known import MEGATRON, has, releases
from tests.naming import of_config, of_paste, of_prose
from tests.pastes import FLAG

RULES = load([rules_dir()]).rules
ADVICE = read_advice(rules_dir() / "tables" / "advice.yaml")
# Names of things that are not there, told as such.
NO_SUCH_THING = {
    "config/megatron_bare_assert": "no flag --x-y anywhere",  # stands for any flag
    "config/recompute_choice": "no flag --no-recompute anywhere",
    "no-recompute": "no flag --no-recompute anywhere",
    "gradient-clipping-flag": "no flag --gradient-clipping anywhere",
}
# Megatron-LM from here on: a younger flag is told with the release that brought it.
YOUNG = "0.13"
# The event itself says that the flag is there.
HAS_IT = ("config/activation_offload", "config/checkpoint_format", "config/pipeline_layout")


def problems(id_: str, texts: Iterable[str | None], pastes: Iterable[tuple[str | None, str | None, str | None]]) -> list[str]:
    """``pastes``: framework, command, configuration."""
    found = [told for text in texts if text for told in of_prose(text)]
    for framework, command, config in pastes:
        found += [*of_paste(command or "", framework), *of_config(config or "")]
    return [told for told in found if told != NO_SUCH_THING.get(id_)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule(rule: Rule) -> None:
    texts = (rule.title, rule.message, rule.why, rule.not_this, *(text for fix in rule.fixes for text in (fix.do, fix.saves)))
    assert problems(rule.id, texts, [(fix.framework, fix.command, fix.config) for fix in rule.fixes]) == []


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.id)
def test_advice(advice: Advice) -> None:
    texts = (advice.claim, advice.why, advice.instead)
    assert problems(advice.id, texts, [(paste.framework, paste.command, paste.config) for paste in advice.pastes]) == []


def test_causes() -> None:
    assert [told for id_, texts in read_causes([rules_dir()]).items() for told in problems(id_, texts, ())] == []


def test_what_is_excepted_is_still_so() -> None:
    """An exception that is no longer needed goes."""
    texts = {rule.id: f"{rule.why} {rule.not_this}" for rule in RULES} | {advice.id: advice.claim for advice in ADVICE}
    for id_, told in NO_SUCH_THING.items():
        assert told in list(of_prose(texts[id_])), id_


def young(fix: Fix) -> list[str]:
    """The flags of a fix that came with ``YOUNG`` or later."""
    if fix.framework != "megatron-lm":
        return []
    return [flag for flag in FLAG.findall(fix.command or "") if flag in MEGATRON and not has(MEGATRON[flag], before(YOUNG))]


def before(release: str) -> str:
    return releases()[releases().index(release) - 1]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_flag_fits_the_versions_of_its_rule(rule: Rule) -> None:
    """Where the rule holds for any version, the fix tells which releases have a young flag; else all that the rule holds for have it."""
    range_ = rule.applies.get("megatron-lm") or rule.applies.get("megatron-core")
    for fix in rule.fixes:
        for flag in young(fix):
            since = MEGATRON[flag]["since"]
            if range_ is not None:
                held = [release for release in releases() if not release.startswith("v") and fits(release, range_)]
                assert all(has(MEGATRON[flag], release) for release in held), f"{flag} came with {since}"
            elif rule.id not in HAS_IT:
                assert f"core {since} and newer" in fix.do, f"{fix.id}: {flag} came with {since}"


def test_some_flags_are_young() -> None:
    assert set(HAS_IT) <= {rule.id for rule in RULES if any(young(fix) for fix in rule.fixes)}
