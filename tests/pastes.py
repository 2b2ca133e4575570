"""Texts to paste, as words: shell commands with their options, flags of a framework, keys of a ds_config, environment variables."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
VARIABLE = re.compile(r"(?<![\w.-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w*])")
FLAG = re.compile(r"(?<![\w-])--[a-zA-Z][\w-]*")
_REDIRECT = re.compile(r"(?<=\s)\d?(?:>>?|<)(?:&\d|\s*[^\s>|&;<)]+)(?=[\s|;)]|$)")
_CODE = re.compile(
    r"[\w.]+(?:, [\w.]+)*[(\[]|(?:with|assert|print|import|from|for \w+ in \w+\.\w+\(\):) |[\w.]+(?:, \w+)* [+]?= |@|[a-z]\w*=\S*[(\[\"'{]"
)
_FIELD = re.compile(r"<(\w[\w ]*)>")  # what the diagnosis or the reader fills in
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")
_ARITHMETIC = re.compile(r"\$\(\(.*?\)\)")


def commands(text: str) -> list[list[str]] | None:
    """The simple commands of a piece of shell, as words, those in $(...) as well; None where it is no shell: quotes that do not close."""
    text = _ARITHMETIC.sub("1", _FIELD.sub(lambda hit: hit[1] if hit[1] == "python" else "VALUE", text.replace("\\\n", " ")))
    lines = text.split("\n")
    found: list[list[str]] = []
    while lines:
        line = _REDIRECT.sub(" ", lines.pop(0).replace("#SBATCH", "sbatch"))
        while (inner := _SUBSTITUTION.search(line)) is not None:
            lines.append(inner[1])
            line = line.replace(inner[0], "$VALUE")
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();|&")
        lexer.whitespace_split, lexer.commenters = True, "#"
        found.append([])
        try:
            for word in lexer:
                if set(word) <= set("|&;()"):
                    found.append([])
                else:
                    found[-1].append(word)
        except ValueError:
            return None
    return [words for words in found if words]


def is_code(text: str) -> bool:
    """Is it Python, by how it begins?"""
    return _CODE.match(text) is not None


def paths(value: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted path and value of everything in a JSON object, sections before what is in them."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        path = f"{above}.{key}" if above else key
        yield path, inner
        yield from paths(inner, path)


def ds_config(text: str) -> dict[str, Any] | None:
    """A ds_config, whole or some of its keys; None where the text is none."""
    for form in (text, f"{{{text}}}"):
        try:
            found = json.loads(form)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return None
