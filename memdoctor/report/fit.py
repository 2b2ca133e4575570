"""Lines that fit a printed page: what is to paste is broken where it stays valid, lines of a log where they may be."""

from __future__ import annotations

import json
import re
from typing import Any

CODE_WIDTH = 84  # columns of a monospaced line on A4 at a size that can be read
MOST_LINES = 3  # of one long line of a log
_HANG = "  "
_OPEN_PLACE = re.compile(r"<\w[\w ]*>")  # one word: what a reader fills in
_YAML = re.compile(r"[\w-]+: [{\[]")  # a collection in braces goes on by itself


def paste(text: str, width: int = CODE_WIDTH) -> tuple[str, ...]:
    """The lines of a command or configuration, each at most ``width`` wide where it has a blank to break at.

    JSON is set anew; lines of YAML go on as they are, others after a backslash, which a shell and Python both understand.
    """
    lines: list[str] = []
    for line in text.strip("\n").split("\n"):
        lines += [line] if len(line) <= width else _json(line, width) or _continued(line, width)
    return tuple(lines)


def log(text: str, width: int = CODE_WIDTH, most: int = MOST_LINES) -> tuple[str, ...]:
    """A line of a log on at most ``most`` lines; what does not fit is left out behind …."""
    lines: list[str] = []
    rest = text.rstrip()
    while rest and len(lines) < most:
        lead = _HANG if lines else ""
        room = width - len(lead)
        if len(rest) > room:
            last = len(lines) == most - 1
            room -= 2 * last
            end = rest.rfind(" ", room // 2, room + 1)
            end = end if end > 0 else room
            line, rest = rest[:end].rstrip(), rest[end:].lstrip()
            line += " …" if last else ""
        else:
            line, rest = rest, ""
        lines.append(lead + line.rstrip())
    return tuple(lines)


def _json(text: str, width: int) -> list[str]:
    """The lines of a JSON object; empty where it is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return _laid_out(value, width, "").split("\n") if isinstance(value, dict) else []


def _laid_out(value: Any, width: int, indent: str) -> str:
    """``value`` on one line where it fits, else an entry a line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= width or not isinstance(value, (dict, list)) or not value:
        return flat
    inner = indent + _HANG
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {_laid_out(each, width - len(key) - 5, inner)}" for key, each in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{_laid_out(each, width - 1, inner)}" for each in value) + f"\n{indent}]"


def _continued(line: str, width: int) -> list[str]:
    end_mark = "" if _YAML.match(line) else " \\"
    code, mark, comment = line.partition("  # ")
    lines = [f"# {comment.strip()}"] if mark else []
    rest = code.rstrip() if mark else line
    while len(rest) > width:
        end = _last_break(rest, width - 2)
        if end <= 0:
            break
        lines.append(rest[:end].rstrip() + end_mark)
        rest = _HANG + rest[end:].lstrip()
    return [*lines, rest]


def _last_break(text: str, width: int) -> int:
    """Where the last blank outside of quotes before ``width`` stands; 0 where there is none."""
    found, quote = 0, ""
    text = _OPEN_PLACE.sub(lambda hit: hit[0].replace(" ", "_"), text)
    for place, sign in enumerate(text[: width + 1]):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == " " and text[:place].strip():
            found = place
    return found
