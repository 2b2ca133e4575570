"""Blocks in each of their forms: what is written is what is read, whatever signs it holds."""

from __future__ import annotations

import io

import pytest

from memdoctor.report import blocks_html, blocks_markdown, blocks_terminal
from memdoctor.report.blocks import Block, Bullets, Code, Heading, Link, PageBreak, Prose, Strong, Table, Verbatim, plain, words

NASTY = "a *b* _c_ `d` <e> [f](g) $h$ ~i~ & &amp; \x1b[31m \\ |"


def terminal(*blocks: Block, width: int = 60, whole: bool = False) -> str:
    file = io.StringIO()
    blocks_terminal.render(blocks, color=False, width=width, file=file, whole=whole)
    return file.getvalue()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Set --micro-batch-size 1 and NCCL_DEBUG=INFO.", ["--micro-batch-size", "NCCL_DEBUG=INFO"]),
        ("leave all --recompute-* flags out", ["--recompute-*"]),
        ("`py-spy dump --pid PID` first", ["py-spy dump --pid PID"]),
        ("torch.load without map_location", ["torch.load", "map_location"]),
        ("Use torch.distributed.checkpoint.", ["torch.distributed.checkpoint"]),
        ("See /dev/shm, and/or 12/DP, e.g. this.", ["/dev/shm"]),
        ("no flags - none -- at all", []),
    ],
)
def test_words_of_programs_become_code(text: str, code: list[str]) -> None:
    pieces = words(text)
    assert [each.text for each in pieces if isinstance(each, Code)] == code
    assert plain(pieces) == text.replace("`", "")


def test_ids_are_linked_where_they_are_known() -> None:
    pieces = words(
        "that is oom.logits, or oom/logits. But not e.g or up/down.", lambda id_: Link(id_, "#x", code=True) if "oom" in id_ else None
    )
    assert [each.text for each in pieces if isinstance(each, Link)] == ["oom.logits", "oom/logits"]


def test_markdown_escapes() -> None:
    text = blocks_markdown.render([Heading(2, NASTY, "here"), Prose((NASTY, Code("x`y"), Strong(" b "), Link("t", "#here")))])
    assert text.startswith('<a id="here"></a>\n\n## a \\*b\\* \\_c\\_ \\`d\\` \\<e>')
    assert "\\$h\\$" in text
    assert "& \\&amp;" in text
    assert "\x1b" not in text
    assert "``x`y``**b**[t](#here)" in text


def test_markdown_table_and_lists() -> None:
    table = Table(("a", "b"), ((("x|y",), (Code("p|q"),)),), (30, 70))
    items = Bullets(((Prose(("one",)), Verbatim(("--x", "```")), Prose(("two",))), (Prose(("three",)),)), ordered=True)
    text = blocks_markdown.render([table, items, PageBreak()])
    assert "| x\\|y | `p\\|q` |" in text
    assert "1. one\n\n   ````sh\n   --x\n   ```\n   ````\n\n   two\n\n2. three\n" in text


def test_markdown_prose_is_wrapped_but_starts_no_list() -> None:
    text = blocks_markdown.render([Prose(("word " * 23 + "- not a list, 1. nor this " + "`code with blanks` " * 10,))])
    assert all(len(line) <= 130 for line in text.split("\n"))
    assert not any(line.startswith(("- ", "1. ")) for line in text.split("\n"))


def test_html_escapes() -> None:
    blocks: list[Block] = [
        Heading(1, "<h>"),
        Prose(("<p>", Code("<c>"), Link("<l>", '"#'))),
        Verbatim(("<v>\x1b",)),
        Table(("<t>",), ((("<d>",),),), (100,)),
    ]
    text = blocks_html.render(blocks, "<title>")
    for name in "hpclvtd":
        assert f"&lt;{name}&gt;" in text
        assert f"<{name}></{name}>" not in text
    assert "\x1b" not in text
    assert 'href="&quot;#"' in text


def test_terminal() -> None:
    out = terminal(
        Heading(1, "title"),
        Heading(2, "part"),
        Bullets(((Prose(("do " * 30,)), Verbatim((f"--flag {'x' * 80}",))), (Prose((Code("b"), "\x1b[31m")),)), ordered=True),
        Verbatim(("line " * 80,), "log"),
        Verbatim(("  deeper " + "word " * 20,), "outline"),
    )
    lines = out.split("\n")
    assert lines[:3] == ["title", "", "part"]
    assert f"     --flag {'x' * 80}" in lines  # what is to paste is never cut
    assert "  2. b\\x1b[31m" in lines
    assert any(line.endswith("…") and len(line) <= 60 for line in lines)
    assert next(line for line in lines if "deeper" in line).startswith("    deeper")
    assert "\x1b" not in out


def test_terminal_whole_shows_all_of_a_log() -> None:
    assert "y" * 80 in terminal(Verbatim(("y" * 80,), "log"), whole=True)
