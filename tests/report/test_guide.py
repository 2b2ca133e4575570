"""The troubleshooting guide: fresh, sound as a document, and true about what it names."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from memdoctor.handbook.book import Book
from memdoctor.handbook.guide_entries import Guide
from memdoctor.handbook.plan import chapter_of, read_guide
from memdoctor.report import blocks_html, blocks_markdown, fit
from memdoctor.report.blocks import Block, Bullets, Table, Verbatim, plain, words
from memdoctor.report.fit import CODE_WIDTH
from memdoctor.report.guide import document
from memdoctor.report.guide_section import section
from memdoctor.report.pasting import spoken, to_paste
from tests import named
from tests.known import EVERYWHERE, SPOKEN_OF

ROOT = Path(__file__).parents[2]
FILE = ROOT / "troubleshooting_guide.md"
ROWS_OF_A_PAGE = 54  # of the first page's table, at the size that blocks_html sets


@pytest.fixture(scope="module")
def book() -> Book:
    return Book()


@pytest.fixture(scope="module")
def guide(book: Book) -> Guide:
    return read_guide(book)


@pytest.fixture(scope="module")
def blocks(guide: Guide) -> list[Block]:
    return document(guide)


@pytest.fixture(scope="module")
def markdown(blocks: list[Block]) -> str:
    return blocks_markdown.render(blocks)


def inner(blocks: tuple[Block, ...] | list[Block]) -> list[Block]:
    return [
        each
        for block in blocks
        for each in ([block, *(found for item in block.items for found in inner(item))] if isinstance(block, Bullets) else [block])
    ]


def test_the_file_is_fresh(markdown: str) -> None:
    assert FILE.read_text(encoding="utf-8") == markdown, "`memdoctor guide --output troubleshooting_guide.md` writes it anew"


def test_anchors_are_unique_and_every_link_has_one(markdown: str) -> None:
    anchors = Counter(re.findall(r'<a id="([^"]+)"></a>', markdown))
    assert [name for name, times in anchors.items() if times > 1] == []
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) for name in anchors)
    links = re.findall(r"\]\(#([^)]+)\)", markdown)
    assert len(links) > 150
    assert {name for name in links if name not in anchors} == set()


def test_every_cause_has_its_place(book: Book, guide: Guide) -> None:
    for id_ in book.cause_ids:
        chapter = chapter_of(id_, guide.plan.chapters)
        assert chapter is not None, f"{id_}: no chapter of guide.yaml takes it"
        exact = [each.id for each in guide.plan.chapters if id_ in each.causes]
        assert len(exact) <= 1, f"{id_}: in {exact}"
    told = [cause.id for _, causes in guide.chapters for cause in causes]
    assert len(told) == len(set(told))
    assert set(told) == {rule.cause for rule in book.base.rules}


def test_the_plan_names_what_there_is(book: Book, guide: Guide) -> None:
    known = set(book.cause_ids)
    assert {each.cause for each in guide.plan.symptoms} <= known
    assert set(guide.plan.sections) <= known
    assert {cause for each in guide.advice for cause in each.about} <= known
    assert {cause for chapter in guide.plan.chapters for cause in chapter.causes if "*" not in cause} <= known


def test_the_first_page_is_one_page_and_its_texts_are_those_of_logs(book: Book, guide: Guide, blocks: list[Block]) -> None:
    table = next(block for block in blocks if isinstance(block, Table))
    assert len(table.rows) <= ROWS_OF_A_PAGE
    assert sum(table.widths) == 100
    for symptom in guide.plan.symptoms:
        rules = [rule for rule in book.base.rules if rule.cause == symptom.cause]
        if not symptom.see or not rules:
            continue
        lines = [line for rule in rules for each in book.rule(rule.id).excerpts for line in each.lines]
        logs = [log for rule in rules for log in (ROOT / "fixtures" / rule.id).glob("*.log")]
        held = any(symptom.see in line for line in lines) or any(symptom.see in log.read_text(errors="replace") for log in logs)
        assert held, f"{symptom.cause}: no sample and no fixture holds {symptom.see!r}"


def test_commands_of_memdoctor_exist(book: Book, markdown: str) -> None:
    calls = named.commands(markdown)
    assert len(calls) > 50
    assert [problem for call in calls if (problem := named.problem(call))] == []
    for call in calls:
        if call[0] == "explain" and len(call) > 1 and not call[1].isupper():
            book.find(call[1])


def test_flags_and_variables_exist(markdown: str) -> None:
    """Once and somewhere; what is to be pasted is looked up in today's tables by tests/test_what_rules_name.py."""
    said = re.sub(r"--config-settings\s+(?:\\\s+)?\S+", "", markdown)  # what pip hands on to the package's own build
    assert {flag for flag in named.flags(said) if flag not in EVERYWHERE and not flag.endswith("-")} == set()
    assert {name for name in named.variables(markdown) if name not in SPOKEN_OF} == set()


