"""A report in the form, the place and with the exit code that the common options ask for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from memdoctor.cli import output
from memdoctor.cli.options import Options
from memdoctor.cli.paper import WIDTH, Paper, columns, wants_color

if TYPE_CHECKING:
    from memdoctor.model import Report


def render(report: Report, options: Options, *, plot: bool = False) -> int:
    """Write ``report`` and return the exit code, 0 or 1. ``plot``: with curves, where it is text."""
    from memdoctor.report.verdict import exit_code

    code = exit_code(report, options.fail_on)
    if options.redact:
        from memdoctor.report.redact import redact

        report = redact(report)
    output.write(options.output, _text(report, options, plot))
    return code


def _text(report: Report, options: Options, plot: bool) -> str:
    if options.format == "json":
        from memdoctor.report import json

        output.use_utf8()
        return json.render(report)
    from memdoctor.report import terminal

    to_stdout = options.output in (None, "-")
    page = Paper((sys.stdout.encoding or "utf-8") if to_stdout else "utf-8")
    color = to_stdout and not options.no_color and wants_color()
    width = columns() if to_stdout else WIDTH
    terminal.render(report, verbose=options.verbose, color=color, width=width, file=page, plot=plot)
    return page.getvalue()
