"""Every rule has its fixtures and every fixture gives exactly what it expects. Names no rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.engine.load import load
from memdoctor.fixtures import find_cases, read_cases, run_case
from memdoctor.resources import rules_dir

FIXTURES = Path(__file__).parent.parent / "fixtures"
CASES = [path for path in find_cases(FIXTURES) if "bad_rules" not in path.parts]
RULES = load([rules_dir()]).rules


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.parent.relative_to(FIXTURES)))
def test_case(path: Path) -> None:
    problems = [f"{'+'.join(result.case.input)}: {problem}" for result in run_case(path) for problem in result.problems]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_fires_on_one_log_and_is_quiet_on_another(rule: object) -> None:
    """A rule is worth what its near miss proves: its own folder holds at least one of each."""
    rule_id = rule.id  # type: ignore[attr-defined]
    case = FIXTURES / rule_id / "case.yaml"
    assert case.exists(), f"no fixtures/{rule_id}/case.yaml"
    entries = read_cases(case)
    fires, quiet = [], []
    for entry in entries:
        told = [expected for expected in entry.diagnoses if expected["rule"] == rule_id]
        if any(not expected.get("recovered") for expected in told):
            fires.append(entry)
        else:  # what the run got over is a note, and so is quiet
            quiet.append(entry)
    assert fires, f"no log in fixtures/{rule_id} makes it fire"
    assert quiet, f"no log in fixtures/{rule_id} looks like it and is quiet"


def test_no_fixture_is_left_over() -> None:
    """Every log under fixtures/ is named by a case."""
    named = {(path.parent / name).resolve() for path in CASES for entry in read_cases(path) for name in entry.input}
    logs = {path.resolve() for path in FIXTURES.rglob("*.log") if "bad_rules" not in path.parts}
    left = {log for log in logs if log not in named and not any(parent in named for parent in log.parents)}
    assert not left, sorted(str(log.relative_to(FIXTURES)) for log in left)
