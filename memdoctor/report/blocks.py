"""A text to read as data: headings, prose, things to paste. One file for each form (terminal, markdown, html) renders it."""

from __future__ import annotations

import re
from collections.abc import Callable

from memdoctor.records import record


@record
class Code:
    """A word of a program within prose: a flag, a variable, an id."""

    text: str


@record
class Strong:
    text: str


@record
class Link:
    """A reference to the heading that has this anchor, or to an address."""

    text: str
    target: str
    code: bool = False


Piece = str | Code | Strong | Link
Pieces = tuple[Piece, ...]


@record
class Heading:
    level: int
    text: str
    anchor: str = ""


@record
class Prose:
    pieces: Pieces


@record
class Verbatim:
    """Lines that stay as they are. ``kind``: paste (for a shell or a file), log (out of a log, may be cropped), outline (indented text)."""

    lines: tuple[str, ...]
    kind: str = "paste"


@record
class Bullets:
    """A list; each item begins with prose. ``ordered`` numbers them."""

    items: tuple[tuple[Block, ...], ...]
    ordered: bool = False


@record
class Table:
    """``widths`` are the shares of the columns, in percent."""

    head: tuple[str, ...]
    rows: tuple[tuple[Pieces, ...], ...]
    widths: tuple[int, ...]


@record
class PageBreak:
    pass


Block = Heading | Prose | Verbatim | Bullets | Table | PageBreak

_WORD = re.compile(
    r"`(?P<quoted>[^`]+)`"
    r"|(?<![\w-])(?P<flag>--[a-zA-Z][\w-]*\*?(?:=[^\s,;:)]*[^\s,;:.)])?)"
    r"|(?<![\w./-])(?P<id>[a-z]+\.(?:[a-z0-9_]+|\*)(?![\w(]|\.\w)|[a-z]+/(?:[a-z0-9_]+|\*)(?!\w|/|\.\w))"
    r"|(?<![\w/.-])(?P<name>(?:[A-Z][A-Z0-9]*_[A-Z0-9_]+(?:=[^\s,;:)]*[^\s,;:.)])?|[A-Za-z]\w*(?:\.[A-Za-z]\w+)*_\w+(?:\.\w+)*(?:\(\))?|[A-Za-z]\w+(?:\.[A-Za-z]\w+){2,}(?:\(\))?|torch\.\w+(?:\(\))?))"
    r"|(?<![\w.])(?P<path>/(?:dev|proc|sys|etc|usr|tmp|opt|var)/[\w./-]*\w)"
)


def words(text: str, link: Callable[[str], Piece | None] = lambda id_: None) -> Pieces:
    """Prose out of a rule: flags, variables, names of a program and text in backticks become code; ``link`` turns ids of causes and
    rules (``oom.logits``, ``oom/logits``) into what they are to be, None for words that are no id.
    """
    pieces: list[Piece] = []
    end = 0
    text = " ".join(text.split())
    for hit in _WORD.finditer(text):
        piece: Piece | None = link(hit["id"]) if hit["id"] else Code(hit["quoted"] or hit[0])
        if piece is None and hit[0].startswith("torch."):
            piece = Code(hit[0])
        if piece is not None:
            pieces += [text[end : hit.start()], piece]
            end = hit.end()
    return tuple(piece for piece in [*pieces, text[end:]] if piece != "")


def plain(pieces: Pieces) -> str:
    """The pieces without any marks."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)
