"""The guide as data: its plan as it is written in guide.yaml, and the plan with what the rules know."""

from __future__ import annotations

from memdoctor.handbook.entries import Advice, CauseEntry
from memdoctor.records import record


@record
class Chapter:
    """A chapter of the guide: ``causes`` are ids and globs; a cause belongs to the first chapter that names it, ids before globs."""

    id: str
    title: str
    intro: tuple[str, ...]
    causes: tuple[str, ...]


@record
class Symptom:
    """A row of the guide's first page: what the log says (text out of it, or words of our own), the cause, and what to do first."""

    see: str
    note: str
    cause: str
    do: str


@record
class Section:
    """What the guide says of a cause beside its rules: an introduction, and lines to see where the rules have no sample."""

    intro: str
    see: tuple[str, ...]


@record
class Plan:
    """guide.yaml as read."""

    title: str
    intro: tuple[str, ...]
    first_page: str
    symptoms: tuple[Symptom, ...]
    chapters: tuple[Chapter, ...]
    sections: dict[str, Section]
    advice_title: str
    advice_intro: tuple[str, ...]


@record
class XidRow:
    """What Xids of these numbers (``60, 82-84``) mean and what they ask for."""

    numbers: str
    what: str
    asks: str


@record
class Guide:
    """Chapters with their causes in order; ``places`` maps a cause, and the cause of each rule by the rule's id, to its number (``2.3``)."""

    plan: Plan
    chapters: tuple[tuple[Chapter, tuple[CauseEntry, ...]], ...]
    advice: tuple[Advice, ...]
    causes_of_rules: dict[str, str]
    xids: tuple[XidRow, ...] = ()

    @property
    def places(self) -> dict[str, str]:
        return {
            cause.id: f"{number}.{within}" for number, (_, causes) in enumerate(self.chapters, 1) for within, cause in enumerate(causes, 1)
        }
