"""What one folder adds to the rules read so far: its files read, checked for themselves and against each other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from memdoctor import catalog, resources
from memdoctor.engine.conditions import Names
from memdoctor.engine.folders import RESERVED, parse_file, rule_files
from memdoctor.engine.globs import fits
from memdoctor.engine.rules import Known, read_rule
from memdoctor.engine.schema import Base, Rule
from memdoctor.engine.signals import read_signals
from memdoctor.engine.yaml_strict import Keys
from memdoctor.errors import RuleError, suggest
from memdoctor.model import Signal

# Kinds that code makes, too: no list of signals holds all their names.
DERIVED = ("run.ended", "progress", "series.numerics", "exception", "error.line", "last.words", "gpu.state")


def extend(base: Base, folder: Path, *, thorough: bool) -> Base:
    """``base`` and what ``folder`` adds to it."""
    errors: list[RuleError] = []
    files: dict[str, list[Path]] = {"signals": [], "tables": [], "": []}
    for path in rule_files(folder, errors):
        area = path.parent.name
        if area == "tables" and base.causes:
            hint = "a rule of one's own names one of memdoctor's causes; the cause job.code has room for any fault of a program"
            errors.append(RuleError(str(path), 1, "tables are memdoctor's own: this file would not be read", hint))
            continue
        files[area if area in RESERVED else ""].append(path)
    signals = [*base.signals, *_signals(files["signals"], errors, thorough)]
    errors += _twice(signals[len(base.signals) :], base.signals)
    causes = base.causes | _causes(files["tables"], errors)
    known = Known(causes, _repros(), _names(signals))
    rules = {rule.id: rule for rule in base.rules}
    beaten: dict[str, Mapping[str, int]] = {}
    broken: set[str] = set()
    for path in files[""]:
        id_ = f"{path.parent.name}/{path.stem}"
        node, faults = parse_file(path)
        rule = None
        if id_ in rules:
            faults.add(1, f"there is a rule '{id_}' already, in {rules[id_].path}", "give this one another name; 'over' beats the other")
        elif node is not None:
            rule, over = read_rule(node, faults, known, id_)
        if rule is not None:
            rules[id_], beaten[id_] = rule, over
        else:
            broken.add(id_)
        errors += faults.errors
    for id_, over in beaten.items():
        errors += _check_over(rules[id_], over, {*rules, *broken})
    errors += _circles(rules, beaten)
    return Base(tuple(signals), tuple(rules.values()), causes, base.errors + tuple(errors))


def _signals(files: list[Path], errors: list[RuleError], thorough: bool) -> list[Signal]:
    signals: list[Signal] = []
    for path in files:
        node, faults = parse_file(path)
        if node is not None:
            signals += read_signals(node, faults, thorough=thorough)
        errors += faults.errors
    return signals


def _twice(signals: Sequence[Signal], earlier: Sequence[Signal]) -> list[RuleError]:
    seen = {signal.id: signal for signal in earlier}
    errors = []
    for signal in signals:
        first = seen.setdefault(signal.id, signal)
        if first is not signal:
            errors.append(RuleError(signal.path, signal.line, f"there is a signal '{signal.id}' already", f"in {first.path}:{first.line}"))
    return errors


def _causes(files: list[Path], errors: list[RuleError]) -> set[str]:
    for path in files:
        if path.name == "causes.yaml":
            node, faults = parse_file(path)
            errors += faults.errors
            causes = node.nodes.get("causes") if isinstance(node, Keys) else None
            return set(causes.nodes) if isinstance(causes, Keys) else set()
    return set()


def _check_over(rule: Rule, over: Mapping[str, int], known: set[str]) -> list[RuleError]:
    errors = []
    for name, line in over.items():
        if name == rule.id:
            errors.append(RuleError(rule.path, line, "a rule cannot be over itself"))
        elif "*" not in name and name not in known:
            errors.append(RuleError(rule.path, line, f"'over' names the rule '{name}', which does not exist", suggest(name, known)))
    return errors


def _circles(rules: Mapping[str, Rule], beaten: Mapping[str, Mapping[str, int]]) -> list[RuleError]:
    """Rules that are over each other, maybe by way of others: none of them would ever win. ``beaten``: the lines of those that are new."""
    below = {
        id_: [other for other in rules if other != id_ and any(fits(other, name) for name in rule.over)]
        for id_, rule in rules.items()
        if rule.over
    }
    errors: list[RuleError] = []
    told: set[str] = set()
    for id_, over in beaten.items():
        way = [] if id_ in told else _way_back(id_, below)
        if way:
            told.update(way)
            line = next((line for name, line in over.items() if fits(way[0], name)), None)
            circle = " > ".join([id_, *way])
            errors.append(RuleError(rules[id_].path, line, f"'over' goes in a circle: {circle}", "take one of them out"))
    return errors


def _way_back(start: str, below: Mapping[str, Sequence[str]]) -> list[str]:
    """The shortest way from ``start`` over the rules below it back to itself; [] where there is none."""
    came: dict[str, str] = {}
    ring = [start]
    for id_ in ring:
        for other in below.get(id_, ()):
            if other in came:
                continue
            came[other] = id_
            if other == start:
                way = [start]
                while (previous := came[way[0]]) != start:
                    way.insert(0, previous)
                return way
            ring.append(other)
    return []


def _repros() -> frozenset[str]:
    folder = Path(resources.__file__).parent / "repro"
    return frozenset(path.stem for path in folder.glob("[!_]*.py"))


def _names(signals: Sequence[Signal]) -> Names:
    """A check of the names that rules ask for: a name that nothing makes would be a rule that never fires."""
    made: dict[str, set[str]] = {}
    free = set(DERIVED)
    for signal in signals:
        if any("(?P<name>" in text for text in (signal.match, *signal.more, *signal.rows, signal.until or "")):
            free.add(signal.fact)
        made.setdefault(signal.fact, set()).add(str(signal.set.get("name", "")))

    def problem(kind: str, name: str) -> str | None:
        if kind not in made and kind not in free and "probe" in catalog.KINDS[kind].sources:  # no signals: its names are in the catalogue
            words = re.findall(r"\w+", catalog.KINDS[kind].doc)
            return None if name in words else f"its names are in the catalogue: {catalog.KINDS[kind].doc}"
        if kind in free or kind not in made or name in made[kind]:
            return None
        if name in re.findall(r"\w+", catalog.KINDS[kind].doc):  # a name of the catalogue: readers of other formats may make it
            return None
        return suggest(name, made[kind], list_up_to=30) or f"see the signals of the kind {kind}"

    return problem
