"""A log line without its prefixes."""

from __future__ import annotations

from memdoctor.model import Stamp


class Line:
    """What is left of a line once its prefixes are taken off, and what they said.

    ``text`` is the message with its own indentation: always a suffix of the raw line. ``rank`` is global, ``local_rank`` within the node,
    ``pid`` that of the process which printed (for a launcher's lines the launcher). ``level`` is DEBUG, INFO, WARNING, ERROR or CRITICAL.
    ``stream`` tells apart the writers that share one file; lines of one traceback have one ``stream`` (see prefixes.py).
    """

    __slots__ = ("host", "level", "local_rank", "logger", "pid", "rank", "stream", "text", "time")

    def __init__(
        self,
        text: str,
        rank: int | None = None,
        local_rank: int | None = None,
        host: str | None = None,
        pid: int | None = None,
        time: Stamp | None = None,
        level: str | None = None,
        logger: str | None = None,
        stream: str = "",
    ) -> None:
        self.text, self.stream = text, stream
        self.rank, self.local_rank, self.host, self.pid = rank, local_rank, host, pid
        self.time, self.level, self.logger = time, level, logger
