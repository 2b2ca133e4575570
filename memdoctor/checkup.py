"""The meeting place of `memdoctor check`: probes or saved facts → derive → judge → survey → Report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from memdoctor.derive.machine import DERIVED, derive_machine, summaries
from memdoctor.derive.machine.summary import EMPTY, PROBE
from memdoctor.engine.judge import judge
from memdoctor.engine.load import Folder, load
from memdoctor.engine.survey import survey
from memdoctor.errors import InputError
from memdoctor.model import Check, Diagnosis, Fact, InputFile, Report, Run, Skip
from memdoctor.resources import rules_dir
from memdoctor.sources.probes.collect import PROBES, Collected, chosen, collect
from memdoctor.sources.probes.request import Request
from memdoctor.sources.saved import UNUSABLE, one_a_node, read_saved

PROBE_SOURCES = frozenset({"probe"})
NODES = "nodes"  # the check that several nodes are alike

__all__ = ["PROBES", "Collected", "InputError", "Request", "examine", "judge_machine", "judge_saved"]


def examine(request: Request, *, only: Sequence[str] = ()) -> Collected:
    """Run the probes. Raises InputError for a name that is no check, or an interpreter that is not there."""
    from memdoctor.sources.probes.interpreter import verify

    names = chosen(only)
    silent = verify(request.python, request.environ, request.timeout) if {"python", "kernels"} & set(names) else ""
    return collect(names, replace(request, silent=silent))


def judge_machine(collected: Collected, *, rules_dirs: Sequence[Folder] = (), ignore: Sequence[str] = ()) -> Report:
    """What is wrong with this machine. Raises RuleError for a broken rule."""
    return _judge((), collected.facts, collected.skips, collected.ran, 1, collected.expect_gpus, rules_dirs, ignore)


def judge_saved(
    paths: Sequence[str],
    *,
    only: Sequence[str] = (),
    expect_gpus: int | None = None,
    rules_dirs: Sequence[Folder] = (),
    ignore: Sequence[str] = (),
) -> Report:
    """What is wrong with the machines whose facts were saved, and which of them is not like the others.

    A file that cannot be used is a skip; two of one node count as one, and of each check the later one. Raises InputError where no file holds
    saved facts, RuleError for a broken rule.
    """
    files, unusable = read_saved(paths)
    names = set(chosen(only))
    saved, doubled = one_a_node(files)
    hosts = _distinct([one.host for one in saved])
    many = len(saved) > 1
    facts: list[Fact] = []
    skips: list[Skip] = []
    for one, host in zip(saved, hosts, strict=True):
        for fact in one.facts:
            if fact.origin.source.removeprefix(PROBE) in names:
                path = f"{host}: {fact.origin.path}" if many and fact.origin.path is not None else fact.origin.path
                facts.append(replace(fact, host=host, origin=replace(fact.origin, path=path), seq=len(facts)))
        skips += [
            replace(skip, reason=f"{host}: {skip.reason}" if many else skip.reason)
            for skip in one.skips
            if skip.source in {*names, UNUSABLE}
        ]
    ran = tuple(name for name in PROBES if name in names and any(name in one.ran for one in saved))
    expect = expect_gpus if expect_gpus is not None else next((one.expect_gpus for one in saved if one.expect_gpus is not None), None)
    told = (*_merged(skips, many), *unusable, *doubled)
    looked = [
        host
        for one, host in zip(saved, hosts, strict=True)
        if {"variables"} <= names & set(one.ran) and not any("env.setting" in skip.kinds for skip in one.skips)
    ]
    return _judge(tuple(one.input for one in files), facts, told, ran, len(saved), expect, rules_dirs, ignore, looked)


def _judge(
    inputs: tuple[InputFile, ...],
    facts: Sequence[Fact],
    skips: Sequence[Skip],
    ran: Sequence[str],
    hosts: int,
    expect: int | None,
    rules_dirs: Sequence[Folder],
    ignore: Sequence[str],
    looked: Sequence[str] = (),
) -> Report:
    base = load([rules_dir(), *rules_dirs])
    known = derive_machine(facts, expect_gpus=expect, looked=looked)
    rules = tuple(rule for rule in base.rules if not any(fnmatchcase(rule.id, glob) or fnmatchcase(rule.cause, glob) for glob in ignore))
    judged = judge(rules, known, versions=_versions(known), skips=_unseen(skips, ran), sources=PROBE_SOURCES)
    related, sources = survey(judged.findings)
    return Report(
        command="check",
        inputs=inputs,
        run=Run(versions=_versions(known), attempts=1),
        root_cause=related.root_cause,
        confidence=related.confidence,
        action=related.action,
        hosts_to_exclude=related.hosts_to_exclude,
        diagnoses=related.diagnoses,
        not_checked=judged.not_checked,
        skips=tuple(skips),
        checks=_checks(ran, known, skips, related.diagnoses, sources, hosts),
    )


def _unseen(skips: Sequence[Skip], ran: Sequence[str]) -> list[Skip]:
    """``skips``, with the checks that were not asked for, and with what would be derived from the kinds that are missing."""
    missing = [*skips, *(Skip(name, "not asked for", probe.kinds) for name, probe in PROBES.items() if name not in ran)]
    return [
        Skip(skip.source, skip.reason, (*skip.kinds, *(kind for kind, bases in DERIVED.items() if set(bases).intersection(skip.kinds))))
        for skip in missing
    ]


def _versions(facts: Sequence[Fact]) -> dict[str, str]:
    """What `applies` of a rule is compared with."""
    versions = {
        str(fact.get("package")): str(fact.get("version")) for fact in facts if fact.kind == "stack.package" and fact.get("version")
    }
    for fact in facts:
        if fact.kind == "stack.torch":
            versions.update({name: str(fact.get(field)) for name, field in (("cuda", "cuda"), ("nccl", "nccl")) if fact.get(field)})
        elif fact.kind == "gpu.driver" and fact.get("driver"):
            versions["driver"] = str(fact.get("driver"))
    return versions


def _checks(
    ran: Sequence[str],
    facts: Sequence[Fact],
    skips: Sequence[Skip],
    diagnoses: Sequence[Diagnosis],
    sources: Mapping[str, frozenset[str]],
    hosts: int,
) -> tuple[Check, ...]:
    """One entry for each probe that was asked for: the worst first, then what was not looked at, then what is fine."""
    lines = summaries(facts)
    severity = {diagnosis.id: diagnosis.severity for diagnosis in diagnoses}
    found: list[tuple[tuple[int, int], Check]] = []
    for place, name in enumerate([*ran, *([NODES] if hosts > 1 else [])]):
        own = tuple(id_ for id_, where in sources.items() if PROBE + name in where)
        own = tuple(sorted(own, key=lambda id_: int(id_[1:])))
        worst = min((("error", "warning", "note").index(severity[id_]) for id_ in own), default=2)
        reasons = [skip.reason for skip in skips if skip.source == name]
        if name == NODES:
            lines[name] = f"{hosts} nodes"
        partly = any(skip.source == name and _NEEDS.get(name, set()) & set(skip.kinds) for skip in skips)
        seen = any(fact.origin.source == PROBE + name for fact in facts)
        if worst < 2:
            found.append(((worst, place), Check(name, "wrong", lines.get(name, ""), own)))
        elif (not seen and reasons) or (reasons and not _NEEDS.get(name, set()) <= {fact.kind for fact in facts}):
            found.append(((2, place), Check(name, "skipped", "; ".join(dict.fromkeys(reasons)), own)))
        elif partly and hosts == 1:  # the half that was looked at is no reason for a tick
            found.append(((2, place), Check(name, "skipped", "; ".join(dict.fromkeys([*reasons, *filter(None, [lines.get(name)])])), own)))
        else:
            found.append(((3, place), Check(name, "ok", lines.get(name) or EMPTY.get(name, ""), own)))
    return tuple(check for _, check in sorted(found, key=lambda pair: pair[0]))


# Kinds without which a probe has not done what it is for, though it may have learnt something.
_NEEDS = {"gpu": {"gpu.count", "gpu.device"}, "python": {"stack.torch"}, "kernels": {"kernel.run"}}


def _distinct(names: Sequence[str]) -> list[str]:
    """Host names, told apart where two files say the same one."""
    result: list[str] = []
    for name in names:
        result.append(name if name not in result else f"{name}#{sum(one.partition('#')[0] == name for one in result) + 1}")
    return result


def _merged(skips: Sequence[Skip], many: bool) -> tuple[Skip, ...]:
    """What could not be looked at on several nodes for one reason is told once."""
    if not many:
        return tuple(dict.fromkeys(skips))
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for skip in skips:
        host, _, reason = skip.reason.partition(": ")
        groups.setdefault((skip.source, reason, skip.kinds), []).append(host)
    return tuple(
        Skip(source, f"{hosts[0] if len(hosts) == 1 else f'{len(hosts)} nodes ({hosts[0]}, ...)'}: {reason}", kinds)
        for (source, reason, kinds), hosts in groups.items()
    )
