from __future__ import annotations

import pytest

from memdoctor.model import Diagnosis, Report, Run, Severity
from memdoctor.report.verdict import exit_code


def report(*severities: Severity) -> Report:
    diagnoses = tuple(Diagnosis("d", "a/b", "a.b", severity, "likely", "", "", "", "", "none") for severity in severities)
    return Report("logs", (), Run(), None, None, None, diagnoses=diagnoses)


@pytest.mark.parametrize(
    ("severities", "codes"),
    [((), (0, 0, 0)), (("note",), (0, 0, 0)), (("note", "warning"), (0, 1, 0)), (("error",), (1, 1, 0)), (("warning", "error"), (1, 1, 0))],
)
def test_exit_code(severities: tuple[Severity, ...], codes: tuple[int, ...]) -> None:
    assert tuple(exit_code(report(*severities), threshold) for threshold in ("error", "warning", "never")) == codes
