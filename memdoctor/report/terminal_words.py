"""The short phrases of a terminal report: who, when, how much."""

from __future__ import annotations

from memdoctor import units
from memdoctor.lazy import lazy
from memdoctor.model import Diagnosis, Report, Stamp

STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold blue"}
ACTIONS = {
    "restart": "restart the job",
    "fix-config": "change the configuration",
    "fix-code": "change the code",
    "exclude-hosts": "run without the host at fault",
    "call-hardware": "have the hardware looked at",
    "none": "",
}
ENDINGS = {
    "completed": "The run completed.",
    "failed": "The run failed.",
    "killed": "The run was ended from outside.",
    "cut": "The log is cut off: how the run ended is not known.",
    "running": "The run was still going on at the last line.",
    "unknown": "How the run ended is not known: the log does not say.",
}
_ZONE = lazy(r"T.*(?:Z|[+-]\d\d:?\d\d)$")
_LONGEST_LIST = 24  # characters of ranks written out


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ranks(numbers: tuple[int, ...]) -> str:
    """``rank 7``, ``ranks 0, 1``, ``63 ranks (0-6, 8-63)``; empty where none is known."""
    if not numbers:
        return ""
    written = units.format_ranks(numbers)
    if len(numbers) == 1:
        return f"rank {written}"
    if len(numbers) <= 4:
        return f"ranks {written}"
    return (
        f"{len(numbers)} ranks ({written})" if len(written) <= _LONGEST_LIST else f"{len(numbers)} ranks ({min(numbers)} to {max(numbers)})"
    )


def hosts(names: tuple[str, ...]) -> str:
    return f"{len(names)} hosts ({names[0]}, …)" if len(names) > 3 else ", ".join(names)


def where(diagnosis: Diagnosis, *, attempts: int) -> list[str]:
    """Who, where and when, as far as it is known."""
    place = " on ".join(part for part in (ranks(diagnosis.ranks), hosts(diagnosis.hosts)) if part)
    parts = [place] if place else []
    if attempts > 1:
        parts.append(f"attempt {diagnosis.attempt}")
    if diagnosis.iteration is not None:
        parts.append(f"iteration {diagnosis.iteration:,}")
    if diagnosis.count > max(1, len(diagnosis.ranks)):
        parts.append(f"{diagnosis.count:,} times")
    if diagnosis.first_time is not None:
        parts.append(diagnosis.first_time.iso.replace("T", " "))
    return parts


def later(cause: Diagnosis, effect: Diagnosis) -> str:
    """``10 min later``; empty where the clocks do not tell."""
    first, then = cause.first_time, effect.first_time
    if first is None or then is None or _zoned(first) != _zoned(then) or then.epoch - first.epoch < 1:
        return ""
    return f"{units.format_duration(then.epoch - first.epoch)} later"


def _zoned(stamp: Stamp) -> bool:
    return _ZONE.search(stamp.iso) is not None


def what_was_read(report: Report) -> str:
    """One sentence: files, bytes, lines, frameworks, ranks, iterations."""
    run = report.run
    size = units.format_size(sum(file.bytes for file in report.inputs))
    lines = sum(file.lines for file in report.inputs)
    count = f"{size}, {plural(lines, 'line')}" if lines or not run.ranks_seen else size  # dumps have no lines
    parts = [f"Read {plural(len(report.inputs), 'file')} ({count})"]
    if run.frameworks:
        parts.append(", ".join(f"{name} {run.versions[name]}" if run.versions.get(name) else name for name in run.frameworks))
    if run.world_size:
        parts.append(f"{run.ranks_seen:,} of {plural(run.world_size, 'rank')} seen")
    elif run.ranks_seen:
        parts.append(plural(run.ranks_seen, "rank") + " seen")
    if run.first_iteration is not None and run.last_iteration is not None:
        same = run.first_iteration == run.last_iteration
        parts.append(f"iteration {run.last_iteration:,}" if same else f"iterations {run.first_iteration:,} to {run.last_iteration:,}")
    if run.attempts > 1:
        parts.append(plural(run.attempts, "attempt"))
    return "; ".join(parts) + "."
