"""A report in the form, the place and with the exit code that the common options ask for."""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import TYPE_CHECKING

from memdoctor.cli import output
from memdoctor.cli.options import Options

if TYPE_CHECKING:
    from memdoctor.model import Report


class _Page(io.StringIO):
    """Text in memory that says which encoding it is meant for, so that a renderer draws only what the terminal can show."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def render(report: Report, options: Options) -> int:
    """Write ``report`` and return the exit code, 0 or 1."""
    from memdoctor.report.verdict import exit_code

    code = exit_code(report, options.fail_on)
    if options.redact:
        from memdoctor.report.redact import redact

        report = redact(report)
    output.write(options.output, _text(report, options))
    return code


def _text(report: Report, options: Options) -> str:
    if options.format == "json":
        from memdoctor.report import json

        output.use_utf8()
        return json.render(report)
    from memdoctor.report import terminal

    to_stdout = options.output in (None, "-")
    page = _Page((sys.stdout.encoding or "utf-8") if to_stdout else "utf-8")
    color = to_stdout and not options.no_color and wants_color()
    width = shutil.get_terminal_size((100, 24)).columns if to_stdout else 100
    terminal.render(report, verbose=options.verbose, color=color, width=width, file=page)
    return page.getvalue()


def wants_color() -> bool:
    """True where stdout is a terminal that shows colour and nobody said NO_COLOR (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()
