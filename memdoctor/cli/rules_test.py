"""``memdoctor rules test``: run the fixtures of a folder of rules."""

from __future__ import annotations

from pathlib import Path

import click

from memdoctor.cli import output
from memdoctor.errors import InputError


@click.command("test")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def test(folder: Path | None) -> int:
    """Run the fixtures of the rules in DIR (without DIR: of the built-in rules; in the source tree only).

    DIR holds the folders rules/ and fixtures/, or is a folder of rules with a folder fixtures/ beside it, or a folder of
    cases alone. Every case.yaml is run with the built-in rules and those of DIR together; what differs from its expectation
    is printed.
    """
    from memdoctor.engine.load import load
    from memdoctor.fixtures import find_cases, run_case, unknown_names
    from memdoctor.fixtures.place import layout
    from memdoctor.report.text import visible
    from memdoctor.resources import rules_dir

    place = layout(folder or rules_dir())
    extra = place.rules_dirs()
    base = load([rules_dir(), *extra])  # a broken rule is told before what its cases lack
    cases = find_cases(place.cases)
    if not cases and folder is None:
        raise InputError(
            "memdoctor's own cases lie in its source tree and are not installed: run it there, or name a folder of your own as DIR"
        )
    if not cases:
        raise InputError(f"no case.yaml under {place.cases}; rules/README.md shows how one is written")
    rules = {rule.id for rule in base.rules}
    failed = total = 0
    for path in cases:
        for result in run_case(path, extra):
            total += 1
            failed += not result.ok
            lines = [f"{'ok    ' if result.ok else 'FAILED'}  {_short(path)}:{result.case.line}  {' '.join(result.case.input)}"]
            unknown = [] if result.ok else unknown_names(result.case, rules, base.causes)
            lines += [f"          {problem}" for problem in (*unknown, *result.problems)]
            output.write(None, "".join(f"{visible(line)}\n" for line in lines))
    output.write(None, f"{total} {'entry' if total == 1 else 'entries'}, {failed} failed\n")
    return 1 if failed else 0


def _short(path: Path) -> Path:
    """``path`` as seen from here, where that is shorter."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
