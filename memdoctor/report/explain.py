"""What `memdoctor explain` shows of a cause or a rule, as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memdoctor import units
from memdoctor.handbook.entries import Advice, CauseEntry, Consequence, Excerpt, RuleEntry
from memdoctor.handbook.remedies import by_framework, name
from memdoctor.model import Fix
from memdoctor.report.blocks import Block, Bullets, Code, Heading, Piece, Prose, Verbatim, words
from memdoctor.report.pasting import spoken, to_paste
from memdoctor.report.terminal_words import ACTIONS

MOST_FIXES = 8  # of one framework, before the rest is folded
MOST_LOOK_ALIKES = 8
MOST_RULES = 12
_LINKS = {
    "job": "anywhere in the job",
    "host": "on the same host",
    "rank": "on the same rank",
    "group": "in the same group",
    "device": "on the same GPU",
}
_RISKS = {"costly": "costs speed or memory", "changes-results": "changes results"}

_SITES = {
    "model_build": "model building", "weight_load": "the loading of weights", "ddp_init": "the set-up of DDP or ZeRO", "forward": "the forward pass",
    "attention": "attention", "output_layer": "the output layer", "loss": "the loss", "backward": "the backward pass",
    "optimizer_step": "the optimizer step", "eval": "evaluation", "generate": "generation", "ckpt_load": "the loading of a checkpoint",
    "ckpt_save": "the saving of a checkpoint", "dataloader": "the data loader", "collective": "a collective", "launch": "the launcher",
    "unknown": "a place that the log does not tell",
}  # fmt: skip


def cause(entry: CauseEntry, *, whole: bool) -> list[Block]:
    """``whole`` unfolds long lists."""
    blocks: list[Block] = [Heading(1, f"{entry.id}: {entry.title}"), _prose(entry.what)]
    if not entry.rules:
        return [*blocks, _prose("No rule of this version names it.")]
    for rule in entry.rules[:1]:
        blocks += [Heading(2, "Why"), _prose(rule.why)]
    blocks += [Heading(2, "Rules that name it"), *_folded(_rules(entry), MOST_RULES, whole, ordered=False)]
    excerpts = [rule.excerpts[0] for rule in entry.rules if rule.excerpts]
    blocks += _excerpts("What the log says", excerpts if whole else excerpts[:4], whole)
    look_alikes = [(_prose(f"{text} ({rule.id})" if len(entry.rules) > 1 else text),) for rule, text in entry.look_alikes]
    if look_alikes:
        blocks += [Heading(2, "Not to be confused"), *_folded(look_alikes, MOST_LOOK_ALIKES, whole, ordered=False)]
    blocks += _fixes(entry.fixes, "What to do", whole)
    blocks += _consequences(entry.consequences)
    blocks += _advice(entry.advice)
    return blocks


def rule(entry: RuleEntry, cause_title: str, *, whole: bool) -> list[Block]:
    """``cause_title`` is that of the cause that the rule names."""
    draft = ", a draft" if entry.status == "draft" else ""
    blocks: list[Block] = [
        Heading(1, f"{entry.id}: {entry.title}"),
        _prose(f"{entry.severity}, {entry.confidence}{draft}; names the cause {entry.cause} ({cause_title})."),
        Heading(2, "Why"),
        _prose(entry.why),
        Heading(2, "What memdoctor says"),
        _prose(entry.shape),
        *_excerpts("What the log says", entry.excerpts, whole),
        *([_prose("No log tells it: `memdoctor check` looks.")] if entry.probed else []),
        Heading(2, "It fires on"),
        Verbatim(tuple("  " * each.depth + each.text for each in entry.conditions), "outline"),
    ]
    if entry.applies:
        blocks.append(_prose(f"Only with {', '.join(f'{one} {span}'.replace(' *', '') for one, span in entry.applies)}."))
    action = ACTIONS.get(entry.action, "")
    blocks += _fixes(entry.fixes, f"What to do: {action}" if action else "What to do", whole=True)
    if entry.not_this:
        blocks += [Heading(2, "Not this"), _prose(entry.not_this)]
    blocks += _consequences(entry.consequences)
    if entry.over:
        blocks += [Heading(2, "On one event it wins over"), _prose(", ".join(entry.over))]
    if entry.refs:
        blocks += [Heading(2, "Read on"), Bullets(tuple((Prose((ref,)),) for ref in entry.refs))]
    return [*blocks, Heading(2, "As it is written"), Verbatim((f"memdoctor rules show {entry.id}",))]


def listing(found: Sequence[tuple[str, str]]) -> list[Block]:
    """Ids with their titles, where a glob was asked for."""
    width = max(len(id_) for id_, _ in found)
    return [Verbatim(tuple(f"{id_:<{width}}  {title}" for id_, title in found), "outline")]


def _prose(text: str) -> Prose:
    return Prose(words(text, _as_code))


def _as_code(id_: str) -> Piece | None:
    return Code(id_)


def _rules(entry: CauseEntry) -> list[tuple[Block, ...]]:
    return [(_prose(f"{each.id}: {each.title} ({each.severity}, {each.confidence})"),) for each in entry.rules]


def _excerpts(title: str, excerpts: Sequence[Excerpt], whole: bool) -> Iterator[Block]:
    if not excerpts:
        return
    yield Heading(2, title)
    for excerpt in excerpts:
        yield Verbatim(excerpt.lines, "log")
        if excerpt.sites:
            yield _prose(f"raised in {either(excerpt.sites)}")
        if whole and excerpt.seen:
            yield _prose(f"seen: {excerpt.seen} (signal {excerpt.source})")


def either(sites: Sequence[str]) -> str:
    """Places in training as a person calls them: ``the forward pass, attention or the backward pass``."""
    names = [_SITES.get(site, site) for site in sites]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _fixes(fixes: Sequence[Fix], title: str, whole: bool) -> Iterator[Block]:
    if not fixes:
        return
    yield Heading(2, title)
    groups = by_framework(fixes)
    for framework, group in groups:
        if framework is not None:
            yield Heading(3, name(framework))
        elif len(groups) > 1:
            yield Heading(3, "Any framework")
        yield from _folded([tuple(_fix(fix)) for fix in group], MOST_FIXES, whole, ordered=True)


def _fix(fix: Fix) -> Iterator[Block]:
    yield _prose(f"{spoken(fix.do)}{price(fix.risk, fix.saves)}")
    for paste in (fix.command, fix.config):
        if paste:
            yield Verbatim(tuple(to_paste(paste).split("\n")))


def price(risk: str, saves: str | None) -> str:
    """What a fix costs and saves, in brackets; empty where it costs nothing and nothing is told of what it saves."""
    parts = [_RISKS[risk]] if risk != "safe" else []
    parts += [f"saves {saves}"] if saves else []
    return f" ({'; '.join(parts)})" if parts else ""


def _consequences(consequences: Sequence[Consequence]) -> Iterator[Block]:
    if not consequences:
        return
    groups: dict[str, list[str]] = {}
    for each in consequences:
        within = f", up to {units.format_duration(each.within)} later" if each.within is not None else ""
        groups.setdefault(f"{_LINKS[each.link]}{within}", []).append(each.cause)
    yield Heading(2, "What is only a consequence of it")
    yield Bullets(tuple((_prose(f"{', '.join(causes)}: {where}"),) for where, causes in groups.items()))


def _advice(advice: Sequence[Advice]) -> Iterator[Block]:
    if advice:
        yield Heading(2, "Widely repeated, and wrong")
        yield Bullets(tuple((_prose(f'"{each.claim}" {each.why} Instead: {each.instead}'),) for each in advice))


def _folded(items: Sequence[tuple[Block, ...]], most: int, whole: bool, *, ordered: bool) -> Iterator[Block]:
    shown = items if whole or len(items) <= most + 1 else items[:most]
    yield Bullets(tuple(shown), ordered)
    if len(shown) < len(items):
        yield Prose((f"and {len(items) - len(shown)} more (-v shows them)",))
