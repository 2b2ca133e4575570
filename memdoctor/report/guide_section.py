"""One section of the guide: what the log says, why, what to do, and what only looks like it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from memdoctor.handbook.entries import Advice, CauseEntry, Excerpt, Paste, Remedy, RuleEntry
from memdoctor.handbook.guide_entries import Section
from memdoctor.handbook.remedies import by_rule, name
from memdoctor.report import fit
from memdoctor.report.blocks import Block, Bullets, Code, Heading, Piece, Pieces, Prose, Strong, Table, Verbatim, words
from memdoctor.report.explain import either, price
from memdoctor.report.pasting import spoken, to_paste

TOLD_WHOLE = 3  # rules of one cause up to which each is told with all its reasons; of more only the first
MOST_LOOK_ALIKES = 4
MOST_EXCERPT_LINES = 4
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"(])")

ToLink = Callable[[str], Piece | None]
Listed = Sequence[tuple[Remedy, str]]  # with the title of the rule under which it stands already


def section(cause: CauseEntry, extra: Section | None, link: ToLink, table: Table | None = None) -> Iterator[Block]:
    """The body of a cause's section. ``link`` turns ids within prose into links; ``table`` stands before the rules."""
    rules = sorted((rule for rule in cause.rules if rule.severity != "note" or rule.fixes), key=_notes_last) or list(cause.rules)
    yield Prose((Code(cause.id), f": {cause.what}."))
    if extra is not None and extra.intro:
        yield Prose(words(extra.intro, link))
    if extra is not None and extra.see:
        yield Verbatim(tuple(line for text in extra.see for line in fit.log(text)), "log")
    if table is not None:
        yield table
    lists = by_rule((rule.title, rule.fixes) for rule in rules)
    alike = (
        all(title for remedies in lists[1:] for _, title in remedies) and len({len(remedies) for remedies in lists}) == 1
    )  # one list serves all
    own = lists if not alike else [[] for _ in rules]
    if len(rules) > TOLD_WHOLE:
        yield Bullets(tuple(tuple(_briefly(rule, remedies, link)) for rule, remedies in zip(rules, own, strict=True)))
    else:
        shown: set[Excerpt] = set()
        for rule, remedies in zip(rules, own, strict=True):
            yield from _told_whole(rule, len(rules) == 1, shown, link)
            yield from _to_do(remedies, link)
    if alike and lists[0]:
        yield Heading(4, "What to do")
        yield from _to_do(lists[0], link)
    for text in dict.fromkeys(rule.not_this for rule in rules[:MOST_LOOK_ALIKES] if rule.not_this and len(rules) <= MOST_LOOK_ALIKES):
        yield Prose((Strong("Not this:"), " ", *words(text, link)))
    yield Prose(("More: ", Code(f"memdoctor explain {cause.id}")))


def advice(each: Advice, link: ToLink) -> Iterator[Block]:
    yield Prose(words(each.why, link))
    yield Prose((Strong("Instead:"), " ", *words(each.instead, link)))
    yield from _pastes(each.pastes)


def _told_whole(rule: RuleEntry, alone: bool, shown: set[Excerpt], link: ToLink) -> Iterator[Block]:
    """``shown`` are the excerpts that another rule of the cause has shown; those of this one join them."""
    if not alone:
        yield Heading(4, rule.title)
    excerpts = [each for each in rule.excerpts if each not in shown][: 2 if alone else 1]
    yield from _seen(excerpts)
    shown.update(excerpts)
    yield Prose((*words(rule.why, link), *_probed(rule)))


def _briefly(rule: RuleEntry, remedies: Listed, link: ToLink) -> Iterator[Block]:
    """The title, the first reason, what the log says and what there is to do."""
    yield Prose((Strong(f"{rule.title}."), " ", *words(_first_sentence(rule.why), link), *_probed(rule)))
    yield from _seen(rule.excerpts[:1])
    yield from _to_do(remedies, link)


def _to_do(remedies: Listed, link: ToLink) -> Iterator[Block]:
    """What stands under another title already is only named."""
    items = [tuple(_named(each, title, link) if title else _remedy(each, link)) for each, title in remedies]
    if len(items) > 1:
        yield Bullets(tuple(items), ordered=True)
    elif items:
        yield from items[0]


def _named(remedy: Remedy, title: str, link: ToLink) -> Iterator[Block]:
    said = spoken(remedy.do)
    if any(not paste.empty for paste in remedy.pastes):
        said = f"{said.removesuffix('.')} (as under \u201c{title}\u201d)."
    yield Prose(words(said, link))


def _notes_last(rule: RuleEntry) -> bool:
    return rule.severity == "note"


def _probed(rule: RuleEntry) -> Pieces:
    return (" (found by ", Code("memdoctor check"), ")") if rule.probed else ()


def _first_sentence(text: str) -> str:
    return _SENTENCE.split(text)[0]


def _seen(excerpts: Iterable[Excerpt]) -> Iterator[Block]:
    sites: tuple[str, ...] = ()
    for excerpt in excerpts:
        lines = [line for text in excerpt.lines[:MOST_EXCERPT_LINES] for line in fit.log(text)]
        yield Verbatim(tuple(lines), "log")
        if excerpt.sites and excerpt.sites != sites:
            yield Prose((f"The traceback ends in {either(excerpt.sites)}.",))
        sites = excerpt.sites


def _remedy(remedy: Remedy, link: ToLink) -> Iterator[Block]:
    bare = [name(paste.framework) for paste in remedy.pastes if paste.framework is not None and paste.empty]
    only = f" ({', '.join(bare)})" if bare else ""
    yield Prose(words(f"{spoken(remedy.do)}{only}{price(remedy.risk, remedy.saves)}", link))
    yield from _pastes(remedy.pastes)


def _pastes(pastes: Iterable[Paste]) -> Iterator[Block]:
    """One block for all frameworks, each under a comment with its name."""
    lines: list[str] = []
    framework: str | None = None
    for paste in pastes:
        if paste.empty:
            continue
        if paste.framework is not None and paste.framework != framework:
            lines.append(f"# {name(paste.framework)}")
        framework = paste.framework
        lines += [f"# {paste.note}"] if paste.note else []
        for text in (paste.command, paste.config):
            lines += fit.paste(to_paste(text)) if text else ()
    if lines:
        yield Verbatim(tuple(lines))
