"""From the findings of all rules to a root cause, its consequences, and what else there is to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memdoctor.engine.cases import Case
from memdoctor.engine.compete import compete
from memdoctor.engine.diagnose import diagnose
from memdoctor.engine.explain import explain
from memdoctor.engine.onset import file_order
from memdoctor.engine.recover import settle_recovered
from memdoctor.engine.tiers import load_tiers
from memdoctor.model import AttemptInfo, Confidence, Diagnosis, Incident, Run, StepMark, Timeline
from memdoctor.records import entity, record

if TYPE_CHECKING:
    from memdoctor.engine.judge import Finding

__all__ = ["AttemptInfo", "Related", "StepMark", "Timeline", "relate"]


@record
class Related:
    """What a Report says besides its inputs; see model.Report for the meaning of the fields."""

    diagnoses: tuple[Diagnosis, ...] = ()
    incidents: tuple[Incident, ...] = ()
    root_cause: str | None = None
    candidates: tuple[str, ...] = ()
    confidence: Confidence | None = None
    action: str | None = None
    hosts_to_exclude: tuple[str, ...] = ()


@entity
class _Failure:
    """An incident while it is being made: ``heads`` are its unexplained errors, the root cause first."""

    attempt: int
    heads: list[Case]
    cases: list[Case]
    root: Case | None = None


def relate(findings: Sequence[Finding], *, run: Run, timeline: Timeline) -> Related:
    """Competition, recovery, cause and consequence; the order of ``findings`` does not matter."""
    tiers = load_tiers()
    attempts = {info.number: info for info in timeline.attempts}
    homeless = _failed_last(attempts, run)
    cases = compete(
        [
            Case(finding, tiers, finding.attempt or homeless, list(finding.facts), list(finding.support), finding.count)
            for finding in sorted(findings, key=lambda finding: (finding.attempt, finding.rule.id))
        ]
    )
    for case in cases:
        settle_recovered(case, attempts.get(case.attempt))
        case.settle()
    failures = _failures(cases, attempts, run)
    cases = _without_silent(cases)
    root = _root(failures, cases)
    ordered = sorted(cases, key=lambda case: _place(case, root))
    ids = {case: f"d{number}" for number, case in enumerate(ordered, 1)}
    return Related(
        diagnoses=tuple(diagnose(case, number, ids, run.frameworks) for number, case in enumerate(ordered, 1)),
        incidents=tuple(_incident(failure, ids) for failure in failures),
        root_cause=None if root is None else root.cause,
        candidates=() if root is None else _candidates(root, next((failure for failure in failures if failure.root is root), None)),
        confidence=None if root is None else root.finding.confidence,
        action=None if root is None else root.rule.action,
        hosts_to_exclude=_to_exclude(root),
    )


def _to_exclude(root: Case | None) -> tuple[str, ...]:
    """The hosts that the root cause says to leave out; none where it is only possible: that would be to guess with other people's machines."""
    if root is None or root.finding.confidence == "possible" or root.rule.action not in ("exclude-hosts", "call-hardware"):
        return ()
    return tuple(sorted(root.hosts))


def _failed_last(attempts: Mapping[int, AttemptInfo], run: Run) -> int:
    """The attempt to which a finding is told that belongs to none: the last that failed of its own, else the last."""
    failed = [number for number, info in attempts.items() if info.status in ("failed", "killed") and info.debris_of is None]
    return max(failed or attempts or [run.attempts])


def _failures(cases: Sequence[Case], attempts: Mapping[int, AttemptInfo], run: Run) -> list[_Failure]:
    """The incidents, by attempt. One that fails only by the leavings of another belongs to that one."""
    failures: dict[int, _Failure] = {}
    owned: dict[int, list[Case]] = {}
    for case in cases:
        owned.setdefault(case.attempt, []).append(case)
    for number in sorted({*attempts, *owned}):
        own = owned.get(number, [])
        heads = explain(own)
        info = attempts.get(number)
        status = info.status if info is not None else run.ended if number == run.attempts else "unknown"
        if status not in ("failed", "killed") and not heads:
            continue
        cause = failures.get(_origin(number, attempts))
        if cause is not None and cause.root is not None and cause.root.severity == "error" and cause.attempt != number:
            for head in heads:
                head.explained_by = cause.root
            cause.cases += own
            continue
        root = heads[0] if heads else _worst_warning([case for case in own if case.cause not in case.tiers.harmless])
        failures[number] = _Failure(number, heads, own, root)
    return list(failures.values())


def _without_silent(cases: Sequence[Case]) -> list[Case]:
    """The cases without those that are not told where something explains them; what they explain goes to their explainer."""

    def silent(case: Case) -> bool:
        return case.explained_by is not None and case.cause in case.tiers.silent

    for case in cases:
        while case.explained_by is not None and silent(case.explained_by):
            case.explained_by = case.explained_by.explained_by
    return [case for case in cases if not silent(case)]


def _origin(number: int, attempts: Mapping[int, AttemptInfo]) -> int:
    """The attempt whose debris ``number`` failed by, in the end; itself where it failed by its own."""
    seen = {number}
    while (info := attempts.get(number)) is not None and info.debris_of is not None and info.debris_of not in seen:
        number = info.debris_of
        seen.add(number)
    return number


def _root(failures: Sequence[_Failure], cases: Sequence[Case]) -> Case | None:
    """The cause of the last incident; without any the worst warning."""
    roots = [failure.root for failure in failures if failure.root is not None]
    errors = [case for case in roots if case.severity == "error"]
    return (errors or roots)[-1] if roots else _worst_warning(cases)


def _worst_warning(cases: Sequence[Case]) -> Case | None:
    warnings = [case for case in cases if case.severity == "warning"]
    return min(
        warnings,
        key=lambda case: (case.explained_by is not None, case.strength()[0], case.attempt, case.order(), case.strength()),
        default=None,
    )


def _candidates(root: Case, failure: _Failure | None) -> tuple[str, ...]:
    """What else it might be, where the root cause is only possible: hypotheses that lost to it, and equals that nothing puts after it."""
    if root.finding.confidence != "possible":
        return ()
    equals = [
        case.cause
        for case in (failure.heads if failure is not None else ())
        if case is not root
        and case.tier == root.tier
        and not (case.span.exact and root.span.exact)
        and file_order(root.span, case.span) == 0
    ]
    return tuple(dict.fromkeys(cause for cause in [*root.rivals, *equals] if cause != root.cause))


def _place(case: Case, root: Case | None) -> tuple[bool, int, bool, int, tuple[float, int], tuple[int, int, str]]:
    """Order of the diagnoses: the root cause, then by severity, unexplained before explained, onset."""
    return (case is not root, case.severity_rank(), case.explained_by is not None, case.attempt, case.order(), case.strength())


def _incident(failure: _Failure, ids: Mapping[Case, str]) -> Incident:
    cases = sorted(
        (case for case in failure.cases if case.severity != "note" and case in ids),
        key=lambda case: (case is not failure.root, int(ids[case][1:])),
    )
    return Incident(failure.attempt, None if failure.root is None else failure.root.cause, tuple(ids[case] for case in cases))
