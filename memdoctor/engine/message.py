"""The one-line message of a diagnosis: a template with the numbers of this case.

``{field}`` is a field with its unit, ``[...]`` a part that is left out where a field in it is unknown; ``[[``, ``]]``, ``{{``, ``}}`` are the
characters themselves. "Rank {ranks}" becomes "Ranks 3, 11", "{count} reports" becomes "1 report", and "{waiting} others" "1 other" where the number asks for it.
"""

from __future__ import annotations

from collections.abc import Callable

from memdoctor.lazy import lazy
from memdoctor.records import record

SPECIAL = ("rank", "ranks", "count", "host", "attempt", "gpus")
LONGEST = 200  # characters of one value: a message is one line
UNKNOWN = "unknown"

_PLURAL = lazy(r"^( [a-z]+[a-rt-z])s\b")
_COUNTS = ("count", "waiting")
_ONE_RANK = lazy(r"\b[Rr]ank $")

Show = Callable[[str], str | None]


@record
class Part:
    """Text and fields in turn (``fields`` are the odd entries of ``pieces``); ``optional`` parts stood in brackets."""

    pieces: tuple[str, ...]
    optional: bool

    @property
    def fields(self) -> tuple[str, ...]:
        return self.pieces[1::2]


def parse(template: str) -> tuple[Part, ...]:
    """The parts of a template. Raises ValueError with what is wrong."""
    parts: list[Part] = []
    pieces: list[str] = []
    text, optional, position = "", False, 0

    def close() -> None:
        nonlocal pieces, text
        if text or pieces:
            parts.append(Part((*pieces, text), optional))
        pieces, text = [], ""

    while position < len(template):
        char, two = template[position], template[position : position + 2]
        if two in ("[[", "]]", "{{", "}}"):
            text += char
            position += 2
            continue
        if char == "{":
            end = template.find("}", position)
            if end < 0:
                raise ValueError("a '{' is never closed")
            pieces += [text, template[position + 1 : end].strip()]
            text, position = "", end
            if not pieces[-1]:
                raise ValueError("'{}' names no field")
        elif char == "}":
            raise ValueError("a '}' without '{' (write '}}' for the character)")
        elif char == "[":
            if optional:
                raise ValueError("a '[' inside '[...]' (write '[[' for the character)")
            close()
            optional = True
        elif char == "]":
            if not optional:
                raise ValueError("a ']' without '[' (write ']]' for the character)")
            if not pieces:
                raise ValueError(f"'[{text}]' holds no field (write '[[' and ']]' for the characters)")
            close()
            optional = False
        else:
            text += char
        position += 1
    if optional:
        raise ValueError("a '[' is never closed (write '[[' for the character)")
    close()
    return tuple(parts)


def render(parts: tuple[Part, ...], show: Show) -> str:
    """The message. ``show`` gives a field's text, None where it is unknown."""
    result = ""
    for part in parts:
        values = [show(name) for name in part.fields]
        if part.optional and None in values:
            continue
        after = None
        for piece, name, value in zip(part.pieces[::2], (*part.fields, ""), (*values, ""), strict=True):
            result += _agree(piece, after, name, value) + (UNKNOWN if value is None else value)
            after = (name, value)
    return result


def _agree(text: str, after: tuple[str, str | None] | None, name: str, value: str | None) -> str:
    """``text`` with its nouns as the numbers beside it ask: "Ranks" before several, no plural s after a 1 that counts."""
    if after is not None and after[0] in _COUNTS and after[1] == "1":
        text = _PLURAL.sub(r"\1", text)
    if name == "ranks" and value is not None and not value.isdecimal() and _ONE_RANK.search(text):
        text = f"{text[:-1]}s "
    return text


def one_line(text: str) -> str:
    """A value as a message holds it: one line, not too long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
