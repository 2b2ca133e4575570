"""One signals file → Signal objects, checked against the catalogue and against their own samples."""

from __future__ import annotations

import re as _re
from typing import Any

from memdoctor import catalog
from memdoctor.engine.fields import Faults, Reader, constant, suggest
from memdoctor.engine.yaml_strict import Items, Keys, Node
from memdoctor.model import Signal

KEYS = ("id", "fact", "has", "match", "more", "set", "until", "max_lines", "rows", "pairs", "sample", "seen")
WHOSE = ("rank", "host", "local_rank", "pid")  # groups that say whose fact it is; they are no fields of the kind
_ID = _re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+")
# A group of one repeated atom that is repeated itself, or two neighbours that both take anything: time grows with a power of the line's length.
_RISKY = _re.compile(r"\((?:\?:|\?P<\w+>)?(?:\\.|\[[^\]]*\]|[^\\()\[\]])[+*]\)[+*]|(?<!\\)\.[*+]\??\.[*+]")
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
                _Patterns(signal, faults).check()
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
    if has and max(len(text.strip()) for text, _ in has) < MIN_GATE:
        faults.add(has[0][1], f"the gate '{has[0][0]}' is too short", "the longest text that never changes makes reading fast")
    fixed: dict[str, Any] = {}
    if reader.has("set") and kind:
        values = Reader(reader.nodes["set"], faults, "'set'", tuple(catalog.KINDS[kind].fields))
        for key, value in values.nodes.items():
            fixed[key] = constant(value, catalog.KINDS[kind].fields[key], faults, f"'{key}'")
    return Signal(
        id=id_,
        fact=kind,
        has=tuple(text for text, _ in has),
        match=reader.text("match", optional=False),
        more=tuple(text for text, _ in reader.texts("more", single=True)),
        set=fixed,
        until=reader.text("until") or None,
        max_lines=reader.whole("max_lines", 30, 1, MAX_LINES),
        rows=tuple(text for text, _ in reader.texts("rows", single=True)),
        pairs=reader.text("pairs") or None,
        sample=_sample(reader),
        seen=reader.text("seen"),
        path=faults.path,
        line=reader.line or 0,
    )


def _sample(reader: Reader) -> str:
    reader.text("sample", optional=False)
    node = reader.nodes.get("sample")
    return getattr(node, "value", "").rstrip("\n") if node is not None else ""  # a leading blank may matter to an anchored pattern


class _Patterns:
    def __init__(self, signal: Signal, faults: Faults) -> None:
        self.signal, self.faults = signal, faults
        self.kind = catalog.KINDS[signal.fact]
        self.groups: set[str] = set()

    def fault(self, problem: str, hint: str = "") -> None:
        self.faults.add(self.signal.line, f"the signal {self.signal.id}: {problem}", hint)

    def check(self) -> None:
        signal = self.signal
        before = len(self.faults.errors)
        match = self.compile("match", signal.match)
        more = [self.compile("more", text) for text in signal.more]
        rows = [self.compile("rows", text) for text in signal.rows]
        until = self.compile("until", signal.until) if signal.until is not None else None
        pairs = self.compile("pairs", signal.pairs) if signal.pairs is not None else None
        if "name" in self.kind.fields and "name" not in signal.set and "name" not in self.groups:
            self.fault(f"a fact of the kind {signal.fact} needs a name", "set: {name: <slug>}, so that rules can ask for it")
        if len(self.faults.errors) > before:
            return
        first, *following = signal.sample.split("\n")
        for text in signal.has:
            if text not in first:
                self.fault(f"the sample does not hold its gate '{text}'", "every text of 'has' must be on the sample's first line")
        found = match.search(first)
        if found is None:
            self.fault(
                "'match' does not match the sample", "it is searched in the sample's first line, without prefixes such as '[rank3]:'"
            )
            return
        captured = [found, *(hit for pattern in more if (hit := pattern.search(first)))]
        hits = [hit for line in following for pattern in rows if (hit := pattern.search(line))]
        entries = [line for line in following if pairs is not None and pairs.search(line)]
        if following and not signal.block:
            self.fault("the sample has several lines but the signal reads one", "give until, rows or pairs, or cut the sample")
        if signal.rows and not hits:
            self.fault("no pattern of 'rows' matches a following line of the sample", "the sample must hold the lines that follow, too")
        if pairs is not None and not entries:
            self.fault("'pairs' matches no following line of the sample", "the sample must hold the lines that follow, too")
        if until is not None and not signal.rows and pairs is None and not following:
            self.fault("the sample ends on its first line but 'until' is given", "the sample must hold the lines that follow, too")
        for hit in captured + hits:
            for name, text in hit.groupdict().items():
                if text is not None and name not in WHOSE and catalog.convert(signal.fact, name, text) is None:
                    self.fault(f"the group '{name}' captures '{text}', which is no {self.kind.fields[name]}", "")

    def compile(self, key: str, text: str) -> Any:
        import regex

        try:
            pattern = regex.compile(text)
        except regex.error as error:
            self.fault(f"'{key}' is no pattern: {error}", "in YAML put patterns in single quotes")
            return None
        if key != "until" and pattern.search("") is not None:
            self.fault(f"'{key}' matches the empty line: {text!r}", "")
        if _RISKY.search(text):
            self.fault(f"'{key}' may take very long on a long line: {text!r}", "no repeat of a repeat, no '.*' right after '.*'")
        if key == "pairs":
            if set(pattern.groupindex) != {"key", "value"} or "values" not in self.kind.fields:
                self.fault("'pairs' must have the groups key and value, for a kind with the field 'values'", "")
            return pattern
        for name in pattern.groupindex:
            if name not in self.kind.fields and name not in WHOSE:
                self.fault(
                    f"the group '{name}' of '{key}' is no field of {self.signal.fact}", suggest(name, self.kind.fields, list_up_to=30)
                )
        self.groups.update(pattern.groupindex)
        return pattern
