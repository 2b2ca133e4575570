"""The one meeting place: collect → derive → judge → relate → Report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from memdoctor.derive.story import tell
from memdoctor.engine.judge import judge
from memdoctor.engine.load import load
from memdoctor.engine.relate import relate
from memdoctor.errors import InputError
from memdoctor.model import Report
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs

LOG_SOURCES = frozenset({"log"})


class Progress(Protocol):
    """Who wants to know how far reading is; bytes are bytes as stored."""

    def start(self, total: int | None) -> None: ...

    def advance(self, size: int) -> None: ...

    def stop(self) -> None: ...


def diagnose_logs(
    paths: Sequence[str], *, rules_dirs: Sequence[Path] = (), ignore: Sequence[str] = (), progress: Progress | None = None
) -> Report:
    """Read logs and say what is wrong.

    ``paths``: files, folders, globs or "-". ``rules_dirs``: rule folders beside the built-in one. ``ignore``: rule or cause ids (globs)
    that are not to be judged. Raises InputError where nothing could be read, RuleError for a broken rule.
    """
    base = load([rules_dir(), *rules_dirs])
    if progress is not None:
        progress.start(_stored_bytes(paths))
    try:
        logs = read_logs(paths, base.signals, progress.advance if progress is not None else None)
    finally:
        if progress is not None:
            progress.stop()
    story = tell(logs)
    rules = tuple(rule for rule in base.rules if not any(fnmatchcase(rule.id, glob) or fnmatchcase(rule.cause, glob) for glob in ignore))
    judged = judge(
        rules,
        story.facts,
        counts=story.counts,
        versions=story.run.versions,
        frameworks=story.run.frameworks,
        skips=logs.skips,
        sources=LOG_SOURCES,
    )
    related = relate(judged.findings, run=story.run, timeline=story.timeline)
    return Report(
        command="logs",
        inputs=logs.inputs,
        run=story.run,
        root_cause=related.root_cause,
        confidence=related.confidence,
        action=related.action,
        candidates=related.candidates,
        hosts_to_exclude=related.hosts_to_exclude,
        incidents=related.incidents,
        diagnoses=related.diagnoses,
        not_checked=judged.not_checked,
        skips=logs.skips,
    )


def _stored_bytes(paths: Sequence[str]) -> int | None:
    """How much there is to read, where that is cheap to know: the sum over plain files; None with a pipe, a folder or a glob."""
    total = 0
    for path in paths:
        try:
            if not os.path.isfile(path):
                return None
            total += os.path.getsize(path)
        except (OSError, ValueError):
            return None
    return total


__all__ = ["InputError", "Progress", "diagnose_logs"]
