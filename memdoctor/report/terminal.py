"""The report for a person at a terminal: the root cause and what to do first, everything else folded small.

Where a run that worked was given, what differs from it stands before all of it. Readable without colour and from 60 columns on. What can be
pasted (commands, settings) stands on lines of its own and is never wrapped.
"""

from __future__ import annotations

from typing import TextIO

from memdoctor.model import Report
from memdoctor.report.terminal_page import Page
from memdoctor.report.terminal_parts import consequences, incidents, not_checked, notes, notes_folded, others, root_cause, skips
from memdoctor.report.terminal_words import ENDINGS, what_was_read


def render(report: Report, *, verbose: int, color: bool, width: int, file: TextIO, plot: bool = False) -> None:
    """Write ``report`` to ``file``. ``verbose`` 1 unfolds what is folded; ``width`` is in columns, ``file.encoding`` decides on signs; ``plot``: with curves."""
    page = Page(width, encoding=getattr(file, "encoding", None) or "utf-8", color=color)
    if report.command == "check":
        from memdoctor.report.terminal_check import check_list

        check_list(page, report, verbose)
        file.write(page.render())
        return
    root = next((each for each in report.diagnoses if each.cause == report.root_cause and each.severity != "note"), None)
    if report.baseline:
        from memdoctor.report.terminal_baseline import baseline

        baseline(page, report, verbose)
    if root is None:
        _nothing(page, report)
    else:
        root_cause(page, report, root, verbose)
        others(page, report, root, verbose)
        consequences(page, report, root, verbose)
        incidents(page, report)
        page.blank()
        page.prose(f"{ENDINGS[report.run.ended]} {what_was_read(report)}")
    notes_folded(page, report, verbose)
    skips(page, report, verbose)
    notes(page, report, verbose)
    not_checked(page, report, verbose)
    if plot:
        from memdoctor.report.terminal_series import curves

        curves(page, report, root)
    file.write(page.render())


def _nothing(page: Page, report: Report) -> None:
    """Two or three lines. That nothing was found is good news only of a run that completed."""
    ended = report.run.ended
    if not any(each.lines for each in report.inputs) and not report.run.ranks_seen:
        page.line(("Nothing to judge: the log is empty." if report.inputs else "Nothing to judge: no log was read.", "bold yellow"))
    elif ended == "completed":
        page.line(("Nothing wrong found.", "bold green"), f" {ENDINGS[ended]}")
    elif ended in ("failed", "killed"):
        page.line((f"Nothing found that says why. {ENDINGS[ended]}", "bold yellow"))
    else:
        page.line(("Nothing found so far." if ended == "running" else "Nothing found.", "bold"), f" {ENDINGS[ended]}")
    page.prose(what_was_read(report))
