"""A job that hangs now: what is seen of it is written down, read like any log, and removed again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from memdoctor.errors import InputError
from memdoctor.model import Report, Skip
from memdoctor.sources.live.collect import collect

SHOWN = "live"  # what a report calls the folder that is gone by then


def diagnose_live(
    targets: Sequence[str], paths: Sequence[str], diagnose: Callable[[Sequence[str]], Report], tell: Callable[[str], None]
) -> Report:
    """Look at the processes that ``targets`` name and say, by what they do and by the logs at ``paths``, what is wrong.

    ``diagnose`` is pipeline.diagnose_logs with its options; ``tell`` hears of each process that has no Python stack. Raises InputError where a
    target is no process of one's own, and where nothing but such processes could be looked at and nothing is wrong with them.
    """
    with tempfile.TemporaryDirectory(prefix="memdoctor-live-") as folder:
        seen = collect(targets, Path(folder))
        report = diagnose([*paths, folder])
    if seen.nothing and not report.diagnoses and all(Path(folder) in Path(file.path).parents for file in report.inputs):
        raise InputError("; ".join(seen.strangers))
    for line in seen.strangers:
        tell(line)
    return _renamed(report, folder, skips=seen.skips)


def _renamed(report: Report, folder: str, *, skips: tuple[Skip, ...]) -> Report:
    def name(path: str | None) -> str | None:
        return path if path is None else path.replace(folder, SHOWN)

    return replace(
        report,
        inputs=tuple(replace(file, path=str(name(file.path))) for file in report.inputs),
        diagnoses=tuple(
            replace(
                diagnosis, evidence=tuple(replace(evidence, path=name(evidence.path)) for evidence in diagnosis.evidence)
            )
            for diagnosis in report.diagnoses
        ),
        skips=(*(replace(skip, source=str(name(skip.source))) for skip in report.skips), *skips),
    )  # fmt: skip
