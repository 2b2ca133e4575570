"""Lines of a report on a terminal: cropped, wrapped or left alone, with colour where it is wanted."""

from __future__ import annotations

import codecs
import textwrap
from collections.abc import Iterable

from memdoctor.report.text import visible

NARROWEST = 40  # columns below which nothing is fitted any more
WIDEST_PROSE = 100  # longer lines are hard to read
# Select Graphic Rendition (ECMA-48, 8.3.117) of the words that a style is made of.
_RENDITION = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
# What a terminal without these signs gets in their place.
_PLAIN = {"…": "...", "·": "-", "×": "x", "→": "->", "–": "-", "—": "-", "≥": ">=", "≤": "<=", "’": "'", "≈": "~", "✓": "+", "✗": "x"}

_Part = tuple[str, str]  # text and its style: "", or words of _RENDITION


class Page:
    """Collects lines; text is made harmless here, so no caller can forget it, and nothing in it is interpreted as markup."""

    def __init__(self, width: int, *, encoding: str, color: bool) -> None:
        self.width = max(width, NARROWEST)
        self._encoding = encoding if _known(encoding) else "ascii"
        self._plain = not _can_show("".join(_PLAIN), self._encoding)
        self._color = color
        self._lines: list[str] = []

    def blank(self) -> None:
        self._put([])

    def line(self, *parts: str | _Part, indent: int = 0) -> None:
        """One line as it is, however long: a command, a path. A part is text, or text and its style."""
        self._put(self._parts(parts, indent))

    def cropped(self, *parts: str | _Part, indent: int = 0) -> None:
        """One line that ends in … where it is wider than the page."""
        fitted = self._parts(parts, indent)
        text = "".join(part for part, _ in fitted)
        if _width(text) > self.width:
            mark = self._fit("…")
            fitted = [*_first(fitted, len(_cut(text, self.width - _width(mark)).rstrip())), (mark, "")]
        self._put(fitted)

    def prose(self, text: str, style: str = "", *, indent: int = 0, first: str = "", first_style: str = "") -> None:
        """Words, wrapped at blanks only: a flag or a path in them stays whole. ``first`` stands before the first line."""
        lead = " " * indent + self._fit(visible(first))
        hang = " " * _width(lead)
        width = min(self.width, WIDEST_PROSE)
        lines = textwrap.wrap(
            self._fit(visible(text)), width, initial_indent=lead, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        )
        for number, line in enumerate(lines or ([lead.rstrip()] if first else [])):
            styled = len(lead.rstrip()) if first_style and number == 0 else 0
            self._put([(line[:styled], first_style), (line[styled:], style)])

    def heading(self, text: str) -> None:
        self.blank()
        self._put([(self._fit(visible(text)), "bold")])

    def tail(self, text: str, taken: int) -> str:
        """The end of ``text``, behind …, where all of it does not fit beside ``taken`` columns: of a path the end tells most."""
        text = visible(text)
        room = self.width - taken
        if _width(text) <= room:
            return text
        mark = self._fit("…")
        while text and _width(text) > room - _width(mark):
            text = text[1 + max(0, (_width(text) - room) // 2) :]
        return mark + text

    def can_show(self, text: str) -> bool:
        """True where the encoding has every sign of ``text``."""
        return _can_show(text, self._encoding)

    def render(self) -> str:
        """What was collected."""
        return "".join(f"{line}\n" for line in self._lines)

    def _parts(self, parts: Iterable[str | _Part], indent: int) -> list[_Part]:
        both = ((part, "") if isinstance(part, str) else part for part in parts)
        return [(" " * indent, ""), *((self._fit(visible(text)), style) for text, style in both)]

    def _fit(self, text: str) -> str:
        """``text`` in signs that the encoding has."""
        if self._plain:
            text = "".join(_PLAIN.get(sign, sign) for sign in text)
        return text if text.isascii() else text.encode(self._encoding, "backslashreplace").decode(self._encoding)

    def _put(self, parts: list[_Part]) -> None:
        kept = _first(parts, len("".join(text for text, _ in parts).rstrip()))
        self._lines.append("".join(self._painted(text, style) for text, style in kept))

    def _painted(self, text: str, style: str) -> str:
        if not (self._color and style and text):
            return text
        return f"\x1b[{';'.join(_RENDITION[word] for word in style.split())}m{text}\x1b[0m"


def _first(parts: list[_Part], count: int) -> list[_Part]:
    """The first ``count`` characters."""
    kept = []
    for text, style in parts:
        kept.append((text[:count], style))
        count -= len(kept[-1][0])
    return kept


def _width(text: str) -> int:
    """Columns that ``text`` takes."""
    if text.isascii() or text.replace("…", "").isascii():
        return len(text)
    from rich.cells import cell_len  # its tables are needed for few reports

    return cell_len(text)


def _cut(text: str, width: int) -> str:
    """As much of ``text``, which is wider, as ``width`` columns hold."""
    if text.isascii():
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width)


def _known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False
    return True


def _can_show(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
