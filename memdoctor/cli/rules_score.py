"""``memdoctor rules score``: how often memdoctor is right on labelled logs."""

from __future__ import annotations

from pathlib import Path

import click

from memdoctor.cli import output
from memdoctor.cli.formats import FORMATS, only

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("score")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True, callback=only("text", "json"))
@click.option("--output", "path", metavar="FILE", help="Write to FILE instead of stdout.")
@click.option("--rules", "folders", metavar="DIR", multiple=True, type=_FOLDER, help="A folder with further rules; may be repeated.")
def score(folder: Path, format_: str, path: str | None, folders: tuple[Path, ...]) -> int:
    """Precision and recall, by cause and by rule, over the labelled logs in DIR. Rules of DIR's own, in DIR/rules, are used.

    A label is a case.yaml beside the logs. It says at least `root_cause:` (an id, null where nothing is wrong, or a list of ids that are
    all right); with `diagnoses:` the rules are scored, too. Without `input:` it is about all the other files in its folder.
    Where a log cannot be read, the others are scored, and the exit code is 2.
    """
    output.check(path)

    from memdoctor.fixtures import score_report as report
    from memdoctor.fixtures.score import score as compute

    scores = compute(folder, folders)
    if format_ == "json":
        output.use_utf8()
    output.write(path, report.as_json(scores) if format_ == "json" else report.as_text(scores))
    return 2 if scores.unread else 0
