"""The built-in rules as they were last read, kept in the user's cache folder: a start need not read hundreds of signals as YAML.

What is kept is JSON, so a file that somebody managed to change there holds wrong rules at worst, and only the owner can change it. Whatever goes
wrong, the rules are read anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import memdoctor
from memdoctor import model, resources
from memdoctor.engine import schema

_KEPT: Mapping[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        model.Signal, model.Fix, schema.Rule, schema.Explains, schema.Comparison, schema.Count, schema.Leaf, schema.AllOf, schema.AnyOf, schema.NoneOf, schema.Base,
    )
}  # fmt: skip
KEEP = 4  # states: of a few versions side by side


def state(folder: Path) -> str:
    """A name for the state of ``folder`` and of the code that reads it: it changes with each file's size or time of change. "" if unknown."""
    package = Path(memdoctor.__file__).parent
    digest = hashlib.sha256(f"{memdoctor.__version__} {sys.version} {folder}".encode())
    try:
        for path in sorted([*folder.glob("*/*"), *package.glob("engine/*.py"), *package.glob("repro/*.py"), *package.glob("*.py")]):
            status = path.stat()
            digest.update(f"\n{path} {status.st_size} {status.st_mtime_ns}".encode())
    except OSError:
        return ""
    return digest.hexdigest()[:32]


def get(name: str) -> Any:
    """What was kept under ``name``, or None."""
    if not name:
        return None
    try:
        descriptor = os.open(resources.cache_dir() / f"rules-{name}.json", os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022 or not stat.S_ISREG(status.st_mode)):
                return None
            return _decode(json.load(file))
    except Exception:  # a cache must never be the reason why nothing works
        return None


def put(name: str, value: Any) -> None:
    """Keep ``value``; older states are removed. Does nothing where that is not possible."""
    if not name:
        return
    with contextlib.suppress(Exception):
        folder = resources.cache_dir()
        text = json.dumps(_encode(value), separators=(",", ":"))
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix="rules-", suffix=".tmp")  # mode 0600
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, folder / f"rules-{name}.json")
        except BaseException:
            os.unlink(temporary)
            raise
        kept = sorted(folder.glob("rules-*.json"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-KEEP]:
            path.unlink()


def _encode(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__name__, "values": [_encode(getattr(value, field.name)) for field in fields(value)]}
    if isinstance(value, (tuple, frozenset)):
        items = [_encode(item) for item in (sorted(value) if isinstance(value, frozenset) else value)]
        return items if isinstance(value, tuple) else {"set": items}
    if isinstance(value, Mapping):
        return {"map": {name: _encode(item) for name, item in value.items()}}
    return value


def _decode(value: Any) -> Any:
    if type(value) is list:
        return tuple([_decode(item) if type(item) in (list, dict) else item for item in value])
    if type(value) is not dict:
        return value
    if "class" in value:
        return _KEPT[value["class"]](*[_decode(item) if type(item) in (list, dict) else item for item in value["values"]])
    if "map" in value:
        return {name: _decode(item) for name, item in value["map"].items()}
    return frozenset(value["set"])
