"""Blocks for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from memdoctor.report import fit
from memdoctor.report.blocks import Block, Bullets, Heading, Prose, Table, Verbatim, plain
from memdoctor.report.terminal_page import Page
from memdoctor.report.text import visible_lines

_STYLES = {"paste": "cyan", "log": "dim"}


def render(blocks: Iterable[Block], *, color: bool, width: int, file: TextIO, whole: bool = False) -> None:
    """Write ``blocks`` to ``file``. Long lines of a log are cut short unless ``whole``; what is to paste never is."""
    page = Page(width, encoding=getattr(file, "encoding", None) or "utf-8", color=color)
    deeper = 0
    for block in blocks:
        if isinstance(block, Heading):
            deeper = 2 if block.level > 2 else 0
        _block(page, block, deeper, whole)
    file.write(page.render())


def _block(page: Page, block: Block, indent: int, whole: bool, *, lead: str = "") -> None:
    match block:
        case Heading(level=1):
            page.prose(block.text, "bold")
        case Heading():
            page.heading(block.text) if block.level == 2 else page.prose(block.text, "bold", indent=2)
        case Prose():
            page.prose(plain(block.pieces), indent=indent, first=lead)
        case Verbatim():
            for line in visible_lines("\n".join(block.lines)):
                if block.kind == "outline":
                    page.prose(line.lstrip(), indent=indent + 2 + len(line) - len(line.lstrip()))
                    continue
                for part in fit.log(line, page.width - indent - 2) if block.kind == "log" and not whole else (line,):
                    page.line((part, _STYLES[block.kind]), indent=indent + 2)
        case Bullets():
            for number, item in enumerate(block.items, 1):
                mark = f"{number}. " if block.ordered else "- "
                _block(page, item[0], indent + 2, whole, lead=mark)
                for inner in item[1:]:
                    _block(page, inner, indent + len(mark), whole)
        case Table():
            for row in block.rows:
                page.prose("  ".join(plain(cell) for cell in row), indent=indent + 2)
        case _:
            page.blank()
