"""Tracebacks in logs: from lines without prefixes to exceptions with their frames."""

from __future__ import annotations

from memdoctor.sources.logs.tracebacks.error_json import from_json_text
from memdoctor.sources.logs.tracebacks.raised import Frame, RawException
from memdoctor.sources.logs.tracebacks.reader import TracebackReader
from memdoctor.sources.logs.tracebacks.shapes import bare_name, lone_exception, starts
from memdoctor.sources.logs.tracebacks.tail import from_tail

__all__ = ["Frame", "RawException", "TracebackReader", "bare_name", "from_json_text", "from_tail", "lone_exception", "starts"]
