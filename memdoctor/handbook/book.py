"""All causes and rules, to be looked up by id."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from memdoctor.catalog import KINDS
from memdoctor.engine.load import load
from memdoctor.engine.schema import Base, Rule, first_leaves
from memdoctor.errors import InputError
from memdoctor.handbook.entries import Advice, CauseEntry, Consequence, RuleEntry
from memdoctor.handbook.near import near
from memdoctor.handbook.remedies import unique
from memdoctor.handbook.samples import Samples
from memdoctor.handbook.tables import read_advice, read_causes
from memdoctor.handbook.words import conditions, shape
from memdoctor.model import SEVERITIES, Signal
from memdoctor.resources import rules_dir


class Book:
    """The causes and rules of the built-in folder and of ``folders``. Raises RuleError or InputError as loading them does."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        dirs = [rules_dir(), *folders]
        self.base: Base = load(dirs)
        self.titles = read_causes(dirs)
        self.advice: tuple[Advice, ...] = read_advice(rules_dir() / "tables" / "advice.yaml")
        self._samples = Samples(self.base.signals)
        self._rules = {rule.id: rule for rule in self.base.rules}

    @property
    def cause_ids(self) -> list[str]:
        """All causes that rules may name, in the order of the table."""
        return [*self.titles, *sorted(self.base.causes - self.titles.keys())]

    @property
    def rule_ids(self) -> list[str]:
        return sorted(self._rules)

    def find(self, id_: str) -> CauseEntry | RuleEntry:
        """The cause or rule ``id_``. Raises InputError with what may have been meant."""
        return self.cause(id_) if id_ in self.base.causes else self.rule(id_)

    def matching(self, glob: str) -> list[tuple[str, str]]:
        """(id, title) of the causes and then the rules that match; only * and ? are wild. Raises InputError where none does."""
        asked, glob = glob, glob.replace("[", "[[]")
        found = [(id_, self.title(id_)) for id_ in self.cause_ids if fnmatchcase(id_, glob)]
        found += [(id_, self._rules[id_].title) for id_ in self.rule_ids if fnmatchcase(id_, glob)]
        if not found:
            raise InputError(self._unknown(asked.strip("*?./")))
        return found

    def title(self, cause: str) -> str:
        return self.titles.get(cause, (cause, ""))[0]

    def cause(self, id_: str) -> CauseEntry:
        rules = tuple(self.rule(rule) for rule in self.rules_of(id_))
        consequences = dict.fromkeys(each for rule in rules for each in rule.consequences)
        title, what = self.titles.get(id_, (id_, ""))
        advice = tuple(each for each in self.advice if id_ in each.about)
        return CauseEntry(id_, title, what, rules, unique(fix for rule in rules for fix in rule.fixes), _longest(consequences), advice)

    def rule(self, id_: str) -> RuleEntry:
        """Raises InputError for an unknown id."""
        rule = self.rule_of(id_)
        return RuleEntry(
            id=rule.id,
            cause=rule.cause,
            title=rule.title,
            status=rule.status,
            severity=rule.severity,
            confidence=rule.confidence,
            action=rule.action,
            why=" ".join(rule.why.split()),
            shape=shape(rule.message),
            conditions=conditions(rule.when),
            excerpts=self._samples.of(rule),
            fixes=rule.fixes,
            not_this=" ".join(rule.not_this.split()),
            applies=tuple(rule.applies.items()),
            over=rule.over,
            consequences=tuple(Consequence(each.cause, each.link, each.before) for each in rule.explains),
            refs=rule.refs,
            made_by=tuple(signal.id for signal in self._samples.makers(rule)),
            probed=all(KINDS[leaf.fact].sources == ("probe",) for leaf in first_leaves(rule.when, rule.about)),
            path=rule.path,
        )

    def rule_of(self, id_: str) -> Rule:
        """The rule as it was loaded. Raises InputError with what may have been meant."""
        if id_ not in self._rules:
            raise InputError(self._unknown(id_))
        return self._rules[id_]

    def rules_of(self, cause: str) -> list[str]:
        """The ids of the rules that name ``cause``: the one of its own name first, then by severity."""
        return [rule.id for rule in sorted((rule for rule in self.base.rules if rule.cause == cause), key=_weight)]

    def makers(self, rule: Rule) -> tuple[Signal, ...]:
        """The signals whose facts the rule asks for."""
        return self._samples.makers(rule)

    def _unknown(self, id_: str) -> str:
        if any(signal.id == id_ for signal in self.base.signals):
            return f"'{id_}' is a signal, not a cause or rule; `memdoctor rules show {id_}` shows it"
        return f"no cause or rule is called '{id_}'{near(id_, [*self.cause_ids, *self.rule_ids]) or '; `memdoctor rules list` shows all'}"


def _weight(rule: Rule) -> tuple[int, int, str]:
    """Sorts first the rule that bears the name of its cause, then by severity."""
    return (rule.id.replace("/", ".") != rule.cause, SEVERITIES.index(rule.severity), rule.id)


def _longest(consequences: dict[Consequence, None]) -> tuple[Consequence, ...]:
    """One for each cause and link, with the longest span."""
    best: dict[tuple[str, str], Consequence] = {}
    for each in consequences:
        other = best.get((each.cause, each.link))
        if other is None or (other.within is not None and (each.within is None or each.within > other.within)):
            best[each.cause, each.link] = each
    return tuple(best.values())
