"""The one-line message of a diagnosis: a template with the numbers of this case.

``{field}`` is a field with its unit, ``[...]`` a part that is left out where a field in it is unknown; ``[[``, ``]]``, ``{{``, ``}}`` are the
characters themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SPECIAL = ("rank", "ranks", "count", "host", "attempt", "gpus")
LONGEST = 200  # characters of one value: a message is one line
UNKNOWN = "unknown"

Show = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
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
        for piece, value in zip(part.pieces[::2], [*values, ""], strict=True):
            result += piece + (UNKNOWN if value is None else value)
    return result


def one_line(text: str) -> str:
    """A value as a message holds it: one line, not too long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
