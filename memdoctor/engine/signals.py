"""One signals file → Signal objects, checked against the catalogue and against their own samples."""

from __future__ import annotations

import re
from typing import Any

from memdoctor import catalog
from memdoctor.engine.fields import Faults, Reader, constant
from memdoctor.engine.gates import gates, needed
from memdoctor.engine.patterns import check_patterns
from memdoctor.engine.yaml_strict import Items, Keys, Node
from memdoctor.errors import suggest
from memdoctor.model import Signal

KEYS = ("id", "fact", "has", "match", "more", "set", "until", "max_lines", "rows", "pairs", "sample", "seen")
_ID = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+")
MIN_GATE = 3
MAX_LINES = 2000


def read_signals(node: Node, faults: Faults, *, thorough: bool) -> list[Signal]:
    """The signals of one file. ``thorough`` also compiles the patterns and tries them on the samples."""
    if not isinstance(node, Items):
        faults.add(node, "a signals file must be a list of signals", "each begins with '- id: ...'")
        return []
    found = []
    for entry in node.nodes:
        before = len(faults.errors)
        signal = _read(entry, faults)
        if len(faults.errors) == before and signal is not None:
            if thorough:
                check_patterns(signal, faults, entry.lines if isinstance(entry, Keys) else {})
            found.append(signal)
    return found


def _read(node: Node, faults: Faults) -> Signal | None:
    name = node.nodes.get("id") if isinstance(node, Keys) else None
    what = f"the signal {getattr(name, 'value', '')}".rstrip()
    reader = Reader(node, faults, what, KEYS, required=("id", "fact", "has", "match", "sample"))
    id_, kind = reader.text("id"), reader.text("fact")
    if id_ and not _ID.fullmatch(id_):
        faults.add(reader.nodes["id"], f"'{id_}' is no signal id", "two or more words in lower case joined by dots, such as cuda_oom.torch")
    if kind and kind not in catalog.KINDS:
        faults.add(reader.nodes["fact"], f"no kind of fact is called '{kind}'", suggest(kind, catalog.KINDS))
        return None
    has = reader.texts("has", single=True)
    if has and max(len(text.strip().encode()) for text, _ in has) < MIN_GATE:
        faults.add(has[0][1], f"the gate '{has[0][0]}' is too short", "the longest text that never changes makes reading fast")
    fixed: dict[str, Any] = {}
    if reader.has("set") and kind:
        values = Reader(reader.nodes["set"], faults, "'set'", tuple(catalog.KINDS[kind].fields))
        for key, value in values.nodes.items():
            fixed[key] = constant(value, catalog.KINDS[kind].fields[key], faults, f"'{key}'")
    texts, match = tuple(text for text, _ in has), reader.text("match", optional=False)
    more = tuple(text for text, _ in reader.texts("more", single=True))
    return Signal(
        id=id_,
        fact=kind,
        has=texts,
        match=match,
        more=more,
        set=fixed,
        until=reader.text("until") or None,
        max_lines=reader.whole("max_lines", 30, 1, MAX_LINES),
        rows=tuple(text for text, _ in reader.texts("rows", single=True)),
        pairs=reader.text("pairs") or None,
        sample=_sample(reader),
        seen=reader.text("seen"),
        path=faults.path,
        line=reader.line or 0,
        gates=gates(texts, match) if texts and match else (),
        needs=tuple(map(needed, more)),
    )


def _sample(reader: Reader) -> str:
    reader.text("sample", optional=False)
    node = reader.nodes.get("sample")
    return getattr(node, "value", "").rstrip("\n") if node is not None else ""  # a leading blank may matter to an anchored pattern
