"""The error file of torch.distributed.elastic: an exception as JSON, its traceback as one text with escapes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memdoctor.lazy import lazy
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.tracebacks.raised import RawException
from memdoctor.sources.logs.tracebacks.reader import TracebackReader
from memdoctor.sources.logs.tracebacks.shapes import RICH_TEXT, starts

MAX_TEXT = 1_000_000
_STRING = r'"\s{0,20}:\s{0,20}"((?:[^"\\]|\\.)*)'
_CALLSTACK = lazy(r'"py_callstack' + _STRING, re.DOTALL)
_MESSAGE = lazy(r'"message' + _STRING, re.DOTALL)
_CLASS = lazy(r"^([A-Za-z_][\w.]{0,200})(?::\s*(.*))?$", re.DOTALL)


def from_json_text(text: str) -> list[RawException]:
    """The exceptions in an ``error.json``, or in a log line that quotes one; [] where there is none. All line numbers are 1.

    ``{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback …", "timestamp": "…"}}}``, also cut off, and the
    older form with a plain text as ``message``.
    """
    text = text[:MAX_TEXT]
    message, callstack = _parts(text)
    found = _read(callstack) if RICH_TEXT in callstack else []
    if any(raised.type for raised in found):
        return found
    match = _CLASS.match(message)
    if match is None:
        return found
    frames = found[-1].frames if found else ()
    return [
        *found[:-1],
        RawException(match[1], (match[2] or "").strip()[:8_192], frames, 1, 1, 1, bool(frames), bool(found[:-1]), not found[:-1]),
    ]


def _parts(text: str) -> tuple[str, str]:
    """Message and traceback."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return _quoted(_MESSAGE, text), _quoted(_CALLSTACK, text)
    outer = data.get("message") if isinstance(data, Mapping) else None
    if not isinstance(outer, Mapping):
        return outer if isinstance(outer, str) else "", ""
    extra = outer.get("extraInfo")
    callstack = extra.get("py_callstack") if isinstance(extra, Mapping) else ""
    message = outer.get("message")
    return message if isinstance(message, str) else "", callstack if isinstance(callstack, str) else ""


def _quoted(pattern: re.Pattern[str], whole: str) -> str:
    match = pattern.search(whole)
    if match is None:
        return ""
    text = match[1]
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text.replace("\\n", "\n").replace('\\"', '"')


def _read(callstack: str) -> list[RawException]:
    found: list[RawException] = []
    reader: TracebackReader | None = None
    for text in callstack.splitlines()[:2_000]:
        if reader is not None and not reader.feed(Line(text=text, pid=0), 1):
            found += reader.finish()
            reader = None
        if reader is None and starts(text):
            reader = TracebackReader()
            reader.feed(Line(text=text, pid=0), 1)
    return found + (reader.finish() if reader is not None else [])
