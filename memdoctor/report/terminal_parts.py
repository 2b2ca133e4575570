"""The parts of a terminal report, in the order in which they stand."""

from __future__ import annotations

from memdoctor.lazy import lazy
from memdoctor.model import Diagnosis, Evidence, Fix, Report
from memdoctor.report import pasting
from memdoctor.report.pasting import spoken
from memdoctor.report.terminal_page import Page
from memdoctor.report.terminal_words import ACTIONS, STYLES, later, plural, ranks, where
from memdoctor.report.text import visible

MOST_OTHERS = 8  # further errors and warnings before the rest is folded
MOST_CONSEQUENCES = 10
MOST_SKIPS = 8
MOST_NOT_CHECKED = 3  # rules with one reason that are told by name
LONGEST_MESSAGE = 500  # characters
_HOST = lazy(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")  # anything else is not put into a line to paste


def root_cause(page: Page, report: Report, root: Diagnosis, verbose: int) -> None:
    """The headline, the evidence, why, what to do, and what only looks like it."""
    style = STYLES[root.severity]
    label = "ROOT CAUSE" if root.severity == "error" else "WARNING"
    page.prose(f"{root.title} [{root.cause}]", style, first=f"{label}: ")
    page.prose(", ".join([root.confidence, *where(root, attempts=report.run.attempts)]))
    if report.candidates:
        page.prose(", ".join(report.candidates), first="It could also be: ")
    _body(page, root, verbose, indent=0)
    if report.hosts_to_exclude:
        page.heading("Hosts to leave out")
        names = report.hosts_to_exclude
        if all(_HOST.fullmatch(name) for name in names):
            page.line((f"--exclude={','.join(names)}", "cyan"), indent=2)
        else:
            page.prose(", ".join(names), indent=2)


def _body(page: Page, diagnosis: Diagnosis, verbose: int, *, indent: int) -> None:
    page.blank()
    page.prose(_message(diagnosis, verbose), "bold", indent=indent)
    for evidence in diagnosis.evidence:
        evidence_line(page, evidence, verbose, indent + 2)
    if diagnosis.why:
        page.blank()
        page.prose(diagnosis.why, indent=indent)
    fixes_list(page, diagnosis, verbose, indent)
    if diagnosis.not_this:
        page.blank()
        page.prose(diagnosis.not_this, indent=indent, first="Not this: ")


def _message(diagnosis: Diagnosis, verbose: int) -> str:
    """A message may quote what a log says, however long."""
    return diagnosis.message if verbose or len(diagnosis.message) <= LONGEST_MESSAGE else diagnosis.message[:LONGEST_MESSAGE].rstrip() + "…"


def evidence_line(page: Page, evidence: Evidence, verbose: int, indent: int) -> None:
    place = evidence.path or "(derived)"
    if evidence.line is not None:
        place += f":{evidence.line}"
    who = f" [rank {evidence.rank}]" if evidence.rank is not None else ""
    text = " ".join(evidence.text.split())
    if verbose:
        page.line((place, "dim"), (who, "dim"), f" {text}", indent=indent)
    elif len(visible(place)) > page.width // 2:  # a long path keeps its own line, so that both can be read
        page.cropped((page.tail(place, indent + len(who)), "dim"), (who, "dim"), indent=indent)
        page.cropped(text, indent=indent + 2)
    else:
        page.cropped((place, "dim"), (who, "dim"), f" {text}", indent=indent)


def fixes_list(page: Page, diagnosis: Diagnosis, verbose: int, indent: int) -> None:
    action = ACTIONS.get(diagnosis.action, "")
    if not diagnosis.fixes and not action:
        return
    page.heading(" " * indent + "What to do" + (f": {action}" if action else ""))
    for number, fix in enumerate(diagnosis.fixes, 1):
        lead = f"{number}. "
        page.prose(f"{spoken(fix.do)} ({_price(fix)})", indent=indent + 2, first=lead)
        for line in pasting.lines(fix.command, fix.config):
            page.line((line, "cyan"), indent=indent + 2 + len(lead))
        if fix.repro and verbose:
            page.line(f"proved by the repro {fix.repro}", indent=indent + 2 + len(lead))


def _price(fix: Fix) -> str:
    risk = {"safe": "safe", "costly": "costs speed or memory", "changes-results": "changes results"}.get(fix.risk, fix.risk)
    return f"{risk}; saves {fix.saves}" if fix.saves else risk


def others(page: Page, report: Report, root: Diagnosis, verbose: int) -> None:
    """What else stands by itself: an error or a warning that nothing explains."""
    found = [each for each in report.diagnoses if each is not root and each.severity != "note" and each.explained_by is None]
    if not found:
        return
    page.heading("Also found")
    shown = found if verbose else found[:MOST_OTHERS]
    for each in shown:
        style = STYLES[each.severity]
        page.prose(f"{each.title} [{each.cause}]", style, indent=2, first=f"{each.severity}: ")
        page.prose(", ".join([each.confidence, *where(each, attempts=report.run.attempts)]), indent=4)
        if verbose:
            _body(page, each, verbose, indent=4)
            continue
        page.prose(_message(each, verbose), indent=4)
        for evidence in each.evidence[:1]:
            evidence_line(page, evidence, verbose, 4)
        for fix in each.fixes[:1]:
            page.prose(spoken(fix.do), indent=4, first="Fix: ")
            for line in pasting.lines(fix.command, fix.config):
                page.line((line, "cyan"), indent=9)
    if len(found) > len(shown):
        page.line(f"and {len(found) - len(shown)} more (-v shows them)", indent=2)


def consequences(page: Page, report: Report, root: Diagnosis, verbose: int) -> None:
    """What follows from something else in the report, one line each."""
    found = [each for each in report.diagnoses if each.explained_by is not None]
    if not found:
        return
    by_id = {each.id: each for each in report.diagnoses}
    page.heading("Consequences")
    shown = found if verbose else found[:MOST_CONSEQUENCES]
    for each in shown:
        cause = by_id.get(each.explained_by or "", root)
        since = f" of {cause.cause}" if cause is not root else ""
        parts = [ranks(each.ranks), f"attempt {each.attempt}" if report.run.attempts > 1 else "", later(cause, each)]
        known = ", ".join(part for part in parts if part)
        page.cropped((each.cause, "bold"), f"{since}: ", f"{known}: " if known else "", each.message, indent=2)
        if verbose:
            for evidence in each.evidence:
                evidence_line(page, evidence, verbose, 4)
    if len(found) > len(shown):
        page.line(f"and {len(found) - len(shown)} more (-v shows them)", indent=2)


def incidents(page: Page, report: Report) -> None:
    """What each attempt failed by, where there were several."""
    if len(report.incidents) < 2:
        return
    titles = {each.id: each.title for each in report.diagnoses}
    page.heading("Attempts that failed")
    for incident in report.incidents:
        title = titles.get(incident.diagnoses[0], "") if incident.diagnoses else ""
        cause = f"{title} [{incident.root_cause}]" if incident.root_cause else "nothing says why"
        page.cropped(f"attempt {incident.attempt}: {cause}", indent=2)


def skips(page: Page, report: Report, verbose: int) -> None:
    """What could not be looked at."""
    if not report.skips:
        return
    page.heading("Not looked at")
    shown = report.skips if verbose else report.skips[:MOST_SKIPS]
    for skip in shown:
        text = f"{skip.source}: {skip.reason}"
        (page.line if verbose else page.cropped)(text, indent=2)
    if len(report.skips) > len(shown):
        page.line(f"and {len(report.skips) - len(shown)} more (-v shows them)", indent=2)


def notes_folded(page: Page, report: Report, verbose: int) -> None:
    """How many notes there are, in one line."""
    found = [each for each in report.diagnoses if each.severity == "note"]
    if not found or verbose:
        return
    recovered = sum(each.recovered for each in found)
    parts = [plural(len(found) - recovered, "note")] if len(found) > recovered else []
    parts += [f"{plural(recovered, 'error')} that the run got over"] if recovered else []
    page.prose(f"{' and '.join(parts)} (-v shows {'it' if len(found) == 1 else 'them'}).")


def notes(page: Page, report: Report, verbose: int) -> None:
    found = [each for each in report.diagnoses if each.severity == "note"]
    if not found or not verbose:
        return
    page.heading("Notes")
    for each in found:
        got_over = " (the run got over it)" if each.recovered else ""
        page.prose(f"{each.title}{got_over} [{each.cause}]", indent=2)
        page.prose(", ".join([each.message, *where(each, attempts=report.run.attempts)]), indent=4)
        for evidence in each.evidence:
            evidence_line(page, evidence, verbose, 4)


def not_checked(page: Page, report: Report, verbose: int) -> None:
    """Rules that nothing could feed: those that share a reason are told in one line, unless everything is asked for."""
    if not report.not_checked or not verbose:
        return
    page.heading("Not checked")
    by_reason: dict[str, list[str]] = {}
    for rule, reason in report.not_checked:
        by_reason.setdefault(reason, []).append(rule)
    for reason, rules in by_reason.items():
        if verbose == 1 and len(rules) > MOST_NOT_CHECKED:
            page.line(f"{plural(len(rules), 'rule')}: {reason}", indent=2)
            continue
        for rule in rules:
            page.line(f"{rule}: {reason}", indent=2)
