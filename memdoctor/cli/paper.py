"""What a report is drawn on: the signs and colours that stdout has."""

from __future__ import annotations

import io
import os
import sys


class Paper(io.StringIO):
    """Text in memory that says which encoding it is meant for, so that a renderer draws only what the terminal can show."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


WIDTH = 100  # columns where there is no terminal


def columns() -> int:
    """How wide stdout is."""
    if not (sys.stdout.isatty() or os.environ.get("COLUMNS")):
        return WIDTH
    import shutil  # brings all its archive formats along

    return shutil.get_terminal_size((WIDTH, 24)).columns


def wants_color() -> bool:
    """True where stdout is a terminal that shows colour and nobody said NO_COLOR (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()
