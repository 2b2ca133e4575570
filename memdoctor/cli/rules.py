"""``memdoctor rules``: list, show, begin, test and score rules."""

from __future__ import annotations

from pathlib import Path

import click

from memdoctor.cli import output
from memdoctor.cli.rules_new import new
from memdoctor.cli.rules_score import score
from memdoctor.cli.rules_show import show
from memdoctor.cli.rules_test import test

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(short_help="List, show, begin, test and score rules.")
def rules() -> None:
    """List, show, begin, test and score rules."""


@rules.command("list")
@click.option("--rules", "folders", metavar="DIR", multiple=True, type=_FOLDER, help="A folder with further rules; may be repeated.")
def list_(folders: tuple[Path, ...]) -> int:
    """List every rule: its id, the cause that it names, its title."""
    from memdoctor.engine.load import load_rules
    from memdoctor.report.text import visible
    from memdoctor.resources import rules_dir

    table = [(rule.id, rule.cause, rule.title) for rule in load_rules([rules_dir(), *folders])]
    widths = [max((len(row[column]) for row in table), default=0) for column in (0, 1)]
    lines = [f"{id_:<{widths[0]}}  {cause:<{widths[1]}}  {title}" for id_, cause, title in sorted(table)]
    output.write(None, "".join(f"{visible(line)}\n" for line in lines))
    return 0


for command in (show, new, test, score):
    rules.add_command(command)
