"""From a report to the exit code of the command."""

from __future__ import annotations

from memdoctor.model import Report

_SEVERE = {"error": ("error",), "warning": ("error", "warning"), "never": ()}


def exit_code(report: Report, fail_on: str = "error") -> int:
    """1 where a diagnosis is at or above ``fail_on`` (error, warning, never), else 0. A recovered error counts as its severity says."""
    return int(any(diagnosis.severity in _SEVERE[fail_on] for diagnosis in report.diagnoses))
