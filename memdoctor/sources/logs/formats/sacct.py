"""``sacct``: the scheduler's word on how a job and its steps ended. Fixed-width tables (the default) and ``-P``/``-p``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.lazy import lazy

_STATES = {  # Slurm's job states, by their first letters (a narrow column cuts them: "CANCELLED+", "OUT_OF_ME+")
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "NODE_FAIL": "node_failure",
    "PREEMPTED": "preempted",
    "CANCELLED": "cancelled",
    "FAILED": "task_exit",
    "BOOT_FAIL": "node_failure",
}
_HEADER = lazy(r"^\s*(?:JobID|JobIDRaw)\b.*\bState\b", re.I)


class Sacct:
    def __init__(self) -> None:
        self._names: list[str] = []
        self._widths: list[tuple[int, int]] = []
        self._header = ""

    @staticmethod
    def is_it(sample: Sequence[str]) -> bool:
        """Its header comes first, but for the command itself; below a log, signals read its rows."""
        for line in sample[:3]:
            if "jobid" in line.lower() and _HEADER.match(line):
                return True
            if line.strip() and "sacct" not in line:
                return False
        return False

    def feed(self, text: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
        if _HEADER.match(text):
            self._header, self._widths = text, []
            self._names = [name.strip().lower() for name in text.split("|")] if "|" in text else []
            return ()
        if set(text.strip()) <= {"-", " "}:
            self._widths = [match.span() for match in re.finditer(r"-+", text)]
            self._names = [self._header[start:end].strip().lower() for start, end in self._widths]
            return ()
        cells = [cell.strip() for cell in text.split("|")] if not self._widths else [text[start:end].strip() for start, end in self._widths]
        row = dict(zip(self._names, cells, strict=False))
        state = row.get("state", "").split(" ")[0].rstrip("+")
        if not state:
            return ()
        code, _, signal = row.get("exitcode", "").partition(":")
        job = row.get("jobid") or row.get("jobidraw") or ""
        fields: dict[str, Any] = {
            "job": job,
            "state": row["state"],
            "exitcode": code or None,
            "signal": signal if signal not in ("", "0") else None,
        }
        fields = {key: value for key, value in fields.items() if value is not None}
        if row.get("nodelist"):
            fields["node"] = row["nodelist"]
        if len(state) >= 4 and "OUT_OF_MEMORY".startswith(state):
            return (("host.oom", {"name": "slurm", "victim": job}),)
        if state == "COMPLETED":
            return (("run.end", {"name": "completed", "by": "slurm"}),) if "." not in job else ()
        for known, name in _STATES.items():
            if len(state) >= 4 and known.startswith(state):
                return (("scheduler", {"name": name, **fields}),)
        return ()
