"""The options that every command which makes a report has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from memdoctor.cli.formats import FORMATS, only
from memdoctor.records import record

BUILT = ("text", "json")


@record
class Options:
    """The common options as given."""

    format: str
    output: str | None
    fail_on: str
    rules: tuple[str, ...]
    ignore: tuple[str, ...]
    redact: bool
    verbose: int
    no_color: bool


_OPTIONS = (
    click.option(
        "--format", type=click.Choice(FORMATS), default="text", show_default=True, callback=only(*BUILT), help="Form of the report."
    ),
    click.option("--output", metavar="FILE", help="Write the report to FILE instead of stdout."),
    click.option(
        "--fail-on",
        type=click.Choice(["error", "warning", "never"]),
        default="error",
        show_default=True,
        help="Least severity that ends with exit code 1.",
    ),
    click.option(
        "--rules",
        metavar="DIR",
        multiple=True,
        type=click.Path(exists=True, file_okay=False),
        help="A folder with further rules; may be repeated.",
    ),
    click.option("--ignore", metavar="ID", multiple=True, help="A rule or cause to leave out (globs allowed); may be repeated."),
    click.option("--redact", is_flag=True, help="Replace host names, addresses, users, private paths and secrets in the report."),
    click.option("-v", "--verbose", count=True, help="Say more; twice: everything."),
    click.option("--no-color", is_flag=True, help="No colour (also: the variable NO_COLOR)."),
)


def common(command: Callable[..., int]) -> Callable[..., int]:
    """Decorator: the command gets the common options as one ``options`` argument."""

    @functools.wraps(command)
    def call(*args: Any, **given: Any) -> int:
        mine = {name: given.pop(name) for name in Options.__annotations__}
        return command(*args, options=Options(**mine), **given)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call
