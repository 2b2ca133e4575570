"""From a related case to the diagnosis that the report shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from memdoctor import catalog
from memdoctor.engine.cases import Case
from memdoctor.lazy import lazy
from memdoctor.model import Diagnosis, Evidence, Fact, Fix

MOST_EVIDENCE = 5
MOST_TEXT = 400  # characters of an evidence line
_PLACE = lazy(r"<([a-z_]+)>")
_PASTABLE = lazy(r"[A-Za-z0-9_./:@=+,%][A-Za-z0-9_./:@=+,%-]*")  # inputs are not trusted: nothing else gets into a line to paste
_OF_THE_MACHINE = ("env_variable", "gpu", "host")  # a probe knows these itself: a place that stays open is nothing that a reader could fill
_SINGLE = ("value", "meant", "read", "use", "power_default")  # values of a setting: those of two hosts make no list
TRAINERS: Mapping[str, frozenset[str]] = {  # whose fixes serve a run with this trainer
    "megatron-lm": frozenset({"megatron-lm"}),
    "deepspeed": frozenset({"deepspeed"}),
    "megatron-deepspeed": frozenset({"megatron-deepspeed", "megatron-lm", "deepspeed"}),
}


def diagnose(case: Case, number: int, ids: Mapping[Case, str], frameworks: Sequence[str]) -> Diagnosis:
    """The diagnosis ``d<number>``; ``ids`` names the diagnoses of all cases."""
    rule = case.rule
    times = [fact.time for fact in case.facts if fact.time is not None]
    # What step lines tell says when it began; any other line only how far the job was when it was printed.
    iterations = [fact.fields.get("iteration") for fact in sorted(case.facts, key=lambda fact: not fact.kind.startswith("series."))]
    return Diagnosis(
        id=f"d{number}",
        rule=rule.id,
        cause=rule.cause,
        severity=case.severity,
        confidence=case.finding.confidence,
        message=case.finding.message,
        why=rule.why,
        not_this=rule.not_this,
        title=rule.title,
        action=rule.action,
        ranks=tuple(sorted(case.ranks)),
        hosts=tuple(sorted(case.hosts)),
        count=case.count,
        first_time=min(times, key=lambda stamp: stamp.epoch, default=None),
        iteration=next((value for value in iterations if isinstance(value, int)), None),
        attempt=case.attempt,
        explained_by=ids[case.explained_by] if case.explained_by is not None else None,
        recovered=case.recovered,
        evidence=choose_evidence(case.facts, case.support),
        fixes=fill_all(choose_fixes(rule.fixes, frameworks), case.facts),
    )


def choose_evidence(facts: Sequence[Fact], support: Sequence[Fact]) -> tuple[Evidence, ...]:
    """At most five lines: the events first, of distinct ranks where there are several; two places are kept for what supports them."""
    of_new_ranks: list[Fact] = []
    of_known: list[Fact] = []
    seen: set[int | None] = set()
    for fact in _distinct(facts):
        (of_known if fact.rank in seen else of_new_ranks).append(fact)
        seen.add(fact.rank)
    events = of_new_ranks + of_known
    shown = {(fact.origin.path, fact.origin.line) for fact in events}
    further = [fact for fact in _distinct(support) if (fact.origin.path, fact.origin.line) not in shown]
    room = MOST_EVIDENCE - min(2, len(further))
    chosen = events[:room]
    chosen += further[: MOST_EVIDENCE - len(chosen)]
    return tuple(_evidence(fact) for fact in chosen)


def _distinct(facts: Iterable[Fact]) -> list[Fact]:
    """One fact a line, those that have a line to show before the derived ones; derived ones only where there is nothing else."""
    lines: dict[tuple[str | None, int | None], Fact] = {}
    derived = []
    for fact in facts:
        if fact.origin.excerpt.strip():
            lines.setdefault((fact.origin.path, fact.origin.line), fact)
        elif fact.origin.path is not None:
            derived.append(fact)
    return list(lines.values()) or derived[:1]


def _evidence(fact: Fact) -> Evidence:
    return Evidence(
        path=fact.origin.path,
        line=fact.origin.line,
        rank=_printed_by(fact),
        time=fact.time.iso if fact.time is not None else None,
        text=fact.origin.excerpt.strip()[:MOST_TEXT],
    )


def _printed_by(fact: Fact) -> int | None:
    """The rank whose line it is: what is derived about one rank may stand in a line of another."""
    witness = fact.fields.get("witness")
    if witness is None:
        return fact.rank
    return witness if witness >= 0 else None


def choose_fixes(fixes: Sequence[Fix], frameworks: Sequence[str]) -> tuple[Fix, ...]:
    """The fixes that suit the run: those for all, for its frameworks, and for any where the log names no trainer that memdoctor knows."""
    known = [name for name in frameworks if name in TRAINERS]
    served = set(frameworks).union(*(TRAINERS[name] for name in known))
    return tuple(fix for fix in fixes if fix.framework is None or not known or fix.framework in served)


def fill_all(fixes: Sequence[Fix], facts: Sequence[Fact]) -> tuple[Fix, ...]:
    """The fixes with their fields; one that loses its command is left out where another one remains."""
    filled = [(fill(fix, facts), fix) for fix in fixes]
    whole = tuple(fix for fix, before in filled if fix.command is not None or before.command is None)
    return whole or tuple(fix for fix, _ in filled[:1])


def fill(fix: Fix, facts: Sequence[Fact]) -> Fix:
    """``fix`` with each ``<field>`` replaced by that field of the events (several: joined by commas), where it is known and harmless.

    A command with a field that these events could have and lack is left out: what remains of it is nothing to paste.
    """

    def value(match: re.Match[str]) -> str:
        known = [fact.get(match[1]) for fact in facts]
        texts = list(dict.fromkeys(_pasted(one) for one in known if isinstance(one, (str, int, float)) and not isinstance(one, bool)))
        if len(texts) > 1 and match[1] in _SINGLE:
            return match[0]
        return ",".join(texts) if texts and all(_PASTABLE.fullmatch(text) for text in texts) else match[0]

    places = () if fix.command is None else _PLACE.findall(fix.command)
    usable = all(any(fact.get(name) is not None for fact in facts) for name in places if any(name in _fields(fact) for fact in facts))
    command = None if fix.command is None or not usable else _PLACE.sub(value, fix.command)
    if command is not None and any(fact.origin.source.startswith("probe.") for fact in facts):
        command = None if any(name in _OF_THE_MACHINE for name in _PLACE.findall(command)) else command
    return replace(
        fix,
        do=_PLACE.sub(value, fix.do),
        command=command,
        config=None if fix.config is None else _PLACE.sub(value, fix.config),
    )


def _fields(fact: Fact) -> Mapping[str, object]:
    """The fields that a probe's fact of this kind may have; those of a log's line are often unknown, and its reader knows them."""
    kind = catalog.KINDS.get(fact.kind)
    return kind.fields if kind is not None and kind.sources == ("probe",) else {}


def _pasted(value: str | int | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
