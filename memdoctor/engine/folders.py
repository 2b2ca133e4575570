"""Which files of a folder are rules, signals or tables, and the reading of one of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from memdoctor.engine import yaml_strict
from memdoctor.engine.fields import Faults
from memdoctor.engine.yaml_strict import Node
from memdoctor.errors import InputError, RuleError

RESERVED = ("signals", "tables")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*")


def rule_files(folder: Path, errors: list[RuleError]) -> list[Path]:
    """The YAML files of a folder, sorted; a misplaced one goes to ``errors``. Raises InputError where there is none at all."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of rules")
    found = []
    before = len(errors)
    for top, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            path = Path(top, name)
            if name.startswith(".") or path.suffix not in (".yaml", ".yml"):
                continue
            problem = _misplaced(path.relative_to(folder))
            if problem is None:
                found.append(path)
            else:
                errors.append(RuleError(str(path), 1, *problem))
    if not found and len(errors) == before:
        raise InputError(f"{folder}: no rules in it; rules lie in <area>/<slug>.yaml, signals in signals/<topic>.yaml")
    return found


def _misplaced(place: Path) -> tuple[str, str] | None:
    parts = place.parts
    if place.suffix == ".yml":
        return "the file name ends in .yml", "call it .yaml"
    if len(parts) != 2:
        return "a rule file lies in <area>/<slug>.yaml", "signals lie in signals/, tables in tables/"
    if parts[0] not in RESERVED and not all(_SLUG.fullmatch(part) for part in (parts[0], place.stem)):
        return "area and slug are lower case letters, digits, - and _", "such as oom/logits.yaml"
    return None


def parse_file(path: Path) -> tuple[Node | None, Faults]:
    """The document of a file (None where it cannot be read) and the faults found so far."""
    faults = Faults(str(path))
    try:
        if path.stat().st_size > yaml_strict.MAX_BYTES:
            faults.add(1, "the file is larger than 1 MiB", "")
            return None, faults
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        faults.add(line, "not UTF-8", "save the file as UTF-8")
        return None, faults
    except OSError as error:
        gone = path.is_symlink() and not path.exists()
        faults.add(1, "a link to a file that is not there" if gone else f"cannot be read: {error.strerror}", "")
        return None, faults
    return yaml_strict.parse(text, faults.add), faults
