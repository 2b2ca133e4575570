"""The shapes of a traceback's lines: heads, frames, connectors, exception lines."""

from __future__ import annotations

import re
from typing import Literal

from memdoctor.lazy import lazy
from memdoctor.records import record

HEAD_TEXT = "Traceback (most recent call last):"
RICH_TEXT = "Traceback (most recent call last)"
CRASH_TEXT = "Fatal Python error: "
MAX_BEFORE = 200  # characters before a head that may be a prefix

FRAME = lazy(r'^(?P<indent>[ \t>]{0,40})File "(?P<file>[^"]{1,2000})", line (?P<line>\d{1,9})(?:,? in (?P<function>\S.{0,500}))?$')
REPEATED = lazy(r"^\s*\[Previous line repeated \d+ more times?\]$")
MARKER = lazy(r"^[\s~^]+$")
CONNECTOR = lazy(
    r"^\s*(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception):$"
)
# Says that the traceback which follows is the cause of the exception above (torch.multiprocessing.spawn).
INNER_HINT = lazy(r"^\s*-- Process \d+ terminated with the following error:?$")
QUOTES = ('"""', "'''")  # around the text of a RemoteTraceback

_MARGIN = lazy(r"^\s*\|(?: (?P<text>.*))?$")  # of an exception group
_MEMBER = lazy(r"^\s*\+(?:-\+)?-+ (?:\d+|\.\.\.) -+$")
_GROUP_END = lazy(r"^\s*\+-+$")
_RANK = lazy(r"^\(RANK (\d{1,6})\)$")
_RICH_HEAD = lazy(r"^\s*(?P<before>\S+)\s?Traceback \(most recent call last\)\s?(?P<after>\S+)$")
_NOTEBOOK_HEAD = lazy(r"^(?P<type>[A-Za-z_][\w.]{0,200})\s{2,}Traceback \(most recent call last\)$")

_NAME = r"(?P<type>(?:[A-Za-z_]\w*\.|<locals>\.)*[A-Za-z_]\w*(?:\([\w.]{1,200}\))?)"
_RAISED = lazy(rf"^{_NAME}(?:$|:$|: (?P<message>.*)$)", re.DOTALL)
_RANK_TAG = lazy(r"^\[rank ?\d{1,6}\]:? ")
_CLASS = lazy(
    r"^(?!(?:Lustre|LNet)Error$)(?:Exception|OutOfResources|[A-Z_]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Expired|Failed|Failure))$"
)
# Classes with less telling names; believed with their module only, or between frames.
_DOTTED_CLASS = lazy(r"^(?:[A-Z]\w*(?:Timeout|Cancelled|Aborted|Quit)|Timeout|Error|Empty|Full|Again|error|timeout|gaierror|herror)$")
_NOT_A_CLASS = frozenset("Killed Terminated Aborted Note Hint Warning Error Traceback Epoch Step Loss Loading Saving Training Done".split())
_HUMPS = lazy(r"^_*[A-Z]+[a-z0-9]+[A-Z]\w*$")


@record
class Head:
    """A line that opens a plain traceback. ``prefix``: what stands before it and may stand before each of its lines."""

    prefix: str
    indent: int
    original: bool
    group: bool
    rank: int | None


def read_head(text: str) -> Head | None:
    at = text.find(HEAD_TEXT)
    if not 0 <= at <= MAX_BEFORE:
        return None
    after = text[at + len(HEAD_TEXT) :].strip()
    rank = _RANK.match(after) if after else None
    if after and rank is None:
        return None
    before = text[:at]
    original, group = before.endswith("Original "), before.endswith("Exception Group ")
    before = before.removesuffix("Original ").removesuffix("Exception Group ")
    bare = before.strip()
    if group or bare in ("", "+", "|") or re.fullmatch(r"traceback\s*:", bare):  # the last: torchrun's box
        return Head("", len(before) - len(before.lstrip()), original, group, int(rank[1]) if rank else None)
    return Head(before, 0, original, group, int(rank[1]) if rank else None)


def read_margin(text: str) -> tuple[Literal["inside", "member", "end", "outside"], str]:
    """What a line is to an exception group, and the line without the group's margin."""
    margin = _MARGIN.match(text)
    if margin is not None:
        return "inside", margin["text"] or ""
    if _MEMBER.match(text):
        return "member", ""
    return ("end" if _GROUP_END.match(text) else "outside"), ""


def is_rich_head(text: str) -> bool:
    """``╭─── Traceback (most recent call last) ───╮``, also where the box is drawn in ASCII or its characters were lost."""
    match = _RICH_HEAD.match(text) if RICH_TEXT in text and len(text) < 1_000 else None
    return match is not None and all(
        len(side) >= 3 and not any(c.isascii() and (c.isalnum() or c in "'\"") for c in side) for side in match.groups()
    )


def notebook_type(text: str) -> str | None:
    """The class that an IPython head names: ``ValueError      Traceback (most recent call last)``."""
    match = _NOTEBOOK_HEAD.match(text) if RICH_TEXT in text else None
    return match["type"] if match is not None else None


def starts(text: str) -> bool:
    """Whether a line without its prefixes opens a traceback of any layout; cheap on other lines."""
    if RICH_TEXT in text:
        text = text.rstrip()
        return read_head(text) is not None or is_rich_head(text) or notebook_type(text) is not None
    return text.startswith(CRASH_TEXT)


def bare_name(type_: str) -> str:
    """The class without module and arguments: ``ray.exceptions.RayTaskError(ValueError)`` is RayTaskError."""
    return type_.partition("(")[0].rpartition(".")[2]


def lone_exception(text: str) -> tuple[str, str] | None:
    """Class and message of an exception line without its traceback; None for warnings, log levels and prose.

    The class is as printed: with its module where the line has it.
    """
    if len(text) - len(text.lstrip()) > 2:
        return None
    text = text.strip()
    tag = _RANK_TAG.match(text)
    match = _RAISED.match(text[tag.end() :] if tag else text)
    if match is None:
        return None
    type_, name = match["type"], bare_name(match["type"])
    if _CLASS.match(name) or ("." in type_ and _DOTTED_CLASS.match(name)):
        return type_, (match["message"] or "").strip()
    return None


def raised_here(text: str, source: str) -> tuple[str, str] | None:
    """Class and message of the line after the last frame, where any class may stand. ``source`` is the raising line."""
    found = lone_exception(text)
    if found is not None:
        return found
    match = _RAISED.match(text.strip())
    if match is None:
        return None
    type_, name = match["type"], bare_name(match["type"])
    raised = re.match(r"raise\s+([\w.]+)", source)
    named = raised is not None and bare_name(raised[1]) == name
    dotted = "." in type_ and match["message"] is not None and name.lstrip("_")[:1].isupper()
    if not named and (name in _NOT_A_CLASS or not (dotted or _HUMPS.match(name))):
        return None
    return type_, (match["message"] or "").strip()
