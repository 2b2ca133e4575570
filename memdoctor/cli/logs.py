"""``memdoctor logs PATH...``: from the logs of a run to its root cause."""

from __future__ import annotations

import click

from memdoctor.cli import output
from memdoctor.cli.options import Options, common
from memdoctor.cli.render import render


@click.command(short_help="Find the root cause of a failed run in its logs.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@common
def logs(paths: tuple[str, ...], options: Options) -> int:
    """Find the root cause of a failed run in its logs.

    PATH is a log file (plain or compressed), a folder of logs (one file a rank or node, as launchers write them), or - for
    stdin. Several may be given; they count as one run.
    """
    output.check(options.output)

    from memdoctor.pipeline import diagnose_logs
    from memdoctor.report.progress import ByteBar

    bar = ByteBar()
    try:
        report = diagnose_logs(paths, rules_dirs=options.rules, ignore=options.ignore, progress=bar)
    finally:
        bar.stop()
    return render(report, options)
