"""Blocks as Markdown that GitHub, pandoc and CommonMark read alike."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memdoctor.report.blocks import Block, Bullets, Code, Heading, Link, PageBreak, Piece, Pieces, Prose, Strong, Table, Verbatim
from memdoctor.report.text import visible

WIDTH = 120  # columns of a line of prose in the source
_SPECIAL = re.compile(r"([\\`*_\[\]<$~^]|&(?=#?\w+;))")  # $ ~ ^ mean something to pandoc
_STARTS_A_BLOCK = re.compile(r"(?:[-+=>]|#+|\d+[.)])$")
_WORDS = re.compile(r"(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|\S)+")
_LANGUAGES = {"paste": "sh", "log": "text", "outline": "text"}


def render(blocks: Iterable[Block]) -> str:
    """The document, with one line end at its end."""
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := _block(block))) + "\n"


def _block(block: Block) -> list[str]:
    match block:
        case Heading():
            anchor = [f'<a id="{block.anchor}"></a>', ""] if block.anchor else []
            return [*anchor, f"{'#' * block.level} {_escaped(block.text)}"]
        case Prose():
            return _wrapped(_inline(block.pieces))
        case Verbatim():
            fence = _fence(block.lines)
            language = "json" if block.kind == "paste" and block.lines[0].startswith("{") else _LANGUAGES[block.kind]
            return [f"{fence}{language}", *map(_verbatim, block.lines), fence]
        case Bullets():
            return [line for number, item in enumerate(block.items, 1) for line in _item(item, f"{number}. " if block.ordered else "- ")]
        case Table():
            dashes = [f":{'-' * max(2, width)}" for width in block.widths]
            rows = [[_inline(cell, in_table=True) for cell in row] for row in block.rows]
            return [f"| {' | '.join(cells)} |" for cells in [list(map(_escaped, block.head)), dashes, *rows]]
        case PageBreak():
            return ['<div style="page-break-after: always"></div>']


def _item(blocks: tuple[Block, ...], lead: str) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        lines += [*([""] if lines else []), *_block(block)]
    hang = " " * len(lead)
    result = [(hang if number else lead) + line if line else "" for number, line in enumerate(lines)]
    while result[-1:] == [""]:
        result.pop()
    return [*result, ""] if len(blocks) > 1 else result


def _inline(pieces: Pieces, *, in_table: bool = False) -> str:
    text = "".join(_piece(piece) for piece in pieces)
    return text.replace("|", "\\|").replace("\\\\|", "\\|") if in_table else text


def _piece(piece: Piece) -> str:
    match piece:
        case Code():
            return _code(piece.text)
        case Strong():
            return f"**{_escaped(piece.text.strip())}**"  # a blank inside would leave the stars as they are
        case Link():
            return f"[{_code(piece.text) if piece.code else _escaped(piece.text)}]({piece.target})"
        case _:
            return _escaped(piece)


def _escaped(text: str) -> str:
    """``text`` with every sign that means something to Markdown made to mean itself; an underscore within a word does not."""
    text = _SPECIAL.sub(r"\\\1", visible(text))
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", text)


def _code(text: str) -> str:
    text = visible(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _verbatim(line: str) -> str:
    return visible(line.expandtabs(4)).rstrip()


def _fence(lines: Iterable[str]) -> str:
    return "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall("`+", line)), 3)


def _wrapped(text: str) -> list[str]:
    """Lines of at most WIDTH columns, broken at blanks outside of code; none begins as a list would."""
    lines, line = [], ""
    for word in _WORDS.findall(text):
        if line and len(line) + 1 + len(word) > WIDTH and not _STARTS_A_BLOCK.match(word):
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return [*lines, line]
