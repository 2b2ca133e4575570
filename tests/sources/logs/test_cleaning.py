from __future__ import annotations

import pytest

from memdoctor.sources.logs.cleaning import LineCleaner, clean


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[31mERROR\x1b[0m\n", b"ERROR\n"),
        (b"\x1b[1;38;2;255;0;0mred\x1b[m\n", b"red\n"),
        (b"\x1b[36m(Worker pid=4711)\x1b[0m loss\n", b"(Worker pid=4711) loss\n"),
        (b"\x1b[2K\r 10%\x1b[A\n", b"\r 10%\n"),
        (b"\x1b[?25l hidden cursor\x1b[?25h\n", b" hidden cursor\n"),
        (b"\x1b(B\x1b[mtput\n", b"tput\n"),
        (b"\x1b]0;title\x07text\n", b"text\n"),
        (b"\x1b]8;;file:///a.py\x1b\\a.py\x1b]8;;\x1b\\\n", b"a.py\n"),
        (b"\x1bPq#0\x1b\\sixel\n", b"sixel\n"),
        (b"\x1b7saved\x1b8\x1bM\n", b"saved\n"),
        (b"cut \x1b[3\n", b"cut \n"),
        (b"cut \x1b\n", b"cut \n"),
        (b"\x1b]0;no end: CUDA out of memory\n", b"0;no end: CUDA out of memory\n"),
        (b"\x1bPython error\n", b"ython error\n"),
        (b"\x1b\x1b[0m[0mtext\n", b"[0mtext\n"),
        (b"a\r\nb\rc\r\r\nd\n", b"a\nb\rc\r\nd\n"),
        (b"a\r\x1b[0m\n", b"a\n"),
        (b"a\r\0\n", b"a\n"),
        (b"\0\0\0loss\0: 1\n", b"loss: 1\n"),
        ("naïve 损失\n".encode(), "naïve 损失\n".encode()),
    ],
)
def test_clean(raw, text):
    assert clean(raw) == text
    for cut in range(len(raw) + 1):
        cleaner = LineCleaner()
        if b"\n" in raw[:-1]:
            break  # one line at a time
        assert cleaner.feed(raw[:cut]) + cleaner.feed(raw[cut:]) + cleaner.finish() == text


def test_a_line_of_nothing_but_openings_takes_linear_time():
    for opening in (b"\x1b]", b"\x1b[", b"\x1bP", b"\x1b]0;aaaa"):
        assert b"\x1b" not in clean(opening * 500_000 + b"\n")
