"""``memdoctor rules show``: a rule, the rules of a cause, or a signal as it is written."""

from __future__ import annotations

from pathlib import Path

import click

from memdoctor.cli import output


@click.command("show")
@click.argument("id_", metavar="ID")
@click.option(
    "--rules", "folders", metavar="DIR", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with further rules; may be repeated.",
)  # fmt: skip
def show(id_: str, folders: tuple[Path, ...]) -> int:
    """Print a rule (oom/logits) as it is written, and which signals its facts come from; or all rules of a cause (oom.logits), or a signal (cuda_oom.torch)."""
    from memdoctor.handbook.book import Book
    from memdoctor.handbook.source import source
    from memdoctor.report.text import visible_lines

    text = source(Book(folders), id_)
    output.use_utf8()
    output.write(None, "".join(f"{line}\n" for line in visible_lines(text)))
    return 0
