"""``memdoctor logs PATH...``: from the logs of a run to its root cause."""

from __future__ import annotations

import click

from memdoctor.cli import output
from memdoctor.cli.options import Options, common
from memdoctor.cli.render import render


@click.command(short_help="Find the root cause of a failed run in its logs.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--plot", is_flag=True, help="Draw loss, gradient norm, step time and memory below the report.")
@click.option("--series", metavar="FILE", help="Write all step lines to FILE (.csv or .json).")
@click.option("--baseline", metavar="LOG", multiple=True, help="Logs of a run that worked: tell first what differs; may be repeated.")
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1),
    help="Processes that read, each a file at a time (default: as many as several big files are worth).",
)
@common
def logs(paths: tuple[str, ...], plot: bool, series: str | None, baseline: tuple[str, ...], workers: int | None, options: Options) -> int:
    """Find the root cause of a failed run in its logs.

    PATH is a log file (plain or compressed), a folder of logs (one file a rank or node, as launchers write them), or - for
    stdin; flight-recorder dumps of torch (nccl_trace_rank_*) may be among them or stand alone. Several may be given; they
    count as one run.
    """
    output.check(options.output)
    if series is not None:
        from memdoctor.report import series_file

        series_file.check(series)
        output.check(series)

    from memdoctor.pipeline import diagnose_logs
    from memdoctor.report.progress import ByteBar

    told: list[series_file.Rows] = []
    bar = ByteBar()
    try:
        report = diagnose_logs(
            paths,
            rules_dirs=options.rules,
            ignore=options.ignore,
            progress=bar,
            baseline=baseline,
            on_series=told.append,
            workers=workers,
        )
    finally:
        bar.stop()
    if series is not None:
        output.write(series, series_file.render(told[0], series))
    return render(report, options, plot=plot)
