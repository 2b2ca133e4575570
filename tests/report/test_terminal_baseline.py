"""What differs from a run that worked stands first in the report, and takes few lines."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest

from memdoctor.model import Diagnosis, InputFile, Report, Run
from memdoctor.report.terminal import render

ROOT = Diagnosis(
    "d1",
    "oom/logits",
    "oom.logits",
    "error",
    "likely",
    "no room",
    "The logits are large.",
    "Fragmentation.",
    "The logits do not fit",
    "none",
)
READ = (InputFile("train.log", 100, 10),)


def difference(kind: str, name: str, good: Any, this: Any) -> Mapping[str, Any]:
    return {"kind": kind, "name": name, "good": good, "this": this}


MEASURED = [
    difference("step_time", "step_time", 2.0, 2.6),
    difference("memory", "memory", 2.0 * 1024**3, 3.0 * 1024**3),
    difference("loss", "loss", 3.8, 3.4),
]


def shown(differences: list[Mapping[str, Any]], *, verbose: int = 0, width: int = 100, root: bool = True) -> list[str]:
    baseline = {"differences": differences, "equal": {"layout": 5, "argument": 36}, "measured": {"loss": {}}}
    diagnoses, cause = ((ROOT,), "oom.logits") if root else ((), None)
    report = Report("logs", READ, Run(ended="failed"), cause, "likely" if root else None, None, diagnoses=diagnoses, baseline=baseline)
    file = io.StringIO()
    render(report, verbose=verbose, color=False, width=width, file=file)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("root", [True, False])
def test_it_stands_before_the_diagnosis(root: bool) -> None:
    lines = shown([difference("version", "torch", "2.6.0", "2.7.1"), *MEASURED], root=root)
    assert lines[:5] == [
        "Beside the run that worked",
        "  version torch: 2.6.0 → 2.7.1",
        "  step time: 2 s → 2.6 s, memory: 2 GiB → 3 GiB, loss: 3.8 → 3.4",
        "  Equal: 5 layout sizes, 36 arguments.",
        "",
    ]
    assert lines[5].startswith("ROOT CAUSE: " if root else "Noth")


MANY = [
    *[difference("version", name, "1", "2") for name in ("apex", "nccl", "torch")],
    *[difference("variable", f"NCCL_{name}", "0", "1") for name in "ABC"],
    *[difference("argument", f"argument_{number}", 1, 2) for number in range(30)],
    *MEASURED,
]


def test_many_take_eight_lines_and_no_kind_hides_another() -> None:
    lines = shown(MANY)
    end = lines.index("")
    assert end <= 8
    assert [line.split(":")[0] for line in lines[1:5]] == ["  version apex", "  version nccl", "  variable NCCL_A", "  argument argument_0"]
    assert lines[5] == "  and 32 more (-v shows them)"
    assert lines[6].startswith("  step time: ")


def test_verbose_shows_them_all() -> None:
    lines = shown(MANY, verbose=1)
    assert lines.index("") >= 38
    assert "  argument argument_29: 1 → 2" in lines
    assert not any("more (-v" in line for line in lines)


def test_nothing_differs() -> None:
    assert shown([])[:3] == [
        "Beside the run that worked",
        "  nothing differs in what both logs tell",
        "  Equal: 5 layout sizes, 36 arguments, loss.",
    ]


def test_without_such_a_run_the_diagnosis_is_first() -> None:
    file = io.StringIO()
    report = Report("logs", READ, Run(), "oom.logits", "likely", None, diagnoses=(ROOT,))
    render(report, verbose=0, color=False, width=100, file=file)
    assert file.getvalue().startswith("ROOT CAUSE: ")
