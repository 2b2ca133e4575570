"""The troubleshooting guide as blocks: a table from the log to the cause, chapters in the order in which a person asks, and an appendix of advice
that is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from memdoctor.handbook.entries import Advice
from memdoctor.handbook.guide_entries import Guide, Symptom
from memdoctor.report.blocks import Block, Code, Heading, Link, PageBreak, Piece, Pieces, Prose, Strong, Table, plain, words
from memdoctor.report.guide_section import advice, section

ADVICE = "advice"  # anchor of the chapter of advice


class Links:
    """Ids of causes and rules -> links to their sections. A word that only looks like an id, or whose cause has no section, is none."""

    def __init__(self, guide: Guide) -> None:
        self._places = guide.places
        self._causes = guide.causes_of_rules

    def __call__(self, id_: str) -> Piece | None:
        cause = self._causes.get(id_, id_)
        if cause in self._places:
            return Link(id_, f"#{anchor(cause)}", code=True)
        return Code(id_) if id_ in self._causes or id_.endswith((".*", "/*")) else None

    def place(self, cause: str) -> Link | str:
        """The number of the section as a link; a dash where there is none."""
        return Link(self._places[cause], f"#{anchor(cause)}") if cause in self._places else "-"


def anchor(id_: str) -> str:
    """The anchor of a cause or piece of advice."""
    return id_.replace(".", "-").replace("_", "-")


def document(guide: Guide) -> list[Block]:
    """The whole guide."""
    link = Links(guide)
    return [
        *_first_page(guide, link),
        PageBreak(),
        *_contents(guide),
        *(block for number, _ in enumerate(guide.chapters, 1) for block in _chapter(guide, number, link)),
        *_advice(guide, link),
    ]


def _first_page(guide: Guide, link: Links) -> Iterator[Block]:
    plan = guide.plan
    yield Heading(1, plan.title)
    yield from (Prose(words(text)) for text in plan.intro)
    yield Heading(2, plan.first_page, "first-page")
    known = {cause.id for _, causes in guide.chapters for cause in causes}
    rows = tuple(_symptom(each, link) for each in plan.symptoms if each.cause in known)
    yield Table(("The log says", "Cause", "First", "See"), rows, (38, 18, 35, 9))


def _symptom(symptom: Symptom, link: Links) -> tuple[Pieces, ...]:
    seen: Pieces = (Code(symptom.see), *((" ",) if symptom.note else ())) if symptom.see else ()
    return ((*seen, *words(symptom.note)), (Code(symptom.cause),), words(symptom.do), (link.place(symptom.cause),))


def _contents(guide: Guide) -> Iterator[Block]:
    yield Heading(2, "Contents", "contents")
    for number, (chapter, causes) in enumerate(guide.chapters, 1):
        yield Prose((Strong(f"{number}"), "  ", Link(chapter.title, f"#{chapter.id}")))
        parts: list[Piece] = []
        for cause in causes:
            parts += [" · "] if parts else []
            parts += [f"{guide.places[cause.id]} ", Link(cause.title, f"#{anchor(cause.id)}")]
        yield Prose(tuple(parts))
    yield Prose((Strong(f"{len(guide.chapters) + 1}"), "  ", Link(guide.plan.advice_title, f"#{ADVICE}")))


def _chapter(guide: Guide, number: int, link: Links) -> Iterator[Block]:
    chapter, causes = guide.chapters[number - 1]
    yield PageBreak()
    yield Heading(2, f"{number}  {chapter.title}", chapter.id)
    yield from (Prose(words(text, link)) for text in chapter.intro)
    numbers = {each.id: place for place, each in advice_numbers(guide)}
    for cause in causes:
        yield Heading(3, f"{guide.places[cause.id]}  {cause.title}", anchor(cause.id))
        yield from section(cause, guide.plan.sections.get(cause.id), link, _xids(guide) if cause.id == "gpu.xid" else None)
        wrong = tuple(Link(numbers[each.id], f"#{anchor(each.id)}") for each in cause.advice)
        if wrong:
            yield Prose(("Widely repeated, and wrong: ", *_joined(wrong), "."))


def _xids(guide: Guide) -> Table | None:
    """What each number means; None where there is no table of them."""
    rows = tuple(((row.numbers,), words(row.what), words(row.asks)) for row in guide.xids)
    return Table(("Xid", "What it means", "What to do"), rows, (14, 36, 50)) if rows else None


def _advice(guide: Guide, link: Links) -> Iterator[Block]:
    yield PageBreak()
    yield Heading(2, f"{len(guide.chapters) + 1}  {guide.plan.advice_title}", ADVICE)
    yield from (Prose(words(text)) for text in guide.plan.advice_intro)
    topic = ""
    for place, each in advice_numbers(guide):
        if each.topic != topic:
            topic = each.topic
            yield Heading(3, topic)
        yield Heading(4, f"{place}  {plain(words(each.claim))}", anchor(each.id))
        yield from advice(each, link)


def advice_numbers(guide: Guide) -> list[tuple[str, Advice]]:
    """(number, piece of advice), in order."""
    return [(f"{len(guide.chapters) + 1}.{within}", each) for within, each in enumerate(guide.advice, 1)]


def _joined(links: tuple[Link, ...]) -> Iterator[Piece]:
    for place, each in enumerate(links):
        if place:
            yield ", "
        yield each
