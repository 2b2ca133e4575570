"""Cuts a line on which two writers met without a line end between them.

Ranks share one standard output: where one has printed its text but not yet its line end, another's line may begin. Such a line is cut before
the prefix that stands in its middle. What tells glue from a prefix that a sentence quotes or a piece of code that looks like one: glue
follows the last character of a message directly, with no space, quote or open bracket before it; or the prefix is so long and exact (date,
file and line, or the head of a traceback behind it) that nobody writes it into a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from memdoctor.lazy import lazy
from memdoctor.sources.logs.peeling import prefix_end
from memdoctor.sources.logs.stamps import FRACTION, ISO

MOST = 64  # pieces of one line

_UNQUOTED = r"(?<![\"'`(\[{<=])"
_JOINED = r"(?<![\s\"'`(\[{<=,])"
_CLOCK = r"\d\d:\d\d:\d\d\.\d{6,9}"
_C10 = rf"\[[VDIWECF]\d{{3,4}} {_CLOCK} (?:\d{{1,20}} )?[^\s\]]{{1,200}}:\d+\]"
_TORCH = rf"[VDIWECF]\d{{4}} {_CLOCK} +\d{{1,20}} [^\s\]]{{1,200}}\.py:\d+\]"
_DATED = rf"\[\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d{FRACTION}\]"
_LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_RAISED = r"(?:Traceback|(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Warning))\b"

# Texts one of which a line must hold behind its first character, and the prefix that may then be glued into it.
_Glue = tuple[tuple[str, ...], str]
# The tag of a rank occurs in code as well (``buffers[rank0]``): not glue behind an open bracket, or before an assignment.
_IN_CODE: _Glue = (("[rank",), rf"{_JOINED}\[rank\d{{1,7}}\](?::(?=\[| (?![\w.\[\], ]{{1,60}} = )|\Z)| (?={_RAISED}))")
# What only a traceback holds: behind any character but a space, where nothing shows that it is quoted (see _quoted).
_OF_TRACEBACK: _Glue = (("[rank",), rf"(?<!\s)\[rank\d{{1,7}}\]: (?={_RAISED}(?:: |\Z)|  File \"|    \S)")
_BRACKETED: tuple[_Glue, ...] = (
    (("[rank",), rf"{_UNQUOTED}\[rank\d{{1,7}}\]:(?: Traceback \(most recent call last\)|{_C10}|{_TORCH})"),
    _IN_CODE,
    _OF_TRACEBACK,
    (("[default",), rf"{_JOINED}\[default\d{{1,5}}\]:|{_UNQUOTED}\[default\d{{1,5}}\]:\[rank\d{{1,7}}\]:"),
    ((">:",), rf"{_JOINED}\[\d{{1,9}},\d{{1,7}}\]<std(?:out|err)>:"),
    ((".cpp:", ".hpp:", ".h:", ".cc:", ".cu:", ".cuh:"), rf"{_UNQUOTED}{_C10}|{_JOINED}\[[IWEF] [\w./-]{{1,200}}\.(?:cpp|hpp|h|cc|cuh?):\d+\] "),
    (("[20",), rf"{_UNQUOTED}{_DATED} ?\[{_LEVEL}\] ?\[|{_UNQUOTED} {{0,2}}{_DATED} (?:iteration +\d+/|saving checkpoint|successfully saved|scheduled an)"),
    (("[Rank ",), rf"{_JOINED}\[Rank \d{{1,7}}\] (?:time \(ms\) \||\((?:after|before) .{{1,60}}?\) memory)"),
)  # fmt: skip
_OTHERS: tuple[_Glue, ...] = (
    ((".py:",), rf"{_UNQUOTED}{_TORCH}"),
    ((" NCCL ",), rf"{_UNQUOTED}(?:\[{ISO}\] )?(?<![\w.-])[A-Za-z0-9][\w.-]{{0,254}}:\d{{1,9}}:\d{{1,9}} \[\d{{1,4}}\] (?:[^\s:]{{1,200}}:\d+ (?:\(\w{{0,120}}\) )?)?NCCL (?:INFO|WARN) "),
    ((":megatron.", ":torch.", ":deepspeed."), rf"{_JOINED}(?<![A-Z_]){_LEVEL}:(?:megatron|torch|deepspeed)\.[\w.]{{1,120}}:"),
    (("slurmstepd: error: ",), rf"{_JOINED}slurmstepd: error: "),
    (("srun: ",), rf"{_JOINED}srun: (?:error: |Job step aborted|Force Terminated|forcing job termination)"),
)  # fmt: skip
_QUOTES = "\"'`"
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_ALL = (*_BRACKETED, *_OTHERS)
# An ambiguous prefix (see prefix_table.AMBIGUOUS) with others behind it: those are stacked, not glued.
_PREFIX_LIKE = lazy(
    r"\s*(?:\d{1,6}[:|] ?|\[\d{1,6}\] |[A-Za-z0-9][\w.-]*: |\[[A-Za-z_]+\d+\]: ?|[a-z0-9][a-z0-9.-]* (?:› )?[a-z0-9-]+ )", re.A
)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.A)


def split_glued(raw: str, end_of: Callable[[str], int] = prefix_end) -> list[str]:
    """The lines that ``raw`` was glued of: mostly ``[raw]``. Joined they are ``raw``. ``end_of`` a line tells where its message begins."""
    message = -1  # where the message of the first piece begins; found out when it matters
    places: dict[int, _Glue] = {}
    for glue in _ALL if raw.find("[", 1) > 0 else _OTHERS:
        gates, pattern = glue
        for gate in gates:
            if raw.find(gate, 1 if message < 0 else message + 1) < 0:
                continue
            if message < 0:
                message = _message(raw, end_of)
            for match in _compiled(pattern).finditer(raw, message + 1):
                places.setdefault(match.start(), glue)
            break
    pieces: list[str] = []
    start = 0
    for place in sorted(places):
        before, glue = raw[message:place], places[place]
        if not before.strip() or (glue is _IN_CODE and before.count("[") > before.count("]")):
            continue
        if glue is _OF_TRACEBACK and _quoted(before, raw[place:]):
            continue
        pieces.append(raw[start:place])
        start, message = place, prefix_end(raw, place)
        if len(pieces) == MOST - 1:
            break
    pieces.append(raw[start:])
    return pieces


def _quoted(before: str, after: str) -> bool:
    """Whether a quote or bracket that ``before`` ends with holds what comes ``after``: it is open, and closed later."""
    last = before[-1]
    if last in _QUOTES:
        return len(_compiled(rf"(?<!\w){last}|{last}(?!\w)").findall(before)) % 2 == 1 and last in after
    if last not in _CLOSING:
        return False
    depth = 1
    for sign in after:
        depth += (sign == last) - (sign == _CLOSING[last])
        if not depth:
            return True
    return False


def _message(raw: str, end_of: Callable[[str], int]) -> int:
    """Where the message of ``raw`` begins, also behind a prefix that only a sample could vouch for."""
    end = end_of(raw)
    like = _PREFIX_LIKE.match(raw, end)
    if like is not None:
        further = prefix_end(raw, like.end())
        if further > like.end():
            return further
    return end
