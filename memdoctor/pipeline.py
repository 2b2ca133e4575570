"""The one meeting place: collect → derive → judge → relate → Report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from memdoctor.derive.series import Rows
from memdoctor.derive.story import Story, after_files, tell
from memdoctor.engine.ignore import check_ignored, without_ignored
from memdoctor.engine.judge import judge
from memdoctor.engine.load import Folder, load
from memdoctor.engine.relate import relate
from memdoctor.errors import InputError
from memdoctor.model import Fact, InputFile, LogFacts, Report, Signal, Skip, Value
from memdoctor.records import record
from memdoctor.resources import rules_path
from memdoctor.shelf import Late
from memdoctor.sources.logs.collect import read_logs
from memdoctor.sources.logs.last_words import last_words
from memdoctor.sources.logs.quoting import with_lines
from memdoctor.sources.logs.workers import Workers

LOG_SOURCES = frozenset({"log"})
DUMP_SOURCES = frozenset({"dump"})
NAMED = 3  # unreadable inputs that an error tells


class Progress(Protocol):
    """Who wants to know how far reading is; bytes are bytes as stored."""

    def start(self, total: int | None) -> None: ...

    def advance(self, size: int) -> None: ...

    def stop(self) -> None: ...


def diagnose_logs(
    paths: Sequence[str],
    *,
    rules_dirs: Sequence[Folder] = (),
    ignore: Sequence[str] = (),
    progress: Progress | None = None,
    baseline: Sequence[str] = (),
    on_series: Callable[[Rows], None] | None = None,
    workers: int | None = None,
) -> Report:
    """Read logs and say what is wrong.

    ``paths``: files, folders, globs or "-". ``rules_dirs``: rule folders beside the built-in one. ``ignore``: rule or cause ids (globs)
    that are not to be told of, with what follows from them. ``baseline``: logs of a run that worked, to compare with. ``on_series`` is given
    all step lines. ``workers``: processes that read; None: as many as several big logs are worth. Raises InputError where nothing could be
    read, RuleError for a broken rule.
    """
    base = load([rules_path(), *rules_dirs])
    check_ignored(ignore, base)
    good = _good(baseline, base.signals)
    if progress is not None:
        progress.start(_stored_bytes(paths))
    try:
        on_bytes = progress.advance if progress is not None else None
        logs = read_logs(paths, base.signals, on_bytes, Workers(workers))
        dumps = _dumps(logs, on_bytes)
    finally:
        if progress is not None:
            progress.stop()
    story = tell(logs, dumps.facts)
    if on_series is not None:
        on_series(story.series)
    skips = (*logs.skips, *dumps.skips, *story.skips)
    judged = judge(
        base.rules,
        (*with_lines(story.facts, logs.files), *last_words(story.facts, logs.files)),
        counts=story.counts,
        versions=story.run.versions,
        frameworks=story.run.frameworks,
        skips=skips,
        sources=(LOG_SOURCES if logs.inputs else frozenset()) | (DUMP_SOURCES if dumps.inputs else frozenset()),
    )
    related = without_ignored(relate(judged.findings, run=story.run, timeline=story.timeline), ignore)
    return Report(
        command="logs",
        inputs=(*logs.inputs, *dumps.inputs),
        run=story.run,
        root_cause=related.root_cause,
        confidence=related.confidence,
        action=related.action,
        candidates=related.candidates,
        hosts_to_exclude=related.hosts_to_exclude,
        incidents=related.incidents,
        diagnoses=related.diagnoses,
        not_checked=judged.not_checked,
        skips=skips,
        series=Late(story.series.sample),
        baseline=_beside(good, story),
    )


def _good(paths: Sequence[str], signals: Sequence[Signal]) -> tuple[list[str], Story] | None:
    """The logs of a run that worked, and its story; None where none is named. Raises InputError where they cannot be read."""
    if not paths:
        return None
    try:
        logs = read_logs(paths, signals)
    except InputError as error:
        raise InputError(f"--baseline: {error}") from error
    return [file.path for file in logs.inputs], tell(logs)


def _beside(good: tuple[list[str], Story] | None, story: Story) -> Mapping[str, Value]:
    """This run beside a good one; empty where there is none."""
    if good is None:
        return {}
    from memdoctor.derive.baseline import compare

    return {"inputs": good[0], **compare(good[1], story)}


@record
class _DumpFacts:
    facts: tuple[Fact, ...] = ()
    inputs: tuple[InputFile, ...] = ()
    skips: tuple[Skip, ...] = ()


def _dumps(logs: LogFacts, on_bytes: Callable[[int], None] | None) -> _DumpFacts:
    """What the flight-recorder dumps beside the logs show. Raises InputError where there is nothing else and none can be read."""
    if not logs.dumps:
        return _DumpFacts()
    from memdoctor.derive.collectives.telling import dump_facts  # most logs come without dumps
    from memdoctor.sources.dumps.collect import read_dumps

    dumps = read_dumps(logs.dumps, on_bytes)
    if not logs.inputs and not dumps.ranks:
        raise InputError("; ".join(f"{skip.source}: {skip.reason}" for skip in [*dumps.skips, *logs.skips][:NAMED]))
    return _DumpFacts(dump_facts(dumps.ranks, after_files(logs.files)), dumps.inputs, dumps.skips)


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
