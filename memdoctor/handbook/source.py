"""Rules, causes and signals as their files have them."""

from __future__ import annotations

import re
from pathlib import Path

from memdoctor.engine.schema import leaves
from memdoctor.errors import InputError
from memdoctor.handbook.book import Book
from memdoctor.handbook.near import near
from memdoctor.model import Signal

_NEXT_ENTRY = re.compile(r"^- ", re.MULTILINE)


def source(book: Book, id_: str) -> str:
    """What bears this id, as it is written: a rule, all rules of a cause, a signal; several are documents of one YAML stream.

    Raises InputError for an unknown id with what may have been meant, and for a cause that no rule names.
    """
    parts = [rule_source(book, id_)] if id_ in book.rule_ids else []
    if id_ in book.base.causes:
        parts += [rule_source(book, rule) for rule in book.rules_of(id_)]
    parts += [signal_source(signal) for signal in book.base.signals if signal.id == id_]
    if parts:
        return "\n---\n".join(parts)
    if id_ in book.base.causes:
        raise InputError(f"'{id_}' is a cause that no rule names; `memdoctor explain {id_}` tells what it means")
    hint = near(id_, [*book.cause_ids, *book.rule_ids, *(signal.id for signal in book.base.signals)])
    raise InputError(f"no rule, cause or signal is called '{id_}'{hint or '; `memdoctor rules list` shows all rules'}")


def rule_source(book: Book, id_: str) -> str:
    """The rule's file and, as comments, where its facts come from: valid YAML as a whole. Raises InputError for an unknown id."""
    rule = book.rule_of(id_)
    made = book.makers(rule)
    lines = [f"# {_short(rule.path)}"]
    kinds = dict.fromkeys(leaf.fact for leaf in leaves(rule.when))
    notes = []
    for kind in kinds:
        signals = [signal for signal in made if signal.fact == kind]
        width = max((len(signal.id) for signal in signals), default=0)
        notes.append(f"# facts of the kind {kind}{':' if signals else ' are computed, or read out of tracebacks'}")
        notes += [f"#   {signal.id:<{width}}  {_place(signal)}" for signal in signals]
    return "\n".join([*lines, _text(rule.path).rstrip("\n"), *notes])


def signal_source(signal: Signal) -> str:
    """The signal's entry in its file."""
    lines = _text(signal.path).split("\n")[signal.line - 1 :]
    rest = "\n".join(lines)
    end = _NEXT_ENTRY.search(rest, 1)
    return f"# {_short(signal.path)}:{signal.line}\n{(rest[: end.start()] if end else rest).rstrip()}"


def _short(path: str) -> str:
    """``path`` as seen from here, where that is shorter."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _place(signal: Signal) -> str:
    path = Path(signal.path)
    return f"{path.parent.name}/{path.name}:{signal.line}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
