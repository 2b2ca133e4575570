"""Folders of rules → Signal and Rule objects, or every fault in them with file and line.

``python -m memdoctor.engine.load [DIR]`` checks a folder (without DIR the built-in rules) and prints what is wrong, one fault a line.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memdoctor import catalog, resources
from memdoctor.engine import yaml_strict
from memdoctor.engine.conditions import Names
from memdoctor.engine.fields import Faults, suggest
from memdoctor.engine.rules import Known, read_rule
from memdoctor.engine.schema import Rule
from memdoctor.engine.signals import read_signals
from memdoctor.engine.yaml_strict import Keys, Node
from memdoctor.errors import InputError, MemdoctorError, RuleError
from memdoctor.model import Signal

RESERVED = ("signals", "tables")
# Kinds that code makes, too: no list of signals holds all their names.
DERIVED = ("run.ended", "progress", "series.numerics", "exception", "error.line", "gpu.state")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Base:
    """What one or several folders hold. ``errors`` is empty where all of it is sound."""

    signals: tuple[Signal, ...]
    rules: tuple[Rule, ...]
    errors: tuple[RuleError, ...] = ()


def load_signals(dirs: Sequence[Path]) -> tuple[Signal, ...]:
    """The signals of all ``dirs``. Raises RuleError (a broken file) or InputError (no rules in a folder)."""
    return load(dirs).signals


def load_rules(dirs: Sequence[Path]) -> tuple[Rule, ...]:
    """The rules of all ``dirs``, which may name what earlier ones hold. Raises as ``load_signals``."""
    return load(dirs).rules


def load(dirs: Sequence[Path]) -> Base:
    """Signals and rules of the built-in folder and of the user's own. Raises the first RuleError, or InputError."""
    base = read(dirs)
    if base.errors:
        raise base.errors[0]
    return base


def read(dirs: Sequence[Path], *, thorough: bool | None = None) -> Base:
    """As ``load``, but a fault is data: whatever is sound is there, and ``errors`` holds all faults of all files.

    ``thorough`` compiles every pattern and tries it on its sample. By default that is left out for the built-in folder alone: its tests
    have done it, and it takes longer than reading a log.
    """
    signals: list[Signal] = []
    errors: list[RuleError] = []
    causes: set[str] = set()
    for folder in dirs:
        for path in _files(folder, errors):
            place = path.relative_to(folder)
            if place.parts[0] == "signals":
                deep = thorough if thorough is not None else not _is_builtin(folder)
                node, faults = _parse(path)
                if node is not None:
                    signals += read_signals(node, faults, thorough=deep)
                errors += faults.errors
        causes |= _causes(folder, errors)
    errors += _twice(signals)
    known = Known(frozenset(causes), _repros(), _names(signals))
    rules: dict[str, Rule] = {}
    over: list[tuple[Rule, dict[str, int]]] = []
    broken: set[str] = set()
    for folder in dirs:
        for path in _files(folder, []):
            place = path.relative_to(folder)
            if place.parts[0] in RESERVED:
                continue
            id_ = place.with_suffix("").as_posix()
            node, faults = _parse(path)
            if node is not None:
                rule, beaten = read_rule(node, faults, known, id_)
                if id_ in rules:
                    faults.add(
                        1, f"there is a rule '{id_}' already, in {rules[id_].path}", "give this one another name; 'over' beats the other"
                    )
                elif rule is not None:
                    rules[id_] = rule
                    over.append((rule, dict(beaten)))
            if id_ not in rules:
                broken.add(id_)
            errors += faults.errors
    for rule, beaten in over:
        for name, line in beaten.items():
            if name == rule.id:
                errors.append(RuleError(rule.path, line, "a rule cannot be over itself", ""))
            if name not in rules and name not in broken:
                errors.append(RuleError(rule.path, line, f"'over' names the rule '{name}', which does not exist", suggest(name, rules)))
    return Base(tuple(signals), tuple(rules.values()), tuple(errors))


