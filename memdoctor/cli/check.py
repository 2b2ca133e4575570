"""``memdoctor check``: the machine and the training environment, before a job is started."""

from __future__ import annotations

import os

import click

from memdoctor.cli import output
from memdoctor.cli.options import Options, common
from memdoctor.cli.render import render
from memdoctor.errors import InputError


@click.command(short_help="Look at the machine and the training environment.")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--only", metavar="NAME", multiple=True, help="Make only this check (see --list); may be repeated.")
@click.option("--list", "list_", is_flag=True, help="List the checks and end.")
@click.option("--python", metavar="PATH", help="Examine another interpreter, the one that the job uses; nothing is changed there.")
@click.option("--expect-gpus", metavar="N", type=click.IntRange(0, 1024), help="How many GPUs this machine must have.")
@click.option("--timeout", metavar="S", type=click.FloatRange(0.1, 3600), help="Seconds that each check may take.  [default: 10 to 60]")
@click.option("--build", is_flag=True, help="Compile the DeepSpeed ops that a job would compile at its start, and try them.")
@click.option("--save", metavar="FILE", help="Also write what was found as JSON, for `memdoctor check FILE...`.")
@common
def check(
    files: tuple[str, ...],
    only: tuple[str, ...],
    list_: bool,
    python: str | None,
    expect_gpus: int | None,
    timeout: float | None,
    build: bool,
    save: str | None,
    options: Options,
) -> int:
    """Look at the machine and the training environment: what is fine in one line, what is wrong with its reason and what to do.

    With FILE (written by --save on each node) nothing is looked at here: the saved facts are judged, and nodes that differ from
    the others are named. Nothing on the machine is changed, unless --build asks for it.
    """
    if list_:
        return _list()
    output.check(options.output)
    output.check(save, "--save")
    from memdoctor import checkup

    if files:
        for name, given in (("--python", python), ("--build", build), ("--save", save), ("--timeout", timeout)):
            if given:
                raise InputError(f"{name} looks at this machine and does not go with saved facts ({files[0]})")
        report = checkup.judge_saved(files, only=only, expect_gpus=expect_gpus, rules_dirs=options.rules, ignore=options.ignore)
        return render(report, options)
    request = checkup.Request(environ=dict(os.environ), python=python, build=build, expect_gpus=expect_gpus, timeout=timeout)
    collected = checkup.examine(request, only=only)
    if save is not None:
        from memdoctor.report import facts

        saved = facts.render(collected.host, collected.facts, collected.skips, collected.ran, collected.expect_gpus)
        output.write(save, saved, "--save")
    return render(checkup.judge_machine(collected, rules_dirs=options.rules, ignore=options.ignore), options)


def _list() -> int:
    from memdoctor.checkup import PROBES

    width = max(map(len, PROBES))
    output.write(None, "".join(f"{name:<{width}}  {probe.what}\n" for name, probe in PROBES.items()))
    return 0
