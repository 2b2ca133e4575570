"""Text of unknown origin, made fit to be shown: nothing in a log may steer a terminal or break a document."""

from __future__ import annotations

import json
import unicodedata

from memdoctor.lazy import lazy

# Signs without width that count as letters or marks: fillers, joiners, variation selectors.
_INVISIBLE = frozenset(
    map(
        chr,
        [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)],
    )
)
_SURROGATE_BYTE = lazy("[\udc80-\udcff]")
_SURROGATE = lazy("[\ud800-\udfff]")
# Signs that a terminal obeys or that cannot be seen; a JSON encoder itself escapes only those below U+0020.
_UNSEEN = lazy("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
_HARMLESS = ("L", "M", "N", "P", "S")  # letters, marks, numbers, punctuation, symbols


def visible(text: str) -> str:
    """``text`` on one line, without a sign that moves the cursor, turns the writing direction or cannot be seen: those
    show as escapes. Every kind of white space becomes a blank.
    """
    if text.isascii() and text.isprintable():
        return text
    if text.isprintable() and _INVISIBLE.isdisjoint(text):
        return text
    return "".join(_visible(sign) for sign in text)


def _visible(sign: str) -> str:
    if sign.isspace() and sign not in "\x1c\x1d\x1e\x1f\x85\u2028\u2029":
        return " "
    code, category = ord(sign), unicodedata.category(sign)
    if sign not in _INVISIBLE and category.startswith(_HARMLESS):
        return sign
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is no UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible_lines(text: str) -> list[str]:
    """The lines of ``text``, each as ``visible`` shows it but with its indentation."""
    return [visible(line.expandtabs(4)).rstrip() for line in text.strip("\n").split("\n")]


def valid(text: str) -> str:
    """``text`` as Unicode that every encoding takes: halves of a surrogate pair are joined, lone ones replaced."""
    if _SURROGATE.search(text) is None:
        return text
    text = _SURROGATE_BYTE.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unseen_escaped(text: str) -> str:
    """``text``, which is JSON, with the signs that ``visible`` would not show as escapes of JSON: it says the same, and harms no terminal."""
    return _UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], text)