def test_code_fits_the_page(blocks: list[Block]) -> None:
    long = [line for block in inner(blocks) if isinstance(block, Verbatim) for line in block.lines if len(line) > CODE_WIDTH]
    assert [line for line in long if not line.startswith("# ") and fit.paste(line) != (line,)] == []
    assert len(long) < 30, long


def test_every_cure_of_a_cause_is_told_in_its_section(guide: Guide, markdown: str) -> None:
    """What to paste stands once, the sentence under each rule that has it."""
    for _, causes in guide.chapters:
        for cause in causes:
            body = " ".join(blocks_markdown.render(list(section(cause, None, lambda id_: None))).split())
            for rule in cause.rules:
                for fix in rule.fixes:
                    said = plain(words(spoken(fix.do)))
                    assert flat(said).removesuffix(".") in flat(body), (cause.id, fix.id)
            for fix in cause.fixes:
                pasted = "\n".join(line for text in (fix.command, fix.config) if text for line in fit.paste(to_paste(text)))
                assert flat(pasted) in flat(body), (cause.id, fix.id)


def flat(text: str) -> str:
    """Without blanks and the marks of Markdown."""
    return re.sub(r"[\s\\\\`]", "", text)


def test_what_is_to_be_pasted_is_whole(blocks: list[Block]) -> None:
    """A variable is exported, and an open place says what belongs there."""
    lines = [line for block in inner(blocks) if isinstance(block, Verbatim) and block.kind == "paste" for line in block.lines]
    assert [line for line in lines if re.fullmatch(r"[A-Z][A-Z0-9_]+=\S*( [A-Z][A-Z0-9_]+=\S*)*", line)] == []
    assert [line for line in lines if re.search(r"<(?:\w+_\w+|meant|what|gpu|python)>", line)] == []
    assert "export NCCL_SOCKET_IFNAME==eth0 GLOO_SOCKET_IFNAME=eth0" in lines


def test_the_numbers_of_xids_are_told(guide: Guide, markdown: str) -> None:
    table = {row.numbers: row for row in guide.xids}
    assert table["144-150"].what == "NVLink 5 error"
    assert table["37, 38"].asks == "nothing at once; watch whether it grows"
    assert "| 79 | GPU has fallen off the bus | reboot the node" in markdown
    assert markdown.index("driver reports a fault of the GPU (Xid)") < markdown.index("| 79 | GPU has") < markdown.index('<a id="gpu-ecc">')


def test_no_sign_steers_a_terminal(markdown: str) -> None:
    assert markdown.isprintable() or all(line.isprintable() for line in markdown.split("\n"))


class Tags(HTMLParser):
    """Checks that tags close in order, and collects ids and targets."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "col"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name == "href" and value and value.startswith("#"):
                self.targets.append(value[1:])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_sound(guide: Guide, blocks: list[Block]) -> None:
    text = blocks_html.render(blocks, guide.plan.title)
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids))
    assert set(tags.targets) <= set(tags.ids)
    assert "<script" not in text
    assert "http" not in text.partition("</head>")[0]
