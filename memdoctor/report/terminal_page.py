"""Lines of a report on a terminal: cropped, wrapped or left alone, with colour where it is wanted."""

from __future__ import annotations

import codecs
import io
import textwrap

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from memdoctor.report.text import visible

NARROWEST = 40  # columns below which nothing is fitted any more
WIDEST_PROSE = 100  # longer lines are hard to read
# What a terminal without these signs gets in their place.
_PLAIN = {"…": "...", "·": "-", "×": "x", "→": "->", "–": "-", "—": "-", "≥": ">=", "≤": "<=", "’": "'", "≈": "~", "✓": "+", "✗": "x"}


class Page:
    """Collects lines; text is made harmless here, so no caller can forget it. Markup is never interpreted: only Text is printed."""

    def __init__(self, width: int, *, encoding: str, color: bool) -> None:
        self.width = max(width, NARROWEST)
        self._encoding = encoding if _known(encoding) else "ascii"
        self._plain = not _can_show("".join(_PLAIN), self._encoding)
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer, width=self.width, force_terminal=color, no_color=not color, color_system="standard" if color else None,
            markup=False, emoji=False, highlight=False, legacy_windows=False, force_jupyter=False,
        )  # fmt: skip

    def blank(self) -> None:
        self._put(Text())

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """One line as it is, however long: a command, a path. A part is text, or text and its style."""
        self._put(self._text(parts, indent))

    def cropped(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """One line that ends in … where it is wider than the page."""
        text = self._text(parts, indent)
        if cell_len(text.plain) > self.width:
            mark = self._fit("…")
            kept = set_cell_size(text.plain, self.width - cell_len(mark)).rstrip()
            text = text[: len(kept)]
            text.append(mark)
        self._put(text)

    def prose(self, text: str, style: str = "", *, indent: int = 0, first: str = "", first_style: str = "") -> None:
        """Words, wrapped at blanks only: a flag or a path in them stays whole. ``first`` stands before the first line."""
        lead = " " * indent + self._fit(visible(first))
        hang = " " * cell_len(lead)
        width = min(self.width, WIDEST_PROSE)
        lines = textwrap.wrap(
            self._fit(visible(text)), width, initial_indent=lead, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        )
        for number, line in enumerate(lines or ([lead.rstrip()] if first else [])):
            shown = Text(line, style)
            if first_style and number == 0:
                shown.stylize(first_style, 0, len(lead.rstrip()))
            self._put(shown)

    def heading(self, text: str) -> None:
        self.blank()
        self._put(Text(self._fit(visible(text)), "bold"))

    def tail(self, text: str, taken: int) -> str:
        """The end of ``text``, behind …, where all of it does not fit beside ``taken`` columns: of a path the end tells most."""
        text = visible(text)
        room = self.width - taken
        if cell_len(text) <= room:
            return text
        mark = self._fit("…")
        while text and cell_len(text) > room - cell_len(mark):
            text = text[1 + max(0, (cell_len(text) - room) // 2) :]
        return mark + text

    def can_show(self, text: str) -> bool:
        """True where the encoding has every sign of ``text``."""
        return _can_show(text, self._encoding)

    def render(self) -> str:
        """What was collected."""
        return self._buffer.getvalue()

    def _text(self, parts: tuple[str | tuple[str, str], ...], indent: int) -> Text:
        text = Text(" " * indent)
        for part in parts:
            content, style = (part, "") if isinstance(part, str) else part
            text.append(self._fit(visible(content)), style)
        return text

    def _fit(self, text: str) -> str:
        """``text`` in signs that the encoding has."""
        if self._plain:
            text = "".join(_PLAIN.get(sign, sign) for sign in text)
        return text if text.isascii() else text.encode(self._encoding, "backslashreplace").decode(self._encoding)

    def _put(self, text: Text) -> None:
        text.rstrip()
        self._console.print(text, soft_wrap=True)


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
