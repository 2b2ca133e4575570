"""``memdoctor logs PATH...``: from the logs of a run to its root cause."""

from __future__ import annotations

from collections.abc import Sequence

import click

from memdoctor.cli import output
from memdoctor.cli.options import Options, common
from memdoctor.cli.render import render
from memdoctor.model import Report


@click.command(short_help="Find the root cause of a failed run in its logs.")
@click.argument("paths", metavar="[PATH...]", nargs=-1)
@click.option("--plot", is_flag=True, help="Draw loss, gradient norm, step time and memory below the report.")
@click.option("--series", metavar="FILE", help="Write all step lines to FILE (.csv or .json).")
@click.option("--baseline", metavar="LOG", multiple=True, help="Logs of a run that worked: tell first what differs; may be repeated.")
@click.option(
    "--live",
    metavar="PID|torchrun",
    multiple=True,
    help="Look at a job that hangs now: the process of that PID, or the workers of a launcher; may be repeated.",
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1),
    help="Processes that read, each a file at a time (default: as many as several big files are worth).",
)
@common
def logs(
    paths: tuple[str, ...],
    plot: bool,
    series: str | None,
    baseline: tuple[str, ...],
    live: tuple[str, ...],
    workers: int | None,
    options: Options,
) -> int:
    """Find the root cause of a failed run in its logs.

    PATH is a log file (plain or compressed), a folder of logs (one file a rank or node, as launchers write them), or - for
    stdin; flight-recorder dumps of torch (nccl_trace_rank_*) may be among them or stand alone. Several may be given; they
    count as one run.

    With --live no PATH is needed. Processes of your own user on this machine are looked at from outside: /proc, their Python
    stacks where py-spy is installed (they stand still for some milliseconds), and NCCL's RAS where it answers.
    """
    if not paths and not live:
        raise click.UsageError("Missing argument 'PATH...': name a log, a folder of logs, - for stdin, or --live PID.")
    inputs = (*paths, *baseline)
    output.check(options.output, inputs=inputs)
    if series is not None:
        from memdoctor.report import series_file

        series_file.check(series)
        output.check(series, "--series", inputs)

    from memdoctor.pipeline import diagnose_logs
    from memdoctor.report.progress import ByteBar

    told: list[series_file.Rows] = []
    bar = ByteBar()

    def diagnose(paths: Sequence[str]) -> Report:
        return diagnose_logs(
            paths,
            rules_dirs=options.rules,
            ignore=options.ignore,
            progress=bar,
            baseline=baseline,
            on_series=told.append,
            workers=workers,
        )

    try:
        if live:
            from memdoctor.live import diagnose_live
            from memdoctor.report.text import visible

            report = diagnose_live(live, paths, diagnose, lambda line: output.complain(f"memdoctor: {visible(line)}\n"))
        else:
            report = diagnose(paths)
    finally:
        bar.stop()
    if series is not None:
        output.write(series, series_file.render(told[0], series), "--series")
    return render(report, options, plot=plot)
