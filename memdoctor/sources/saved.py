"""Facts that `memdoctor check --save` wrote: read back with every field checked against the catalogue, because a file may be anybody's."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from memdoctor import catalog
from memdoctor.errors import InputError
from memdoctor.model import Fact, InputFile, Origin, Skip
from memdoctor.records import record

SCHEMA_VERSION = 1
MOST_BYTES = 64 << 20
MOST_FACTS = 200_000
UNUSABLE = "saved facts"  # the source of a skip that belongs to no check
MOST = 1 << 64  # no counter and no size of a machine is beyond it
MOST_GPUS = 1024
_NUMBERS = ("int", "float", "bytes", "seconds", "ms", "hex")
_NEVER_NEGATIVE = ("bytes", "seconds", "ms")
_WHOLE = ("int", "hex")


@record
class Saved:
    """What one file holds: the facts of one host, what could not be looked at there, and the checks that were made."""

    input: InputFile
    host: str
    facts: tuple[Fact, ...]
    skips: tuple[Skip, ...]
    ran: tuple[str, ...]
    expect_gpus: int | None = None


def read_saved(paths: Sequence[str]) -> tuple[list[Saved], list[Skip]]:
    """The files of ``paths``, and a skip for each that cannot be used; a folder stands for the .json files in it.

    A fact that cannot be one is left out, with a skip of the check that it belongs to.

    Raises InputError, naming file and fault, where none can be used.
    """
    files: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            inside = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".json"))
            if not inside:
                raise InputError(f"{path}: no .json file in this folder; `memdoctor check --save FILE` writes one")
            files += inside
        else:
            files.append(path)
    saved: list[Saved] = []
    faults: list[InputError] = []
    for path in dict.fromkeys(files):
        try:
            saved.append(_read(path))
        except InputError as error:
            faults.append(error)
    if not saved:
        raise faults[0]
    return saved, [Skip(UNUSABLE, str(fault)) for fault in faults]


def one_a_node(files: Sequence[Saved]) -> tuple[list[Saved], list[Skip]]:
    """Files of one node as one, and a skip that says so: of each check the later file counts.

    Machines of one name are several where their GPUs are different ones.
    """
    nodes: list[list[Saved]] = []
    for file in files:
        for node in nodes:
            if node[0].host == file.host and not _are_others(node[-1], file):
                node.append(file)
                break
        else:
            nodes.append([file])
    skips = [
        Skip(UNUSABLE, f"{node[0].host} has {len(node)} files; of each check the later one counts, {node[-1].input.path} the last")
        for node in nodes
        if len(node) > 1
    ]
    return [reduce(_over, node) for node in nodes], skips


def _are_others(one: Saved, other: Saved) -> bool:
    first, second = ({fact.get("uuid") for fact in saved.facts if fact.get("uuid")} for saved in (one, other))
    return bool(first and second and not first & second)


def _over(one: Saved, later: Saved) -> Saved:
    """``later``, with what it did not look at from ``one``."""
    facts = tuple(fact for fact in one.facts if fact.origin.source.removeprefix("probe.") not in later.ran)
    skips = tuple(skip for skip in one.skips if skip.source not in later.ran)
    expect = later.expect_gpus if later.expect_gpus is not None else one.expect_gpus
    ran = tuple(dict.fromkeys((*one.ran, *later.ran)))
    return replace(later, facts=facts + later.facts, skips=skips + later.skips, ran=ran, expect_gpus=expect)


def _read(path: str) -> Saved:
    try:
        size = os.path.getsize(path)
        if size > MOST_BYTES:
            raise InputError(f"{path}: larger than {MOST_BYTES >> 20} MiB; this is no file of saved facts")
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        data = json.loads(text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({str(error)[:100]}); saved facts are written by `memdoctor check --save FILE`") from error
    try:
        return _saved(path, size, text.count("\n"), data)
    except _Fault as fault:
        raise InputError(f"{path}: {fault}; saved facts are written by `memdoctor check --save FILE`") from fault


class _Fault(Exception):
    pass


def _saved(path: str, size: int, lines: int, data: Any) -> Saved:
    if not isinstance(data, dict) or not isinstance(data.get("facts"), list):
        raise _Fault("it holds no list `facts`")
    if data.get("schema_version") != SCHEMA_VERSION:
        raise _Fault(f"its schema_version is {data.get('schema_version')!r}, this version reads {SCHEMA_VERSION}")
    if len(data["facts"]) > MOST_FACTS:
        raise _Fault(f"it holds more than {MOST_FACTS:,} facts")
    host = _text(data.get("host"), "host")
    facts, left_out = _facts(data["facts"], host)
    skips = tuple(_skip(entry) for entry in _list(data.get("skips", []), "skips"))
    ran = tuple(_text(name, "an entry of probes") for name in _list(data.get("probes", []), "probes"))
    expect = data.get("expect_gpus")
    if expect is not None and (not isinstance(expect, int) or isinstance(expect, bool) or not 0 <= expect <= MOST_GPUS):
        raise _Fault(f"`expect_gpus` is no whole number from 0 to {MOST_GPUS}")
    skips += tuple(replace(skip, reason=f"{path}: {skip.reason}") for skip in left_out)
    return Saved(InputFile(path, size, lines), host, facts, skips, ran or _ran(facts, skips), expect)


def _facts(entries: Sequence[Any], host: str) -> tuple[tuple[Fact, ...], list[Skip]]:
    """The facts of one file, and a skip for those of each kind that can be none. Raises the first fault where not one can be used."""
    facts: list[Fact] = []
    faults: dict[tuple[str, str], list[_Fault]] = {}
    for number, entry in enumerate(entries, 1):
        try:
            facts.append(_fact(entry, number, host))
        except _Fault as fault:
            faults.setdefault(_belongs_to(entry), []).append(fault)
    if faults and not facts:
        raise next(iter(faults.values()))[0]
    skips = []
    for (source, kind), those in faults.items():
        more = f"; {len(those) - 1} more of this kind" if len(those) > 1 else ""
        skips.append(Skip(source, f"{those[0]}; left out{more}", (kind,) if kind else ()))
    return tuple(facts), skips


def _belongs_to(entry: Any) -> tuple[str, str]:
    """The check and the kind of an entry that is no fact, as far as they can be told."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    origin = entry.get("origin") if isinstance(entry, dict) else None
    source = origin.get("source") if isinstance(origin, dict) else None
    return (
        source.removeprefix("probe.") if isinstance(source, str) and source.startswith("probe.") else UNUSABLE,
        kind if isinstance(kind, str) and kind in catalog.KINDS else "",
    )


