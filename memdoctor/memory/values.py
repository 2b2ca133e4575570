"""Reading single values out of dumped arguments: name → text, as logs print them."""

from __future__ import annotations

from collections.abc import Mapping

Values = Mapping[str, str]
MOST = 10**12  # no size of a model is larger; what is, is no size
PARTS = 4096  # layers, stages, ranks of a group: what is counted one by one
_NONE = ("", "None", "null")


def whole(values: Values, *names: str, most: int = MOST) -> int | None:
    """The first of ``names`` that is a whole number from 1 to ``most`` ("8", "8.0", "5e8")."""
    for name in names:
        text = str(values.get(name, "")).strip().strip('",')
        try:
            number = float(text)
        except ValueError:
            continue
        if number.is_integer() and 0 < number <= most:
            return int(number)
    return None


def flag(values: Values, *names: str) -> bool | None:
    """True or False where one of ``names`` says so."""
    for name in names:
        text = str(values.get(name, "")).strip().lower()
        if text in ("true", "false"):
            return text == "true"
    return None


def word(values: Values, name: str) -> str:
    """A text argument, "" where it is missing or None."""
    text = str(values.get(name, "")).strip().strip("\"'")
    return "" if text in _NONE else text
