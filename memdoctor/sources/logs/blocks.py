"""A fact that goes on over several lines of its stream: opened by a signal's ``match``, fed line by line, closed by ``until``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memdoctor.model import Signal

if TYPE_CHECKING:
    import regex

MAX_PAIRS = 4_000  # entries of `values`; Megatron-LM dumps about 900 arguments
RESERVED = ("rank", "host", "local_rank", "pid")  # groups that say whose fact it is
TIMEOUT = 1.0  # seconds that one pattern may take on one line


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> regex.Pattern[str]:
    """A signal's pattern, compiled once, when a line first needs it."""
    import regex  # a log in which no signal is looked for needs none

    return regex.compile(pattern, regex.V0)


def groups_of(pattern: str, text: str) -> dict[str, str] | None:
    """The named groups that ``pattern`` finds in ``text``; None where it does not match (or takes too long on hostile text)."""
    try:
        match = compiled(pattern).search(text, timeout=TIMEOUT)
    except TimeoutError:
        return None
    return None if match is None else {name: value for name, value in match.groupdict().items() if value is not None}


def read_line(signal: Signal, text: str) -> dict[str, Any] | None:
    """The groups of a line that ``signal`` matches, with those of its further patterns; None where it does not match."""
    groups = groups_of(signal.match, text)
    if groups is None:
        return None
    found: dict[str, Any] = dict(groups)
    for number, pattern in enumerate(signal.more):
        if signal.needs and signal.needs[number] and not any(need in text for need in signal.needs[number]):
            continue  # nor need it be compiled
        for name, value in (groups_of(pattern, text) or {}).items():
            found.setdefault(name, value)
    return found


class Block:
    """An open block of one stream. ``feed`` returns False when the block ended (with that line or before it)."""

    __slots__ = ("fields", "left", "signal", "values")

    def __init__(self, signal: Signal, fields: dict[str, Any]) -> None:
        self.signal = signal
        self.fields = fields
        self.values: dict[str, str] = {}
        self.left = signal.max_lines

    def feed(self, text: str) -> bool:
        self.left -= 1
        signal = self.signal
        for pattern in signal.rows:
            for name, value in (groups_of(pattern, text) or {}).items():
                self.fields.setdefault(name, value)
        if signal.until is not None:
            last = groups_of(signal.until, text)
            if last is not None:
                for name, value in last.items():
                    self.fields.setdefault(name, value)
                return False
        if signal.pairs is not None and len(self.values) < MAX_PAIRS:
            pair = groups_of(signal.pairs, text)
            if pair is not None and "key" in pair:
                self.values.setdefault(pair["key"], pair.get("value", ""))
        return self.left > 0

    def result(self) -> dict[str, Any]:
        if self.signal.pairs is not None:
            self.fields["values"] = dict(self.values)
        return self.fields
