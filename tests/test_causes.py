"""Every cause of the closed list is named by a rule, and enough logs show it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from memdoctor.engine.load import load
from memdoctor.fixtures import find_cases, read_cases
from memdoctor.resources import rules_dir

FIXTURES = Path(__file__).parent.parent / "fixtures"
BASE = load([rules_dir()])
LOGS = 800  # entries that fire, and that are quiet: the counts may grow, not fall
QUIET = 400


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
