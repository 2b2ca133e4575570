"""Events planted in made-up runs are found, called by their name and dated; healthy runs are left alone.

A few of each in every run of the tests, the full numbers with ``--slow``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs
from tests.made_runs.expected import MadeRun
from tests.made_runs.make import SHAPES_OF, make

INTERVALS = (1, 10, 100)
RIGHT = 0.98  # of the planted events that must be called by their name, and dated rightly
EVENTS = tuple(event for event in SHAPES_OF if event != "healthy")


@dataclass
class Score:
    """How many runs there were, how many were judged and dated rightly, and what was said of the others."""

    runs: int = 0
    right: int = 0
    dated: int = 0
    wrong: list[str] = field(default_factory=list)

    def take(self, name: str, run: MadeRun, report: Report) -> None:
        self.runs += 1
        right, dated = run.verdict(report)
        self.right += right
        self.dated += dated
        if not dated:
            said = [(each.rule, each.severity, each.iteration, each.message) for each in report.diagnoses]
            self.wrong.append(f"{name}: expected {run.expected}, said {said}")


def score(tmp_path: Path, event: str, intervals: tuple[int, ...], seeds: range) -> Score:
    result = Score()
    for shape in SHAPES_OF[event]:
        for interval in intervals:
            for seed in seeds:
                run = make(event, shape, interval, seed)
                path = tmp_path / "train.log"
                path.write_text(run.text)
                result.take(f"{event} {shape} {interval} {seed}", run, diagnose_logs([str(path)]))
    return result


@pytest.mark.parametrize("event", EVENTS)
def test_a_planted_event_is_found(event: str, tmp_path: Path) -> None:
    found = score(tmp_path, event, (10,), range(1))
    assert found.dated >= found.runs - 1, "\n".join(found.wrong)


def test_healthy_runs_are_left_alone(tmp_path: Path) -> None:
    found = score(tmp_path, "healthy", (10,), range(2))
    assert found.right == found.runs, "\n".join(found.wrong)


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
def test_planted_events_are_found(event: str, tmp_path: Path) -> None:
    few = max(4, 24 // len(SHAPES_OF[event]))  # of each shape and interval
    found = score(tmp_path, event, INTERVALS[:2] if event == "spike" else INTERVALS, range(100, 100 + few))
    print(f"\n{event}: {found.right} of {found.runs} called by their name, {found.dated} also dated rightly")
    assert found.right >= RIGHT * found.runs, "\n".join(found.wrong)
    assert found.dated >= RIGHT * found.runs, "\n".join(found.wrong)


@pytest.mark.slow
def test_three_hundred_healthy_runs(tmp_path: Path) -> None:
    found = score(tmp_path, "healthy", INTERVALS, range(200, 208))
    print(f"\nhealthy: {found.right} of {found.runs}; {Counter(line.split()[1] for line in found.wrong)}")
    assert found.runs >= 300
    assert found.right == found.runs, "\n".join(found.wrong)
