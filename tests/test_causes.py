"""Every cause of the closed list is named by a rule, and enough logs of enough kinds show it."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache

import pytest

from memdoctor.engine.load import load
from memdoctor.fixtures import find_cases, read_cases
from memdoctor.resources import rules_dir
from tests.breadth import FIXTURES, Breadth, breadth

BASE = load([rules_dir()])
LOGS = 1240  # entries that fire, and that are quiet: the counts may grow, not fall
QUIET = 520
# A warning about a run that goes on: nothing ends, so there is nothing that follows from it.
NO_CASCADE = {
    "balance.*": "the others wait within each step, and no line says so",
    "config.risky": "a setting that has cost nothing yet",
    "gpu.throttle": "a reading of one GPU",
    "loss.*": "the loss itself, printed by one rank",
    "speed.*": "the pace itself",
}
# Told by numbers that the run itself prints, the same under any launcher.
ANY_LAUNCHER = ("balance.*", "gpu.throttle", "loss.*", "speed.*")
# Minor releases of NCCL of which some log is there: those that pip's torch came with, and those of the clusters' images before.
NCCL = tuple(f"2.{minor}" for minor in range(4, 31))
_NCCL = re.compile(r"NCCL version (2\.\d{1,2})\b")


@cache
def shown() -> dict[str, Breadth]:
    return breadth()


def test_no_cause_is_without_a_rule() -> None:
    assert BASE.causes == {rule.cause for rule in BASE.rules}


def test_the_counts_of_fixtures_hold() -> None:
    counts: Counter[str] = Counter()
    for path in find_cases(FIXTURES):
        if "bad_rules" in path.parts:
            continue
        for entry in read_cases(path):
            counts["quiet" if entry.root_cause is None else "fires"] += 1
    assert counts["fires"] >= LOGS, counts
    assert counts["quiet"] >= QUIET, counts


@pytest.mark.parametrize("cause", sorted(BASE.causes))
def test_a_cause_is_shown_in_full(cause: str) -> None:
    """Three logs that fire, a piece as people paste it and a cascade among them; a near miss of another cause and a harmless one."""
    found = shown()[cause]
    assert found.fires >= 3, found
    assert found.fragments >= 1, found
    assert found.cascades >= 1 or any(fnmatchcase(cause, each) for each in NO_CASCADE), found
    assert found.alike >= 1, found
    assert found.harmless >= 1, found


@pytest.mark.parametrize("cause", sorted(BASE.causes))
def test_a_cause_is_shown_under_several_launchers(cause: str) -> None:
    if not any(fnmatchcase(cause, each) for each in ANY_LAUNCHER):
        assert len(shown()[cause].launchers) >= 2, shown()[cause]


def test_every_minor_release_of_nccl_has_its_log() -> None:
    told = {found[1] for log in FIXTURES.rglob("*.log") for found in _NCCL.finditer(log.read_text(encoding="utf-8", errors="replace"))}
    assert not set(NCCL) - told


def test_what_is_excepted_is_still_so() -> None:
    """An exception that is no longer needed goes."""
    for pattern in ANY_LAUNCHER:
        assert any(len(each.launchers) < 2 for cause, each in shown().items() if fnmatchcase(cause, pattern)), pattern
    for pattern in NO_CASCADE:
        causes = [cause for cause in BASE.causes if fnmatchcase(cause, pattern)]
        assert causes, pattern
        assert any(not shown()[cause].cascades for cause in causes), pattern
