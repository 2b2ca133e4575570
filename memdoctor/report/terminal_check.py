"""The list of `memdoctor check`: the worst first; what is fine in one line each, what is wrong with its reason and what to paste."""

from __future__ import annotations

from memdoctor.model import Check, Diagnosis, Report
from memdoctor.report import pasting
from memdoctor.report.terminal_page import Page
from memdoctor.report.terminal_parts import evidence_line, fixes_list, not_checked
from memdoctor.report.terminal_words import STYLES, hosts, plural

_SIGNS = {"error": ("✗", "bold red"), "warning": ("!", "bold yellow"), "skipped": ("-", "bold"), "ok": ("✓", "bold green")}
# Names of checks as a heading; a check that is not here is told by its own name.
_TITLES = {
    "host": "Host", "disks": "Disks", "gpu": "GPUs", "xids": "Xids", "python": "Python stack", "kernels": "Fused kernels", "locks": "Build locks",
    "variables": "Variables", "network": "Network", "nodes": "Nodes alike",
}  # fmt: skip
MOST_HOSTS = 1  # with more the hosts of a diagnosis are told


def check_list(page: Page, report: Report, verbose: int) -> None:
    """All checks, and below them a line that sums up."""
    by_id = {each.id: each for each in report.diagnoses}
    told: set[str] = set()
    many = len(report.inputs) > MOST_HOSTS
    for check in report.checks:
        own = [by_id[id_] for id_ in check.diagnoses if id_ in by_id and id_ not in told]
        told.update(each.id for each in own)
        _check(page, report, check, own, verbose, many)
    _partly(page, report, verbose)
    not_checked(page, report, verbose)
    page.blank()
    page.line((_sum(report), "bold"))


def _check(page: Page, report: Report, check: Check, own: list[Diagnosis], verbose: int, many: bool) -> None:
    shown = own if verbose else [each for each in own if each.severity != "note"]
    level = next((each.severity for each in own if each.severity != "note"), None) if check.status == "wrong" else check.status
    sign, style = _SIGNS.get(level or "ok", _SIGNS["warning"])
    title = _TITLES.get(check.name, check.name)
    notes = sum(each.severity == "note" for each in own)
    summary = f"not looked at: {check.summary}" if check.status == "skipped" else check.summary
    hidden = f" ({plural(notes, 'note')}, -v shows {'it' if notes == 1 else 'them'})" if notes and not verbose else ""
    text = f"[{sign}] {title}"
    page.prose(f"{summary}{hidden}", first=f"{text}: " if summary or hidden else text, first_style=style)
    for each in shown:
        _diagnosis(page, each, verbose, many)


def _diagnosis(page: Page, each: Diagnosis, verbose: int, many: bool) -> None:
    label = f"{each.severity}: " if each.severity != "note" else "note: "
    page.prose(f"{each.message} [{each.cause}]", STYLES[each.severity], indent=4, first=label)
    sure = "" if each.confidence == "certain" else each.confidence
    where = hosts(each.hosts) if many else ""
    if sure or where:
        page.prose(", ".join(part for part in (sure, where) if part), indent=6)
    for evidence in each.evidence if verbose else each.evidence[:1]:
        if verbose or evidence.text not in each.message:  # a setting is told in full by the message
            evidence_line(page, evidence, verbose, 6)
    if verbose:
        page.prose(each.why, indent=6)
        fixes_list(page, each, verbose, 6)
        if each.not_this:
            page.prose(each.not_this, indent=6, first="Not this: ")
        return
    for fix in each.fixes[:1]:
        page.prose(pasting.spoken(fix.do), indent=6, first="Fix: ")
        for line in pasting.lines(fix.command, fix.config):
            page.line((line, "cyan"), indent=8)


def _partly(page: Page, report: Report, verbose: int) -> None:
    """Parts of checks that could not be looked at, where the check itself could."""
    skipped = {check.name for check in report.checks if check.status == "skipped"}
    parts = [skip for skip in report.skips if skip.source not in skipped]
    if not parts:
        return
    page.heading("Not looked at")
    shown = parts if verbose else parts[:6]
    for skip in shown:
        page.prose(f"{skip.source}: {skip.reason}", indent=2)
    if len(parts) > len(shown):
        page.line(f"and {len(parts) - len(shown)} more (-v shows them)", indent=2)


def _sum(report: Report) -> str:
    errors = sum(each.severity == "error" for each in report.diagnoses)
    warnings = sum(each.severity == "warning" for each in report.diagnoses)
    skipped = sum(check.status == "skipped" for check in report.checks)
    found = " and ".join(
        part for part in (plural(errors, "error") if errors else "", plural(warnings, "warning") if warnings else "") if part
    )
    nodes = f" on {len(report.inputs)} nodes" if len(report.inputs) > 1 else ""
    looked = len(report.checks) - skipped
    rest = f"; {skipped} could not be looked at" if skipped else ""
    if not looked and not found:
        return f"Nothing could be looked at{nodes}."
    return f"{found or 'Nothing wrong found'} in {plural(looked, 'check')}{nodes}{rest}."
