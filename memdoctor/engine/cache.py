"""The built-in rules as they were last read (kept.py): a start need not read hundreds of signals as YAML.

The file: a line with the checksum of the rest, a line with the heads, then each signal and each rule on a line of its own, which is not
even looked at until it is needed.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import memdoctor
from memdoctor import kept, model
from memdoctor.engine import schema
from memdoctor.shelf import Shelf

_KEPT: Mapping[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        model.Signal, model.Fix, schema.Rule, schema.Explains, schema.Comparison, schema.Count, schema.Leaf, schema.AllOf, schema.AnyOf, schema.NoneOf,
    )
}  # fmt: skip


_START = 9  # where the heads begin, behind the checksum


def state(folder: str) -> str:
    """A name for the state of ``folder`` and of the code that reads it: it changes with each file's size or time of change. "" if unknown."""
    package = os.path.dirname(memdoctor.__file__)
    seen = [f"{memdoctor.__version__} {sys.version}"]
    try:
        with os.scandir(folder) as parts:
            folders = [part.path for part in parts if part.is_dir()]
        for place in sorted([*folders, package, os.path.join(package, "engine"), os.path.join(package, "repro")]):
            if os.path.isdir(place):
                seen += _files(place)
    except OSError:
        return ""
    text = "\n".join(seen).encode("utf-8", "surrogateescape")
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"  # against accident: only the owner writes there


def _files(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        found = [(entry.path, entry.stat()) for entry in entries if entry.is_file()]
    return sorted(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in found)


def get(name: str) -> schema.Base | None:
    """The base that was kept under ``name``, or None."""
    data = kept.get_bytes("rules", f"{name}.jsonl") if name else None
    try:
        if not data or data[:_START] != _checksum(memoryview(data)[_START:]):
            return None
        end = data.index(b"\n", _START)
        heads = json.loads(data[_START:end])
        signals, rules, causes = heads["signals"], heads["rules"], frozenset(heads["causes"])
        if data.count(b"\n", end + 1) != len(signals) + len(rules):
            return None
    except Exception:  # it is no base
        return None
    lines: list[bytes] = []

    def made(number: int) -> Any:
        if not lines:
            lines.extend(data[end + 1 :].split(b"\n"))
        return _revived(lines[number])

    return schema.Base(Shelf(signals, made), Shelf(rules, lambda number: made(len(signals) + number)), causes)


def put(name: str, base: schema.Base) -> None:
    """Keep ``base``, which is free of errors; older states are removed. Does nothing where that is not possible."""
    heads = {
        "signals": [model.signal_head(signal) for signal in base.signals],
        "rules": [schema.rule_head(rule) for rule in base.rules],
        "causes": sorted(base.causes),
    }
    rest = b"".join(map(_line, [heads, *map(_encode, base.signals), *map(_encode, base.rules)]))
    if name:
        kept.put_bytes("rules", f"{name}.jsonl", _checksum(rest) + rest)


def _checksum(data: bytes | memoryview) -> bytes:
    return f"{zlib.crc32(data):08x}\n".encode()


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _revived(line: bytes) -> Any:
    return json.loads(line, object_hook=_revive)


def _encode(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__name__, "values": [_encode(getattr(value, field.name)) for field in fields(value)]}
    if isinstance(value, (tuple, frozenset)):
        items = [_encode(item) for item in (sorted(value) if isinstance(value, frozenset) else value)]
        return items if isinstance(value, tuple) else {"set": items}
    if isinstance(value, Mapping):
        return {"map": [[name, _encode(item)] for name, item in value.items()]}  # pairs, as a name may be one of ours
    return value


def _revive(value: dict[str, Any]) -> Any:
    """What an object of the JSON stands for; what it holds is there already."""
    if "class" in value:
        return _KEPT[value["class"]](*[_tuple(item) if type(item) is list else item for item in value["values"]])
    if "map" in value:
        return {name: _tuple(item) if type(item) is list else item for name, item in value["map"]}
    return frozenset(value["set"])


def _tuple(items: list[Any]) -> tuple[Any, ...]:
    return tuple([_tuple(item) if type(item) is list else item for item in items])
