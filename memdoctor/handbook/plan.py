"""The guide's plan with what the rules know put in its places."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from memdoctor.handbook.book import Book
from memdoctor.handbook.guide_entries import Chapter, Guide
from memdoctor.handbook.tables import read_plan
from memdoctor.handbook.xids import read_xids
from memdoctor.resources import rules_dir


def read_guide(book: Book) -> Guide:
    """The guide of ``book``: causes that no rule names are left out. Raises RuleError for a broken table."""
    plan = read_plan(rules_dir() / "tables" / "guide.yaml")
    named = [id_ for id_ in book.cause_ids if any(rule.cause == id_ for rule in book.base.rules)]
    placed = {id_: chapter_of(id_, plan.chapters) for id_ in book.cause_ids}
    chapters = []
    for chapter in plan.chapters:
        own = [id_ for id_ in named if placed[id_] is chapter]
        chapters.append((chapter, tuple(book.cause(id_) for id_ in sorted(own, key=lambda id_: _order(id_, chapter.causes)))))
    return Guide(plan, tuple(chapters), book.advice, {rule.id: rule.cause for rule in book.base.rules}, read_xids())


def chapter_of(cause: str, chapters: Iterable[Chapter]) -> Chapter | None:
    """The chapter that names the cause, else the first with a glob that fits it; None where there is none."""
    chapters = list(chapters)
    named = [chapter for chapter in chapters if cause in chapter.causes]
    fitting = [chapter for chapter in chapters if any(fnmatchcase(cause, glob) for glob in chapter.causes)]
    return next(iter([*named, *fitting]), None)


def _order(cause: str, globs: tuple[str, ...]) -> int:
    """The place of the cause in its chapter's list; sorting keeps the order of the table of causes among those of one glob."""
    if cause in globs:
        return globs.index(cause)
    return next((place for place, glob in enumerate(globs) if fnmatchcase(cause, glob)), len(globs))
