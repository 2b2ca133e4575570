"""How the libraries read a value: numbers as C, C++ and Python read them, words, and lists of words.

Each reader returns what the library takes the value for, and a verdict where that is not what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from memdoctor import units
from memdoctor.derive.variables.names import suggest
from memdoctor.derive.variables.table import Verdict

Read = tuple[str | None, Verdict | None]  # what it is read as (None: nothing), what is wrong
Entry = Mapping[str, Any]
_C_NUMBER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_SUFFIX = {"k": 1, "m": 2, "g": 3, "t": 4}
_TRUE, _FALSE = ("y", "yes", "1", "t", "true"), ("n", "no", "0", "f", "false")
_YES, _NO = (*_TRUE, "on", "enable", "enabled"), (*_FALSE, "off", "disable", "disabled")


def c_number(name: str, value: str, entry: Entry) -> Read:
    """As strtoll(value, NULL, 0) reads it: base by prefix, what follows is cut off, no number is 0."""
    match = _C_NUMBER.match(value)
    if match is None and _number_for(value, entry) == "0":  # a word for "off" does what it says
        return "0", limits(name, value, 0, entry)
    if match is None:
        return "0", Verdict(name, value, "read_otherwise", _words_as_zero(value), read="0", meant=_number_for(value, entry))
    number = int(match[2], 16 if match[2][1:2] in ("x", "X") else 8 if match[2].startswith("0") and len(match[2]) > 1 else 10)
    number = -number if match[1] == "-" else number
    rest = value[match.end() :].strip()
    if rest:
        text = f"reading stops at {rest[0]!r}" + (f"; the unit is {entry['unit']}, without a suffix" if entry.get("unit") else "")
        return str(number), Verdict(name, value, "read_otherwise", text, read=str(number), meant=_number_for(value, entry))
    if len(match[2]) > 1 and match[2].startswith("0") and match[2][1] not in "xX" and number > 7:
        return str(number), Verdict(name, value, "read_otherwise", "a leading 0 means octal", read=str(number), meant=match[2].lstrip("0"))
    return str(number), limits(name, value, number, entry)


def flag(name: str, value: str, entry: Entry) -> Read:
    """A number of which only some values mean something."""
    read, verdict = c_number(name, value, entry)
    if verdict is None and read is not None and int(read) not in entry["values"]:
        verdict = Verdict(name, value, "ignored", f"only {_list(entry['values'])} mean something", read=read)
    return read, verdict


def cpp_number(name: str, value: str, entry: Entry) -> Read:
    """As std::stoi reads it: text that begins with no number is an error, what follows a number is cut off."""
    match = re.match(r"\s*[+-]?\d+", value)
    if match is None:
        return None, Verdict(name, value, "refused", "torch wants a whole number and ends with an error", meant=_number_for(value, entry))
    if value[match.end() :].strip():
        text = f"reading stops at {value[match.end() :].strip()[0]!r}"
        return str(int(match[0])), Verdict(name, value, "read_otherwise", text, read=str(int(match[0])))
    return str(int(match[0])), limits(name, value, int(match[0]), entry)


def python_number(name: str, value: str, entry: Entry) -> Read:
    """As int() reads it."""
    try:
        number = int(value)
    except ValueError:
        return None, Verdict(name, value, "refused", "a whole number is wanted: int() raises", meant=_number_for(value, entry))
    return str(number), limits(name, value, number, entry)


def boolean(name: str, value: str, entry: Entry) -> Read:
    """As c10 reads a truth value."""
    low = value.lower()
    if low in _TRUE:
        return "1", None
    if low in _FALSE:
        return "0", None
    meant = "1" if low in _YES else "0" if low in _NO else None
    return None, Verdict(
        name, value, "refused", "torch takes 1, y, yes, t, true or 0, n, no, f, false, and ends with an error", meant=meant
    )


def truthy(name: str, value: str, entry: Entry) -> Read:
    """Some words are true, all others silently false."""
    if value.upper() in entry["true_words"]:
        return "1", None
    if value.upper() in entry["false_words"]:
        return "0", None
    meant = "1" if value.lower() in _YES else None
    return "0", Verdict(name, value, "read_otherwise", f"only {_list(entry['true_words'])} are true", read="false", meant=meant)


def word(name: str, value: str, entry: Entry) -> Read:
    """One of a list of words."""
    exact = entry.get("case") == "exact"
    for allowed in entry["values"]:
        if value == allowed or (not exact and value.upper() == str(allowed).upper()):
            return str(allowed), None
    text = f"it takes {_list(entry['values'])}" + (" in exactly these letters" if exact else "")
    return None, Verdict(name, value, entry.get("else", "ignored"), text, meant=suggest(value, entry["values"]))


def words(name: str, value: str, entry: Entry) -> Read:
    """A list of words, all of them negated by a leading ``^``."""
    negated = value.startswith("^")
    parts = [part for part in value.removeprefix("^").split(",") if part]
    for part in parts:
        if part.upper() not in [str(allowed).upper() for allowed in entry["values"]]:
            text = f"{part!r} is none of {_list(entry['values'])}"
            return None, Verdict(name, value, entry.get("else", "ignored"), text, meant=suggest(part, entry["values"]))
    return ("^" if negated else "") + ",".join(part.upper() for part in parts), None


def choices(name: str, value: str, entry: Entry) -> Read:
    """``words``, or since NCCL 2.24 ``words;function:words``."""
    read = []
    for part in value.split(";"):
        function, colon, listed = part.rpartition(":")
        if colon and function.lower() not in entry["functions"]:
            text = f"{function!r} is no function of NCCL"
            return None, Verdict(name, value, entry.get("else", "ignored"), text, meant=suggest(function, entry["functions"]))
        one, verdict = words(name, listed, entry)
        if verdict is not None:
            return None, Verdict(name, value, verdict.problem, verdict.text, meant=verdict.meant)
        read.append(one or "")
    return ";".join(read), None


def level(name: str, value: str, entry: Entry) -> Read:
    """A distance by name, in capitals, or a number of the old kind (0 is LOC)."""
    if value in entry["values"]:
        return value, None
    if value[:1].isdigit():
        return "LOC" if value[:1] == "0" else value, None
    meant = suggest(value, entry["values"])
    return None, Verdict(name, value, "ignored", f"it takes {_list(entry['values'])}, in capitals", meant=meant)


def threads(name: str, value: str, entry: Entry) -> Read:
    """Whole numbers above 0, one for each level of nesting."""
    parts = value.strip().split(",")
    if all(part.strip().isdigit() and int(part) > 0 for part in parts):
        return str(int(parts[0])), None
    return None, Verdict(name, value, "ignored", "it takes whole numbers above 0")


def port(name: str, value: str, entry: Entry) -> Read:
    if value.strip().isdigit() and 0 < int(value) < 65536:
        return str(int(value)), None
    return None, Verdict(name, value, "refused", "a port is a number from 1 to 65535")


def pattern(name: str, value: str, entry: Entry) -> Read:
    if re.fullmatch(entry["pattern"], value):
        return value, None
    return None, Verdict(name, value, entry.get("else", "ignored"), "it has another form", meant=entry.get("meant"))


def text(name: str, value: str, entry: Entry) -> Read:
    return value, None


def limits(name: str, value: str, number: int, entry: Entry) -> Verdict | None:
    low, high = entry.get("min"), entry.get("max")
    if entry.get("type") in ("number", "strict") and "values" in entry and number not in entry["values"]:
        return Verdict(name, value, "ignored", f"only {_list(entry['values'])} mean something", read=str(number))
    if (low is not None and number < low) or (high is not None and number > high):
        reach = f"{low} to {high}" if low is not None and high is not None else f"{low} and more" if low is not None else f"up to {high}"
        unit = f" {entry['unit']}" if entry.get("unit") else ""
        return Verdict(name, value, "ignored", f"it is outside {reach}{unit}", read=str(number))
    if entry.get("multiple") and number % entry["multiple"]:
        near = max(low or 0, number // entry["multiple"] * entry["multiple"])
        return Verdict(name, value, "ignored", f"it is no multiple of {entry['multiple']}", read=str(number), meant=str(near))
    return None


def _words_as_zero(value: str) -> str:
    if value[:1] in "\"'":
        return "the quotes are part of the value, and text that begins with no number counts as 0"
    return "text that begins with no number counts as 0"


def _number_for(value: str, entry: Entry) -> str | None:
    """The number that was probably meant by a word or a size."""
    bare = value.strip().strip("\"'")
    low = bare.lower()
    if re.fullmatch(r"[+-]?\d+", bare):
        return bare
    if low in _YES:
        return "1"
    if low in _NO:
        return "0"
    match = re.fullmatch(r"(\d+)([kmgt])(i?b)?", low)
    if match is not None and entry.get("unit") == "bytes":
        return str(units.parse_size(f"{match[1]}{match[2]}"))
    return None


def _list(values: Any) -> str:
    texts = [str(value) for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


READERS: Mapping[str, Callable[[str, str, Entry], Read]] = {
    "int": c_number, "flag": flag, "number": cpp_number, "strict": python_number, "bool": boolean, "truthy": truthy, "word": word, "words": words,
    "choices": choices, "level": level, "threads": threads, "port": port, "pattern": pattern, "text": text, "path": text,
}  # fmt: skip
