"""Facts as `memdoctor check --save` writes them and `memdoctor check FILE` (sources/saved.py) and fixtures read them: one JSON object a host.

{"schema_version": 1, "memdoctor": "0.1.0", "host": "node-01", "probes": ["host", ...], "expect_gpus": null,
 "facts": [{"kind": "host.shm", "fields": {"size": 67108864}, "origin": {"source": "probe.host", "path": "/dev/shm", "excerpt": "..."}}],
 "skips": [{"source": "gpu", "reason": "...", "kinds": ["gpu.device"]}]}

Fields are typed by the catalogue; sizes are bytes, times seconds. Computed fields are left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memdoctor import __version__, catalog
from memdoctor.model import Fact, Skip
from memdoctor.report.text import valid

SCHEMA_VERSION = 1


def render(host: str, facts: Sequence[Fact], skips: Sequence[Skip], probes: Sequence[str], expect_gpus: int | None = None) -> str:
    """One line a fact, so that two files can be compared with diff."""
    head = {"schema_version": SCHEMA_VERSION, "memdoctor": __version__, "host": host, "probes": list(probes), "expect_gpus": expect_gpus}
    lines = [f' "{name}": {_dump(value)},' for name, value in head.items()]
    lines.append(_block("facts", [_fact(fact, host) for fact in facts]) + ",")
    lines.append(_block("skips", [{"source": skip.source, "reason": skip.reason, "kinds": list(skip.kinds)} for skip in skips]))
    return "{\n" + "\n".join(lines) + "\n}\n"


def _block(name: str, entries: Sequence[Any]) -> str:
    return f' "{name}": [' + ",".join(f"\n  {_dump(entry)}" for entry in entries) + "]"


def _fact(fact: Fact, host: str) -> dict[str, Any]:
    computed = catalog.KINDS[fact.kind].computed
    origin = {"source": fact.origin.source, "path": fact.origin.path, "line": fact.origin.line, "excerpt": fact.origin.excerpt}
    entry: dict[str, Any] = {"kind": fact.kind, "fields": {name: value for name, value in fact.fields.items() if name not in computed}}
    entry["origin"] = {name: value for name, value in origin.items() if value is not None}
    if fact.host != host:
        entry["host"] = fact.host
    return entry


def _dump(value: Any) -> str:
    return valid(json.dumps(value, ensure_ascii=True, default=list))
