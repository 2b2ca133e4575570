"""What is known of one rule or one cause: plain frozen data, ready to be rendered."""

from __future__ import annotations

from memdoctor.model import Fix
from memdoctor.records import record


@record
class Excerpt:
    """Lines of a log as they look when a rule fires. ``source`` is the signal they are the sample of, "" where they are made from the
    rule's conditions; ``seen`` the versions that print them; ``sites`` where in training the traceback must end for the rule to fire."""

    lines: tuple[str, ...]
    source: str = ""
    seen: str = ""
    sites: tuple[str, ...] = ()


@record
class Condition:
    """One line of a rule's ``when`` in plain words; ``depth`` counts from 0."""

    depth: int
    text: str


@record
class Consequence:
    """What is only a consequence: causes (an id or a glob), over which link, and within how many seconds after (None: for ever)."""

    cause: str
    link: str
    within: float | None = None


@record
class Paste:
    """What to paste, for one framework (None: for any). ``command`` and ``config`` may both be None; ``note`` says when it is the right one."""

    framework: str | None
    command: str | None = None
    config: str | None = None
    note: str = ""

    @property
    def empty(self) -> bool:
        return self.command is None and self.config is None


@record
class Remedy:
    """One thing to do, whatever the framework, with what to paste for each."""

    do: str
    risk: str
    saves: str | None
    pastes: tuple[Paste, ...]

    @property
    def frameworks(self) -> tuple[str, ...]:
        return tuple(paste.framework for paste in self.pastes if paste.framework is not None)


@record
class RuleEntry:
    """One rule. ``shape`` is its message with the fields as <field>; ``made_by`` the signals that yield its facts; ``probed`` is True where
    the event is something that probes of the machine read, which no log tells."""

    id: str
    cause: str
    title: str
    status: str
    severity: str
    confidence: str
    action: str
    why: str
    shape: str
    conditions: tuple[Condition, ...]
    excerpts: tuple[Excerpt, ...]
    fixes: tuple[Fix, ...]
    not_this: str
    applies: tuple[tuple[str, str], ...]
    over: tuple[str, ...]
    consequences: tuple[Consequence, ...]
    refs: tuple[str, ...]
    made_by: tuple[str, ...]
    probed: bool
    path: str


@record
class Advice:
    """A claim that is widely repeated and wrong, or true only in part. ``about`` are the causes whose readers meet it."""

    id: str
    topic: str
    claim: str
    why: str
    instead: str
    pastes: tuple[Paste, ...] = ()
    about: tuple[str, ...] = ()


@record
class CauseEntry:
    """One cause. ``rules`` begin with the one that says most about it; ``fixes`` are those of all its rules, each once."""

    id: str
    title: str
    what: str
    rules: tuple[RuleEntry, ...] = ()
    fixes: tuple[Fix, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    advice: tuple[Advice, ...] = ()

    @property
    def look_alikes(self) -> tuple[tuple[RuleEntry, str], ...]:
        """What only looks like it and how to tell, each text once, with the rule that says so."""
        told: dict[str, RuleEntry] = {}
        for rule in self.rules:
            if rule.not_this:
                told.setdefault(rule.not_this, rule)
        return tuple((rule, text) for text, rule in told.items())
