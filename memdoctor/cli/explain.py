"""``memdoctor explain ID``: what a cause or a rule means, how it is told from what looks like it, and what to do."""

from __future__ import annotations

from pathlib import Path

import click

from memdoctor.cli import output
from memdoctor.cli.formats import FORMATS, only
from memdoctor.cli.page import show

_GLOB = frozenset("*?")


@click.command(short_help="Explain a cause or a rule: what it means, what looks like it, what to do.")
@click.argument("id_", metavar="ID")
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True, callback=only("text", "json", "markdown")
)
@click.option("--output", "path", metavar="FILE", help="Write to FILE instead of stdout.")
@click.option(
    "--rules", "folders", metavar="DIR", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with further rules; may be repeated.",
)  # fmt: skip
@click.option("-v", "--verbose", count=True, help="Unfold long lists.")
@click.option("--no-color", is_flag=True, help="No colour (also: the variable NO_COLOR).")
def explain(id_: str, format_: str, path: str | None, folders: tuple[Path, ...], verbose: int, no_color: bool) -> int:
    """Explain a cause (oom.logits) or a rule (oom/logits): what it means, what looks like it, and what to do.

    ID stands in brackets in every report. A glob such as 'oom.*' lists what there is.
    """
    output.check(path)

    from memdoctor.handbook.book import Book
    from memdoctor.handbook.entries import CauseEntry
    from memdoctor.report import explain as blocks
    from memdoctor.report import explain_json as json

    book = Book(folders)
    if _GLOB & set(id_):
        found = book.matching(id_)
        if format_ == "json":
            return show(json.listing(found), path)
        return show(blocks.listing(found), path, format_=format_, color=not no_color, whole=True)
    entry = book.find(id_)
    if isinstance(entry, CauseEntry):
        if format_ == "json":
            return show(json.cause(entry), path)
        return show(blocks.cause(entry, whole=bool(verbose)), path, format_=format_, color=not no_color, whole=bool(verbose))
    if format_ == "json":
        return show(json.rule(entry), path)
    return show(
        blocks.rule(entry, book.title(entry.cause), whole=bool(verbose)), path, format_=format_, color=not no_color, whole=bool(verbose)
    )
