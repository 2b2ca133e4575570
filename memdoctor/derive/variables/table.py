"""The tables of variables (rules/tables/*_variables.yaml) as read, and the words in which they are applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any

from memdoctor.errors import RuleError
from memdoctor.records import record
from memdoctor.resources import rules_dir

FILES = ("nccl_variables.yaml", "torch_variables.yaml")


@record
class Context:
    """What else is known of the host and the job; None where it is not, and then nothing is concluded from it.

    ``interfaces`` and ``devices`` are names of network interfaces and RDMA devices; ``gpus`` the number of GPUs, ``gpu_ids`` their UUIDs;
    ``absent`` the variables whose file is not there, ``cut`` those of which only the beginning of the value is known; ``versions`` those of the
    libraries (nccl, torch), by which names come and go; ``facts`` numbers and words that contradictions may ask for (arch, tp, cp, fsdp,
    nodes, cpus, zero_stage, ...).
    """

    interfaces: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    gpus: int | None = None
    gpu_ids: tuple[str, ...] | None = None
    archs: tuple[str, ...] | None = None
    absent: frozenset[str] = frozenset()
    cut: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@record
class Verdict:
    """One thing that is wrong with ``variable``; ``problem`` is a name of the kind env.variable in the catalogue.

    ``read`` is what the library makes of the value, ``meant`` what was probably meant (a name or a value), ``use`` what to do in its place,
    ``other`` the variable (or fact) that speaks against it.
    """

    variable: str
    value: str
    problem: str
    text: str = ""
    read: str | None = None
    meant: str | None = None
    use: str | None = None
    other: str | None = None


@record
class Table:
    """``entries``: name -> the keys that the head of nccl_variables.yaml explains."""

    entries: Mapping[str, Mapping[str, Any]]
    foreign: tuple[str, ...]
    contradictions: tuple[Mapping[str, Any], ...]


@cache
def load_table() -> Table:
    """Both tables as one. Raises RuleError where one of them is unreadable."""
    import yaml

    entries: dict[str, Mapping[str, Any]] = {}
    foreign: list[str] = []
    contradictions: list[Mapping[str, Any]] = []
    for name in FILES:
        path = rules_dir() / "tables" / name
        try:
            data = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            entries.update(data["variables"])
            foreign += data.get("foreign", [])
            contradictions += data.get("contradictions", [])
        except (OSError, UnicodeDecodeError, yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
            raise RuleError(str(path), None, f"not a table of variables: {error}", "take the one that came with memdoctor") from error
    return Table(entries, tuple(foreign), tuple(contradictions))
