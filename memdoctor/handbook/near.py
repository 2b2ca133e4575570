"""What a word that is not known may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

MOST = 8


def near(word: str, known: Sequence[str]) -> str:
    """``; did you mean 'x' or 'y'?``, ``; there are x, y`` for a part of a name, or an empty text. ``word`` itself is never suggested."""
    known = [each for each in known if each != word]
    asked = word.lower().replace("/", ".").strip(".")
    dotted = {each: each.replace("/", ".") for each in known}
    same = [each for each in known if dotted[each] == asked]
    close = same or difflib.get_close_matches(asked, known, n=3, cutoff=0.75)
    part = [each for each in known if asked and dotted[each].startswith(f"{asked}.")] or [
        each for each in known if asked and asked in dotted[each].split(".")
    ]
    if part and not same:
        more = f" and {len(part) - MOST} more" if len(part) > MOST else ""
        return f"; there are {', '.join(part[:MOST])}{more}"
    close = close or difflib.get_close_matches(asked, known, n=3, cutoff=0.6)
    if close:
        meant = " or ".join(f"'{each}'" for each in close)
        return f"; did you mean {meant}?"
    return ""
