"""One rule file → a Rule, checked against the catalogue; what concerns several files is checked in load.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from memdoctor import catalog
from memdoctor.engine import message, schema, versions
from memdoctor.engine.conditions import Names, field_type, read_condition
from memdoctor.engine.fields import Faults, Reader
from memdoctor.engine.schema import AllOf, Condition, Explains, Leaf, Rule, first_leaves, first_part, leaves
from memdoctor.engine.yaml_strict import Items, Keys, Node, Text
from memdoctor.errors import suggest
from memdoctor.model import CONFIDENCES, SEVERITIES, Fix
from memdoctor.records import record

KEYS = (
    "id", "cause", "title", "status", "severity", "confidence", "applies", "when", "about", "over", "message", "why", "fixes", "action",
    "not_this", "explains", "refs",
)  # fmt: skip
REQUIRED = ("id", "cause", "title", "status", "severity", "confidence", "when", "message", "why", "action")
FIX_KEYS = ("id", "do", "framework", "command", "config", "risk", "saves", "repro")
FRAMEWORKS = (
    "torch", "pytorch", "megatron-lm", "megatron-core", "deepspeed", "nccl", "transformer-engine", "apex", "transformers", "accelerate",
    "lightning", "nemo", "flash-attn", "triton", "cuda", "driver", "python", "slurm", "torchrun", "xformers", "bitsandbytes", "peft",
)  # fmt: skip
_FIX_ID = re.compile(r"[a-z0-9][a-z0-9_-]*")


@record
class Known:
    """What a rule may name: causes, repros, and names of facts."""

    causes: frozenset[str]
    repros: frozenset[str]
    names: Names


def read_rule(node: Node, faults: Faults, known: Known, id_: str) -> tuple[Rule | None, Mapping[str, int]]:
    """The rule of the file whose path asks for the id ``id_`` (None where it is unusable), and the lines of the rules it names in ``over``."""
    reader = Reader(node, faults, "the rule", KEYS, REQUIRED)
    given = reader.text("id")
    if given and given != id_:
        faults.add(reader.nodes["id"], f"the id is '{given}', but the path says '{id_}'", "the id of a rule is its path")
    cause = reader.text("cause")
    if cause and cause not in known.causes:
        faults.add(reader.nodes["cause"], f"no cause is called '{cause}'", suggest(cause, known.causes))
    status = reader.choice("status", schema.STATUSES)
    severity = reader.choice("severity", SEVERITIES)
    for key in ("title", "message", "why"):
        reader.text(key, optional=False)
    if status == "stable":
        for key in ("not_this", "fixes"):
            if not reader.has(key) and not (key == "fixes" and severity == "note"):
                faults.add(reader.line, f"a stable rule needs '{key}'", "")
    before = len(faults.errors)
    when = read_condition(reader.nodes["when"], faults, known.names) if "when" in reader.nodes else None
    about = reader.text("about") or None
    text = reader.text("message", one_line=True)
    if when is not None and len(faults.errors) == before:
        _check_event(reader, when, about, text, faults)
    over = reader.texts("over", single=True)
    rule = Rule(
        id=id_,
        cause=cause,
        title=reader.text("title", one_line=True),
        status=status,
        severity=cast(Any, severity),
        confidence=cast(Any, reader.choice("confidence", CONFIDENCES)),
        when=when if when is not None else AllOf(()),
        message=text,
        why=reader.text("why"),
        action=reader.choice("action", schema.ACTIONS),
        not_this=reader.text("not_this"),
        applies=_applies(reader, faults),
        about=about,
        over=tuple(name for name, _ in over),
        fixes=_fixes(reader, faults, known, severity),
        explains=_explains(reader, faults, known),
        refs=_refs(reader, faults),
        path=faults.path,
    )
    return (None if faults.errors else rule), dict(over)


def _check_event(reader: Reader, when: Condition, about: str | None, text: str, faults: Faults) -> None:
    positive = leaves(when)
    if not positive:
        faults.add(reader.nodes["when"], "'when' asks for no fact that is there", "a condition that is not under 'none' is the event")
        return
    if about is not None and about not in {leaf.fact for leaf in positive}:
        faults.add(
            reader.nodes["about"], f"'about' is '{about}', but no condition asks for it", suggest(about, {leaf.fact for leaf in positive})
        )
        return
    events = first_leaves(when, about)
    kinds = sorted({leaf.fact for leaf in events})
    joined = next((leaf for leaf in events if leaf.same and leaf.count is None), None)
    if joined is not None:
        node = _with_same(reader.nodes["when"], joined.fact) or reader.nodes["when"]
        faults.add(
            node,
            f"'same' joins a fact with the first one, and this {joined.fact} is the first",
            "take it out; with a count it counts for each rank or host on its own",
        )
    where = reader.nodes.get("message")
    try:
        parts = message.parse(text)
    except ValueError as error:
        faults.add(where, f"the message does not parse: {error}", "")
        return
    for part in parts:
        for name in part.fields:
            lacking = [kind for kind in kinds if name not in message.SPECIAL and field_type(kind, name) is None]
            if len(lacking) == len(kinds):
                known = [
                    *message.SPECIAL,
                    *(field for kind in kinds for field in (*catalog.KINDS[kind].fields, *catalog.KINDS[kind].computed)),
                ]
                faults.add(
                    where, f"the message names '{{{name}}}', which is no field of {' or '.join(kinds)}", suggest(name, known, list_up_to=30)
                )
            elif lacking and not part.optional:
                faults.add(where, f"the message names '{{{name}}}', which {', '.join(lacking)} has not", "put that part in [...]")
    for leaf, first in _scopes(when, about, None):
        _check_references(reader, leaf, first, faults)


def _with_same(node: Node, kind: str) -> Node | None:
    """The first condition on facts of ``kind`` that has a ``same``."""
    if isinstance(node, Keys):
        fact = node.nodes.get("fact")
        if isinstance(fact, Text) and fact.value == kind and "same" in node.nodes:
            return node.nodes["same"]
    parts = node.nodes.values() if isinstance(node, Keys) else node.nodes if isinstance(node, Items) else ()
    return next((found for part in parts if (found := _with_same(part, kind)) is not None), None)


def _scopes(condition: Condition, about: str | None, first: list[str] | None) -> list[tuple[Leaf, list[str]]]:
    """Every leaf with the kinds that its first fact may have: those of the event of its own branch (``first`` None: it holds the event)."""
    if isinstance(condition, Leaf):
        return [(condition, [condition.fact] if first is None else first)]
    event = first_part(condition, about) if isinstance(condition, AllOf) and first is None else None
    beside = first if event is None else sorted({leaf.fact for leaf in first_leaves(event, about)})
    return [scope for part in condition.parts for scope in _scopes(part, about, None if part is event else beside)]


def _check_references(reader: Reader, leaf: Leaf, kinds: list[str], faults: Faults) -> None:
    for test in leaf.where:
        if test.of_first is None:
            continue
        having = [kind for kind in kinds if field_type(kind, test.of_first) is not None]
        if not having:
            fields = {field for kind in kinds for field in catalog.KINDS[kind].fields}
            faults.add(
                reader.nodes["when"], f"$first.{test.of_first}: {' or '.join(kinds)} has no such field", suggest(test.of_first, fields)
            )
        for kind in having:
            other = field_type(kind, test.of_first)
            if _family(test.type) != _family(other):
                faults.add(
                    reader.nodes["when"], f"'{test.field}' is of the type {test.type}, $first.{test.of_first} of the type {other}", ""
                )


def _family(type_: str | None) -> str:
    return {"int": "number", "float": "number", "ms": "seconds", "hex": "number", "version": "str", "any": "str"}.get(
        type_ or "", type_ or ""
    )


def _applies(reader: Reader, faults: Faults) -> dict[str, str]:
    if not reader.has("applies"):
        return {}
    node = reader.nodes["applies"]
    if not isinstance(node, Keys):
        faults.add(node, "'applies' must be a mapping of frameworks to version ranges", 'applies: {torch: ">=1.4"}')
        return {}
    result = {}
    for name, value in node.nodes.items():
        if name not in FRAMEWORKS:
            faults.add(node.lines[name], f"no framework is called '{name}'", suggest(name, FRAMEWORKS))
        elif not isinstance(value, Text):
            faults.add(value, f"the versions of '{name}' must be text", 'such as ">=1.4, <2.6"')
        else:
            try:
                versions.parse_range(value.value)
                result[name] = value.value
            except ValueError as error:
                faults.add(value, str(error), 'such as ">=1.4, <2.6", or "*" for any version')
    return result


def _fixes(reader: Reader, faults: Faults, known: Known, severity: str) -> tuple[Fix, ...]:
    result: list[Fix] = []
    for number, node in enumerate(reader.items("fixes"), 1):
        fix = Reader(node, faults, f"fix {number}", FIX_KEYS, required=("id", "do"))
        id_ = fix.text("id")
        if id_ and not _FIX_ID.fullmatch(id_):
            faults.add(fix.nodes["id"], f"'{id_}' is no id", "lower case, digits and dashes, such as lower-micro-batch")
        if id_ and id_ in [other.id for other in result]:
            faults.add(fix.nodes["id"], f"two fixes have the id '{id_}'", "")
        repro = fix.text("repro") or None
        if repro is not None and repro not in known.repros:
            faults.add(
                fix.nodes["repro"], f"there is no repro '{repro}'", suggest(repro, known.repros) or "leave it null until there is one"
            )
        framework = fix.choice("framework", FRAMEWORKS) or None
        risk = fix.choice("risk", schema.RISKS, "safe")
        do = fix.text("do", optional=False)
        result.append(
            Fix(
                id_,
                do,
                fix.text("command") or None,
                fix.text("config") or None,
                cast(Any, risk),
                fix.text("saves") or None,
                repro,
                framework,
            )
        )
    return tuple(result)


def _explains(reader: Reader, faults: Faults, known: Known) -> tuple[Explains, ...]:
    result = []
    for node in reader.items("explains"):
        entry = Reader(node, faults, "an entry of 'explains'", ("cause", "link", "before", "onset"), required=("cause", "link"))
        cause = entry.text("cause")
        if cause and not any(fnmatchcase(name, cause) for name in known.causes):
            faults.add(entry.nodes["cause"], f"'{cause}' matches no cause", suggest(cause, known.causes))
        result.append(Explains(cause, entry.choice("link", schema.LINKS), entry.duration("before"), entry.choice("onset", schema.ONSETS)))
    return tuple(result)


def _refs(reader: Reader, faults: Faults) -> tuple[str, ...]:
    refs = reader.texts("refs")
    for text, line in refs:
        if not text.startswith(("https://", "http://")):
            faults.add(line, f"'{text}' is no web address", "it begins with https://")
    return tuple(text for text, _ in refs)
