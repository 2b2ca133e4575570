"""``memdoctor guide``: the troubleshooting guide, made from the rules."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memdoctor.cli import output
from memdoctor.cli.formats import FORMATS, only
from memdoctor.errors import InputError


@click.command(short_help="Print the troubleshooting guide.")
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="markdown", show_default=True, callback=only("markdown", "html"),
    help="html is one page that prints on A4.",
)  # fmt: skip
@click.option("--output", "path", metavar="FILE", help="Write to FILE instead of stdout.")
@click.option("--check", "checked", metavar="FILE", help="Write nothing; exit 1 where FILE is not what would be written.")
@click.option(
    "--rules", "folders", metavar="DIR", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with further rules; may be repeated.",
)  # fmt: skip
def guide(format_: str, path: str | None, checked: str | None, folders: tuple[Path, ...]) -> int:
    """Print the troubleshooting guide: from what the log says to the cause, why, and what to do, in the order in which a person asks."""
    output.check(path)
    if checked is not None and path is not None:
        raise InputError("--check and --output exclude each other")

    from memdoctor.handbook.book import Book
    from memdoctor.handbook.plan import read_guide
    from memdoctor.report import blocks_html, blocks_markdown
    from memdoctor.report.guide import document

    made = read_guide(Book(folders))
    blocks = document(made)
    text = blocks_html.render(blocks, made.plan.title) if format_ == "html" else blocks_markdown.render(blocks)
    if checked is not None:
        return _stale(checked, text, format_)
    output.use_utf8()
    output.write(path, text)
    return 0


def _stale(path: str, text: str, format_: str) -> int:
    try:
        there = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--check {path}: cannot be read: {error}") from error
    if there == text:
        return 0
    pairs = zip(there.split("\n"), text.split("\n"), strict=False)
    line = next((number for number, (old, new) in enumerate(pairs, 1) if old != new), min(there.count("\n"), text.count("\n")) + 1)
    how = f"memdoctor guide --output {path}" + ("" if format_ == "markdown" else f" --format {format_}")
    print(f"memdoctor: {path} is stale from line {line} on; `{how}` writes it anew", file=sys.stderr)
    return 1