def _ran(facts: Sequence[Fact], skips: Sequence[Skip]) -> tuple[str, ...]:
    names = [fact.origin.source.removeprefix("probe.") for fact in facts] + [skip.source for skip in skips if skip.source != UNUSABLE]
    return tuple(dict.fromkeys(names))


def _fact(entry: Any, number: int, host: str) -> Fact:
    where = f"fact {number}"
    if not isinstance(entry, dict):
        raise _Fault(f"{where} is no object")
    name_of = entry.get("kind")
    kind = catalog.KINDS.get(name_of) if isinstance(name_of, str) else None
    if kind is None or "probe" not in kind.sources:
        raise _Fault(f"{where}: no probe yields the kind {str(name_of)[:100]!r}")
    fields: dict[str, Any] = {}
    given = entry.get("fields", {})
    if not isinstance(given, dict):
        raise _Fault(f"{where}: `fields` is no object")
    for name, value in given.items():
        type_ = kind.fields.get(name)
        if type_ is None:
            raise _Fault(f"{where}: {entry['kind']} has no field {name!r}")
        if value is not None:
            fields[name] = _value(value, type_, f"{where}, {name}")
    origin = entry.get("origin", {})
    if not isinstance(origin, dict):
        raise _Fault(f"{where}: `origin` is no object")
    line = origin.get("line")
    return Fact(
        entry["kind"],
        catalog.with_computed(entry["kind"], fields),
        Origin(
            _text(origin.get("source", "probe"), f"{where}, origin"),
            _text(origin["path"], f"{where}, origin") if origin.get("path") is not None else None,
            line if isinstance(line, int) and not isinstance(line, bool) else None,
            _text(origin.get("excerpt", ""), f"{where}, origin"),
        ),
        host=_text(entry.get("host", host), f"{where}, host"),
    )


def _value(value: Any, type_: str, where: str) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if type_ in _NUMBERS and number:
        return _number(value, type_, where)
    if type_ == "bool" and isinstance(value, bool):
        return value
    if type_ in ("str", "version") and isinstance(value, str):
        return value
    if type_ == "list" and isinstance(value, list):
        return tuple(str(one) for one in value)
    if type_ == "map" and isinstance(value, Mapping):
        return dict(value)
    raise _Fault(f"{where}: {type(value).__name__} where {type_} is wanted")


def _number(value: int | float, type_: str, where: str) -> int | float:
    if isinstance(value, float) and not math.isfinite(value):
        raise _Fault(f"{where}: {value} is no number")
    if abs(value) > MOST or (value < 0 and type_ in _NEVER_NEGATIVE):
        raise _Fault(f"{where}: {str(value)[:24]}{'...' if len(str(value)) > 24 else ''} is out of range")
    if type_ in _WHOLE and isinstance(value, float) and not value.is_integer():
        raise _Fault(f"{where}: {value} where a whole number is wanted")
    return value


def _skip(entry: Any) -> Skip:
    if not isinstance(entry, dict):
        raise _Fault("an entry of `skips` is no object")
    kinds = tuple(str(kind) for kind in _list(entry.get("kinds", []), "kinds") if str(kind) in catalog.KINDS)
    return Skip(_text(entry.get("source"), "source"), _text(entry.get("reason"), "reason"), kinds)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _Fault(f"`{what}` is no list")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise _Fault(f"`{what}` is no text")
    return value
