"""The report as one JSON object; report/schema.json says what it holds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from typing import Any

from memdoctor import __version__
from memdoctor.model import Check, Diagnosis, Evidence, Fix, Incident, Report, Run, Stamp
from memdoctor.report.text import unseen_escaped, valid

SCHEMA_VERSION = 1
MOST_EVIDENCE = 5
DEEPEST = 20  # of nested arguments; deeper ones are written as text


def render(report: Report) -> str:
    """``report`` as JSON text with a line end; equal reports give equal text."""
    text = json.dumps(as_object(report), ensure_ascii=False, indent=2, allow_nan=False)
    return unseen_escaped(text) + "\n"


def as_object(report: Report) -> dict[str, Any]:
    """``report`` as plain dicts and lists in the order of the contract; what is unknown is None."""
    return {
        "schema_version": SCHEMA_VERSION,
        "memdoctor": __version__,
        "command": report.command,
        "inputs": [{"path": valid(file.path), "bytes": file.bytes, "lines": file.lines} for file in report.inputs],
        "run": _run(report.run),
        "root_cause": report.root_cause,
        "candidates": list(report.candidates),
        "confidence": report.confidence,
        "action": report.action,
        "hosts_to_exclude": [valid(host) for host in report.hosts_to_exclude],
        "incidents": [_incident(incident) for incident in report.incidents],
        "diagnoses": [_diagnosis(diagnosis) for diagnosis in report.diagnoses],
        "not_checked": [{"rule": rule, "reason": valid(reason)} for rule, reason in report.not_checked],
        "skips": [{"source": valid(skip.source), "reason": valid(skip.reason)} for skip in report.skips],
        "series": _plain(report.series),
        **({"baseline": _plain(report.baseline)} if report.baseline else {}),
        **({"checks": [_check(check) for check in report.checks]} if report.command == "check" else {}),
    }


def _check(check: Check) -> dict[str, Any]:
    return {"name": check.name, "status": check.status, "summary": valid(check.summary), "diagnoses": list(check.diagnoses)}


def _run(run: Run) -> dict[str, Any]:
    return {
        "frameworks": list(run.frameworks),
        "versions": _plain(run.versions),
        "world_size": run.world_size,
        "ranks_seen": run.ranks_seen,
        "attempts": run.attempts,
        "ended": run.ended,
        "first_iteration": run.first_iteration,
        "last_iteration": run.last_iteration,
        "first_time": _time(run.first_time),
        "last_time": _time(run.last_time),
        "args": _plain(run.args),
    }


def _incident(incident: Incident) -> dict[str, Any]:
    return {"attempt": incident.attempt, "root_cause": incident.root_cause, "diagnoses": list(incident.diagnoses)}


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "id": diagnosis.id,
        "rule": diagnosis.rule,
        "cause": diagnosis.cause,
        "severity": diagnosis.severity,
        "confidence": diagnosis.confidence,
        "state": diagnosis.state,
        "explained_by": diagnosis.explained_by,
        "ranks": list(diagnosis.ranks),
        "hosts": [valid(host) for host in diagnosis.hosts],
        "count": diagnosis.count,
        "first_time": _time(diagnosis.first_time),
        "iteration": diagnosis.iteration,
        "message": valid(diagnosis.message),
        "why": valid(diagnosis.why),
        "not_this": valid(diagnosis.not_this),
        "evidence": [_evidence(evidence) for evidence in diagnosis.evidence[:MOST_EVIDENCE]],
        "fixes": [_fix(fix) for fix in diagnosis.fixes],
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    path = None if evidence.path is None else valid(evidence.path)
    return {"path": path, "line": evidence.line, "rank": evidence.rank, "time": evidence.time, "text": valid(evidence.text)}


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "id": fix.id,
        "do": valid(fix.do),
        "command": None if fix.command is None else valid(fix.command),
        "config": None if fix.config is None else valid(fix.config),
        "risk": fix.risk,
        "saves": None if fix.saves is None else valid(fix.saves),
        "repro": fix.repro,
    }


def _time(stamp: Stamp | None) -> str | None:
    return None if stamp is None else stamp.iso


def _plain(value: Any, depth: int = 0) -> Any:
    """``value`` as JSON can hold it: mappings by sorted key, a number that is none as null."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return valid(value)
        case bytes() | bytearray():
            return bytes(value).decode("utf-8", "backslashreplace")
        case Stamp():
            return value.iso
    if depth >= DEEPEST:
        return valid(str(value))
    if isinstance(value, Mapping):
        return {
            key: _plain(each, depth + 1)
            for key, each in sorted(((valid(str(key)), each) for key, each in value.items()), key=lambda pair: pair[0])
        }
    if isinstance(value, Set):
        return sorted((_plain(each, depth + 1) for each in value), key=lambda each: (str(type(each)), str(each)))
    try:
        return [_plain(each, depth + 1) for each in value]
    except TypeError:
        return valid(str(value))
