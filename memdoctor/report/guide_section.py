"""One section of the guide: what the log says, why, what to do, and what only looks like it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from memdoctor.handbook.entries import Advice, CauseEntry, Excerpt, Paste, Remedy, RuleEntry
from memdoctor.handbook.guide_entries import Section
from memdoctor.handbook.remedies import merged, name
from memdoctor.report import fit
from memdoctor.report.blocks import Block, Bullets, Code, Heading, Piece, Pieces, Prose, Strong, Verbatim, words
from memdoctor.report.explain import either, price

TOLD_WHOLE = 3  # rules of one cause up to which each is told with all its reasons
MOST_SHARED = 12  # things to do of one cause up to which its rules share one list of them; with more each rule has its own
MOST_REMEDIES = 7
MOST_LOOK_ALIKES = 4
MOST_EXCERPT_LINES = 4
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"(])")
_LOOKS = re.compile(r"(?:See|Look|Read|Find|Check|Compare|List)\b")  # what only tells more; the next one then changes something

ToLink = Callable[[str], Piece | None]


def section(cause: CauseEntry, extra: Section | None, link: ToLink) -> Iterator[Block]:
    """The body of a cause's section. ``link`` turns ids within prose into links."""
    rules = [rule for rule in cause.rules if rule.severity != "note"] or list(cause.rules)
    yield Prose((Code(cause.id), f": {cause.what}."))
    if extra is not None and extra.intro:
        yield Prose(words(extra.intro, link))
    if extra is not None and extra.see:
        yield Verbatim(tuple(line for text in extra.see for line in fit.log(text)), "log")
    if len(rules) > TOLD_WHOLE and len(merged(cause.fixes)) > MOST_SHARED:
        yield Bullets(tuple(tuple(_briefly(rule, link)) for rule in rules))
    else:
        yield from _told_whole(cause, rules, link)
    yield Prose(("More: ", Code(f"memdoctor explain {cause.id}")))


def advice(each: Advice, link: ToLink) -> Iterator[Block]:
    yield Prose(words(each.why, link))
    yield Prose((Strong("Instead:"), " ", *words(each.instead, link)))
    yield from _pastes(each.pastes)


def _told_whole(cause: CauseEntry, rules: Sequence[RuleEntry], link: ToLink) -> Iterator[Block]:
    shown: set[Excerpt] = set()
    for rule in rules:
        if len(rules) > 1:
            yield Heading(4, rule.title)
        excerpts = [each for each in rule.excerpts if each not in shown][: 2 if len(rules) == 1 else 1]
        yield from _seen(excerpts)
        shown.update(excerpts)
        why = rule.why if len(rules) <= TOLD_WHOLE else _first_sentence(rule.why)
        yield Prose((*words(why, link), *_probed(rule)))
    remedies = merged(cause.fixes)
    if remedies:
        yield Heading(4, "What to do")
        yield Bullets(tuple(tuple(_remedy(each, link)) for each in remedies[:MOST_REMEDIES]), ordered=True)
    told = {rule.id for rule in rules}
    for text in [text for rule, text in cause.look_alikes if rule.id in told][:MOST_LOOK_ALIKES]:
        yield Prose((Strong("Not this:"), " ", *words(text, link)))


def _briefly(rule: RuleEntry, link: ToLink) -> Iterator[Block]:
    """The title, the first reason, what the log says and the first thing to do."""
    yield Prose((Strong(f"{rule.title}."), " ", *words(_first_sentence(rule.why), link), *_probed(rule)))
    yield from _seen(rule.excerpts[:1])
    remedies = merged(rule.fixes)
    for remedy in remedies[: 2 if remedies and _LOOKS.match(remedies[0].do) else 1]:
        yield from _remedy(remedy, link)


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
    yield Prose(words(f"{remedy.do}{only}{price(remedy.risk, remedy.saves)}", link))
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
        for text in (paste.command, paste.config):
            lines += fit.paste(text) if text else ()
    if lines:
        yield Verbatim(tuple(lines))
