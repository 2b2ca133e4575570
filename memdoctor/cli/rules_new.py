"""``memdoctor rules new``: the files that a rule of one's own begins with."""

from __future__ import annotations

import re
from pathlib import Path

import click

from memdoctor.cli import output
from memdoctor.errors import InputError

_ID = re.compile(r"[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*")
_RESERVED = ("signals", "tables")


@click.command("new")
@click.argument("id_", metavar="ID")
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write.",
)
@click.option("--cause", metavar="CAUSE", help="The cause that it names (default: the one of the same name, else job.code).")
@click.option(
    "--signal", "kind", metavar="KIND", help="Write a signal, too: a line of the log that makes a fact of this kind, such as config.error."
)
def new(id_: str, folder: Path, cause: str | None, kind: str | None) -> int:
    """Begin a rule ID (area/slug): the rule as a draft, a log on which it fires, one on which it must not, and what is expected.

    Nothing is overwritten. What is written loads and passes `memdoctor rules test DIR` as it is; then fill it in.
    """
    from memdoctor.fixtures.begin import files

    cause = _checked(id_, cause, kind)
    texts = {folder / path: text for path, text in files(id_, cause, kind).items()}
    for path in texts:
        if path.exists():
            raise InputError(f"{path}: is there already; choose another name")
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
        output.write(None, f"{path}\n")
    return 0


def _checked(id_: str, cause: str | None, kind: str | None) -> str:
    """The cause to name. Raises InputError for an id that is taken or malformed, an unknown cause, or a kind that no log line makes."""
    from memdoctor.catalog import KINDS
    from memdoctor.handbook.book import Book
    from memdoctor.handbook.near import near

    if not _ID.fullmatch(id_) or id_.partition("/")[0] in _RESERVED:
        raise InputError(f"'{id_}' is no id of a rule; write area/slug in lower case, such as data/licence")
    book = Book()
    if id_ in book.rule_ids:
        raise InputError(f"there is a rule '{id_}' already; choose another name")
    if cause is not None and cause not in book.base.causes:
        raise InputError(f"no cause is called '{cause}'{near(cause, book.cause_ids)}")
    usable = [name for name, each in KINDS.items() if "log" in each.sources and "name" in each.fields]
    if kind is not None and kind not in usable:
        raise InputError(f"no line of a log makes a fact of the kind '{kind}' that has a name{near(kind, usable)}")
    same = id_.replace("/", ".")
    return cause or (same if same in book.base.causes else "job.code")
