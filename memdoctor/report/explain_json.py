"""What `memdoctor explain` knows, for programs: one object with `cause`, `rule` or `matches`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from memdoctor import __version__
from memdoctor.handbook.entries import CauseEntry, RuleEntry
from memdoctor.report.text import unseen_escaped, valid


def cause(entry: CauseEntry) -> str:
    fields = asdict(entry)
    fields["rules"] = [_rule(each) for each in entry.rules]
    return _object({"cause": fields})


def rule(entry: RuleEntry) -> str:
    return _object({"rule": _rule(entry)})


def listing(found: Sequence[tuple[str, str]]) -> str:
    return _object({"matches": [{"id": id_, "title": title} for id_, title in found]})


def _rule(entry: RuleEntry) -> dict[str, Any]:
    return {**asdict(entry), "applies": dict(entry.applies)}


def _object(content: Mapping[str, Any]) -> str:
    head = {"schema_version": 1, "memdoctor": __version__, "command": "explain"}
    return unseen_escaped(valid(json.dumps({**head, **content}, ensure_ascii=False, indent=1))) + "\n"