def _files(folder: Path, errors: list[RuleError]) -> list[Path]:
    """The YAML files of a folder, sorted; a misplaced one is a fault."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of rules")
    found = []
    for top, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            path = Path(top, name)
            if name.startswith(".") or path.suffix not in (".yaml", ".yml"):
                continue
            parts = path.relative_to(folder).parts
            shown = _shown(path)
            if path.suffix == ".yml":
                errors.append(RuleError(shown, None, "the file name ends in .yml", "call it .yaml"))
            elif len(parts) != 2:
                errors.append(
                    RuleError(shown, None, "a rule file lies in <area>/<slug>.yaml", "signals lie in signals/, tables in tables/")
                )
            elif parts[0] not in RESERVED and not all(_SLUG.fullmatch(part) for part in (parts[0], path.stem)):
                errors.append(RuleError(shown, None, "area and slug are lower case letters, digits, - and _", "such as oom/logits.yaml"))
            else:
                found.append(path)
    if not found and not errors:
        raise InputError(f"{folder}: no rules in it; rules lie in <area>/<slug>.yaml, signals in signals/<topic>.yaml")
    return found


def _shown(path: Path) -> str:
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return str(path)


def _parse(path: Path) -> tuple[Node | None, Faults]:
    faults = Faults(_shown(path))
    try:
        if path.stat().st_size > yaml_strict.MAX_BYTES:
            faults.add(None, "the file is larger than 1 MiB", "")
            return None, faults
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        faults.add(line, "not UTF-8", "save the file as UTF-8")
        return None, faults
    except OSError as error:
        faults.add(None, f"cannot be read: {error.strerror}", "")
        return None, faults
    return yaml_strict.parse(text, faults.add), faults


def _causes(folder: Path, errors: list[RuleError]) -> set[str]:
    path = folder / "tables" / "causes.yaml"
    if not path.is_file():
        return set()
    node, faults = _parse(path)
    errors += faults.errors
    causes = node.nodes.get("causes") if isinstance(node, Keys) else None
    return set(causes.nodes) if isinstance(causes, Keys) else set()


def _repros() -> frozenset[str]:
    folder = Path(resources.__file__).parent / "repro"
    return frozenset(path.stem for path in folder.glob("[!_]*.py"))


def _is_builtin(folder: Path) -> bool:
    try:
        return folder.resolve() == resources.rules_dir().resolve()
    except (OSError, MemdoctorError):
        return False


def _twice(signals: list[Signal]) -> list[RuleError]:
    seen: dict[str, Signal] = {}
    errors = []
    for signal in signals:
        first = seen.setdefault(signal.id, signal)
        if first is not signal:
            errors.append(RuleError(signal.path, signal.line, f"there is a signal '{signal.id}' already", f"in {first.path}:{first.line}"))
    return errors


def _names(signals: list[Signal]) -> Names:
    """A check of the names that rules ask for: a name that nothing makes would be a rule that never fires."""
    made: dict[str, set[str]] = {}
    free = set(DERIVED)
    for signal in signals:
        if "(?P<name>" in signal.match + " ".join((*signal.more, *signal.rows)):
            free.add(signal.fact)
        made.setdefault(signal.fact, set()).add(str(signal.set.get("name", "")))

    def problem(kind: str, name: str) -> str | None:
        if kind in free or kind not in made or name in made[kind]:
            return None
        if name in re.findall(r"\w+", catalog.KINDS[kind].doc):  # a name of the catalogue: readers of other formats may make it
            return None
        return suggest(name, made[kind], list_up_to=30) or f"see signals of the kind {kind}"

    return problem


def main(arguments: Sequence[str]) -> int:
    dirs = [resources.rules_dir()]
    for argument in arguments:
        if not _is_builtin(Path(argument)):
            dirs.append(Path(argument))
    try:
        base = read(dirs, thorough=True)
    except MemdoctorError as error:
        print(error)
        return error.exit_code
    for fault in base.errors:
        print(fault)
    print(f"{len(base.signals)} signals, {len(base.rules)} rules" + (f", {len(base.errors)} faults" if base.errors else ""))
    return 2 if base.errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
