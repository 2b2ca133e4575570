"""A log line without its prefixes."""

from __future__ import annotations

from dataclasses import dataclass

from memdoctor.model import Stamp


@dataclass(slots=True)
class Line:
    """What is left of a line once its prefixes are taken off, and what they said.

    ``text`` is the message with its own indentation: always a suffix of the raw line. ``rank`` is global, ``local_rank`` within the node,
    ``pid`` that of the process which printed (for a launcher's lines the launcher). ``level`` is DEBUG, INFO, WARNING, ERROR or CRITICAL.
    ``stream`` tells apart the writers that share one file; lines of one traceback have one ``stream`` (see prefixes.py).
    """

    text: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    time: Stamp | None = None
    level: str | None = None
    logger: str | None = None
    stream: str = ""
