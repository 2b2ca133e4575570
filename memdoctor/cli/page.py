"""Blocks in the form and the place that were asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memdoctor.cli import output
from memdoctor.cli.paper import WIDTH, Paper, columns, wants_color

if TYPE_CHECKING:
    from memdoctor.report.blocks import Block


def show(text: str | Sequence[Block], path: str | None, *, format_: str = "text", color: bool = True, whole: bool = False) -> int:
    """Write text as it is (UTF-8), or blocks rendered as text or markdown; returns 0."""
    if isinstance(text, str):
        output.use_utf8()
        output.write(path, text)
        return 0
    if format_ == "markdown":
        from memdoctor.report import blocks_markdown

        output.use_utf8()
        output.write(path, blocks_markdown.render(text))
        return 0
    from memdoctor.report import blocks_terminal

    to_stdout = path in (None, "-")
    paper = Paper((sys.stdout.encoding or "utf-8") if to_stdout else "utf-8")
    width = columns() if to_stdout else WIDTH
    blocks_terminal.render(text, color=to_stdout and color and wants_color(), width=width, file=paper, whole=whole)
    output.write(path, paper.getvalue())
    return 0
