"""Small helpers: facts by host, the fields of one fact, facts made from others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from memdoctor import catalog
from memdoctor.errors import RuleError
from memdoctor.model import Fact
from memdoctor.resources import rules_dir


def by_host(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    hosts: dict[str, list[Fact]] = {}
    for fact in facts:
        hosts.setdefault(fact.host or "", []).append(fact)
    return hosts


def of_kind(facts: Sequence[Fact], kind: str, **fields: Any) -> list[Fact]:
    """The facts of ``kind`` whose fields have these values."""
    return [fact for fact in facts if fact.kind == kind and all(fact.get(name) == value for name, value in fields.items())]


def first(facts: Sequence[Fact], kind: str, **fields: Any) -> Mapping[str, Any]:
    """The fields of the first fact of ``kind``; empty where there is none."""
    return next((fact.fields for fact in of_kind(facts, kind, **fields)), {})


def completed(fact: Fact, **fields: Any) -> Fact:
    """``fact`` with further fields, and the computed ones anew; None leaves a field as it is."""
    known = {**fact.fields, **{name: value for name, value in fields.items() if value is not None}}
    return replace(fact, fields=catalog.with_computed(fact.kind, known))


def derived(kind: str, source: Fact, **fields: Any) -> Fact:
    """A fact of ``kind`` that follows from ``source``, with its origin and host."""
    known = {name.rstrip("_"): value for name, value in fields.items() if value is not None}
    return replace(source, kind=kind, fields=catalog.with_computed(kind, known))


@cache
def table(name: str) -> Mapping[str, Any]:
    """rules/tables/<name>.yaml. Raises RuleError where it cannot be read."""
    import yaml

    path = rules_dir() / "tables" / f"{name}.yaml"
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RuleError(str(path), None, f"cannot be read: {error}", "take the one that came with memdoctor") from error
    return data if isinstance(data, Mapping) else {}


def version(text: Any) -> tuple[int, ...]:
    """``"12.8.1+x"`` -> (12, 8, 1); () where it is no version."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", str(text or ""))
    return tuple(int(part) for part in match[1].split(".")) if match is not None else ()
