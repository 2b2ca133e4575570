"""The forms of output that the contract names, and which of them a command has."""

from __future__ import annotations

from collections.abc import Callable

import click

from memdoctor.errors import InputError

FORMATS = ("text", "json", "markdown", "html", "junit", "sarif")


def only(*built: str) -> Callable[[click.Context, click.Parameter, str], str]:
    """A callback of ``--format`` that refuses what is not built yet (exit 2)."""

    def check(ctx: click.Context, param: click.Parameter, value: str) -> str:
        if value not in built:
            raise InputError(f"`--format {value}` is not in this version; there are: {', '.join(built)}")
        return value

    return check
