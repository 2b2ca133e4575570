"""The tables that the handbook reads: causes.yaml, advice.yaml and guide.yaml, strict, every fault with file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from memdoctor.engine.fields import Faults, Reader
from memdoctor.engine.folders import parse_file
from memdoctor.engine.yaml_strict import Keys
from memdoctor.handbook.entries import Advice, Paste
from memdoctor.handbook.guide_entries import Chapter, Plan, Section, Symptom


def read_causes(folders: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Id -> (title, what), of all folders that have a table of causes; the title is the id where none is given."""
    found: dict[str, tuple[str, str]] = {}
    for folder in folders:
        path = folder / "tables" / "causes.yaml"
        if not path.is_file():
            continue
        node, faults = parse_file(path)
        table = Reader(node, faults, "the table", ("version", "causes"), ("causes",))
        causes = table.nodes.get("causes")
        for id_, entry in causes.nodes.items() if isinstance(causes, Keys) else ():
            reader = Reader(entry, faults, f"the cause {id_}", ("title", "what"), ("what",))
            found[id_] = (reader.text("title") or id_, reader.text("what"))
        _refuse(faults)
    return found


def read_advice(path: Path) -> tuple[Advice, ...]:
    """advice.yaml. Raises RuleError."""
    node, faults = parse_file(path)
    table = Reader(node, faults, "the table", ("version", "advice"), ("advice",))
    found = []
    for item in table.items("advice"):
        keys = ("id", "topic", "claim", "why", "instead", "paste", "about")
        reader = Reader(item, faults, "a piece of advice", keys, ("id", "topic", "claim", "why", "instead"))
        pastes = tuple(
            _paste(Reader(each, faults, "'paste'", ("framework", "note", "command", "config"))) for each in reader.items("paste")
        )
        id_, topic, claim, why, instead = (" ".join(reader.text(key, optional=False).split()) for key in keys[:5])
        found.append(Advice(id_, topic, claim, why, instead, pastes, tuple(text for text, _ in reader.texts("about"))))
    _refuse(faults)
    return tuple(found)


def read_plan(path: Path) -> Plan:
    """guide.yaml. Raises RuleError."""
    node, faults = parse_file(path)
    keys = ("version", "title", "intro", "first_page", "symptoms", "chapters", "sections", "advice")
    table = Reader(node, faults, "the table", keys, keys[1:])
    advice = Reader(table.nodes.get("advice"), faults, "'advice'", ("title", "intro"), ("title", "intro"))
    plan = Plan(
        table.text("title"),
        _paragraphs(table),
        table.text("first_page"),
        tuple(_symptoms(table, faults)),
        tuple(_chapters(table, faults)),
        _sections(table, faults),
        advice.text("title"),
        _paragraphs(advice),
    )
    _refuse(faults)
    return plan


def _paste(reader: Reader) -> Paste:
    return Paste(reader.text("framework") or None, reader.text("command") or None, reader.text("config") or None, reader.text("note"))


def _paragraphs(reader: Reader) -> tuple[str, ...]:
    """The paragraphs of ``intro``; folded YAML keeps one line end between two."""
    return tuple(" ".join(text.split()) for text in reader.text("intro").split("\n") if text.strip())


def _symptoms(table: Reader, faults: Faults) -> Iterator[Symptom]:
    for item in table.items("symptoms"):
        reader = Reader(item, faults, "a symptom", ("see", "note", "cause", "do"), ("cause", "do"))
        if not reader.has("see") and not reader.has("note"):
            faults.add(item, "a symptom needs 'see' (text of the log) or 'note' (words of our own)")
        yield Symptom(reader.text("see"), reader.text("note"), reader.text("cause"), reader.text("do"))


def _chapters(table: Reader, faults: Faults) -> Iterator[Chapter]:
    for item in table.items("chapters"):
        keys = ("id", "title", "intro", "causes")
        reader = Reader(item, faults, "a chapter", keys, keys)
        yield Chapter(reader.text("id"), reader.text("title"), _paragraphs(reader), tuple(text for text, _ in reader.texts("causes")))


def _sections(table: Reader, faults: Faults) -> dict[str, Section]:
    node = table.nodes.get("sections")
    found = {}
    for id_, entry in node.nodes.items() if isinstance(node, Keys) else ():
        reader = Reader(entry, faults, f"the section {id_}", ("intro", "see"))
        found[id_] = Section(reader.text("intro"), tuple(text for text, _ in reader.texts("see")))
    return found


def _refuse(faults: Faults) -> None:
    if faults.errors:
        raise faults.errors[0]
