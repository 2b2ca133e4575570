"""From the findings about machines to diagnoses: there is no run that failed, so nothing is a consequence of anything, and the worst comes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memdoctor.engine.cases import Case
from memdoctor.engine.compete import compete, not_overruled
from memdoctor.engine.diagnose import diagnose
from memdoctor.engine.relate import Related
from memdoctor.engine.tiers import load_tiers

if TYPE_CHECKING:
    from memdoctor.engine.judge import Finding


def survey(findings: Sequence[Finding]) -> tuple[Related, dict[str, frozenset[str]]]:
    """What a Report says besides its inputs, and for each diagnosis the sources of the facts it rests on; the order of ``findings`` does not
    matter. One reading of a machine may show several faults, so a finding yields to none but a rule that names it in ``over``. ``root_cause`` is the worst error, else the worst warning; the hosts to leave out are those of every fault of hardware.
    """
    tiers = load_tiers()
    cases = compete(
        [
            Case(finding, tiers, 1, list(finding.facts), list(finding.support), finding.count)
            for finding in sorted(findings, key=lambda finding: (finding.rule.id, finding.message))
        ],
        choose=not_overruled,
    )
    for case in cases:
        case.settle()
    ordered = sorted(cases, key=_place)
    ids = {case: f"d{number}" for number, case in enumerate(ordered, 1)}
    root = next((case for case in ordered if case.severity != "note"), None)
    faulty = [case for case in ordered if case.severity == "error" and case.rule.action in ("exclude-hosts", "call-hardware")]
    related = Related(
        diagnoses=tuple(diagnose(case, number, ids, ()) for number, case in enumerate(ordered, 1)),
        root_cause=None if root is None else root.cause,
        confidence=None if root is None else root.finding.confidence,
        action=None if root is None else root.rule.action,
        hosts_to_exclude=tuple(sorted({host for case in faulty for host in case.hosts})),
    )
    return related, {ids[case]: frozenset(fact.origin.source for fact in case.facts) for case in cases}


def _place(case: Case) -> tuple[int, int, tuple[int, int, str], str]:
    return (case.severity_rank(), case.tier, case.strength(), case.finding.message)
