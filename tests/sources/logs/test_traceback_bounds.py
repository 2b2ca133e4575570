"""Work and memory stay bounded, and no line whatever makes a reader raise."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.model import Stamp
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.sites import locate
from memdoctor.sources.logs.tracebacks import TracebackReader, from_tail, starts

HEADS = [
    "Traceback (most recent call last):",
    "Original Traceback (most recent call last):",
    "  traceback : Traceback (most recent call last):",
    "  + Exception Group Traceback (most recent call last):",
    "╭──────── Traceback (most recent call last) ─────────╮",
    "ValueError      Traceback (most recent call last)",
    "Fatal Python error: Aborted",
]
PIECES = [
    *HEADS,
    "",
    '  File "/a.py", line 3, in run',
    'File "/a.py", line 999999999, in <module>',
    '  File "/a.py", line 3',
    "    go()",
    "    ^^^^",
    "ValueError: x",
    "RuntimeError",
    "During handling of the above exception, another exception occurred:",
    "  | ValueError: y",
    "  +-+---------------- 1 ----------------",
    "│ /a/b.py:12 in main   │",
    "│ ❱ 12 │   go()        │",
    "╰──────────────────────╯",
    "----> 3 go()",
    "Current thread 0x00ff (most recent call first):",
    '  File "/a.py", line 3 in run',
    "Last error:",
    "[2024-01-01 00:00:00] INFO: x",
    '"""',
    "-- Process 3 terminated with the following error:",
    "ray.exceptions.RayTaskError(ValueError): ray::f()",
]


def read(texts: list[str]) -> tuple[TracebackReader, int]:
    reader = TracebackReader()
    for number, text in enumerate(texts, 1):
        if not reader.feed(Line(text=text), number):
            return reader, number
    return reader, len(texts)


def test_frames_of_a_deep_traceback():
    lines = [HEADS[0]]
    for number in range(250):
        lines += [f'  File "/a.py", line {number}, in f{number}', f"    f{number + 1}()"]
    (raised,) = read([*lines, "RecursionError: deep"])[0].finish()
    assert len(raised.frames) == 120
    assert [raised.frames[place].lineno for place in (0, 59, 60, 119)] == [0, 59, 190, 249]
    assert raised.frames[-1].source == "f250()"
    assert raised.complete


def test_an_endless_traceback_is_given_up():
    reader, stopped = read([HEADS[0], *['  File "/a.py", line 3, in f', "    f()"] * 1_000])
    assert stopped == 601
    assert not reader.took
    (raised,) = reader.finish()
    assert (raised.type, raised.complete) == ("", False)
    assert not reader.feed(Line(text="ValueError: x"), 602)


def test_long_messages():
    (raised,) = read([HEADS[0], '  File "/a.py", line 3, in f', "    f()", "ValueError: " + "x" * 100_000])[0].finish()
    assert len(raised.message) <= 8_192
    reader, stopped = read([HEADS[0], '  File "/a.py", line 3, in f', "    f()", "ValueError: one", *["    more of it" + "." * 300] * 200])
    (raised,) = reader.finish()
    assert stopped <= 46
    assert len(raised.message) <= 8_192
    assert raised.last_line < stopped


def test_strangers_in_a_row_end_it():
    reader, stopped = read([HEADS[0], '  File "/a.py", line 3, in f', *["hello"] * 20])
    assert stopped == 8
    assert len(reader.finish()) == 1


def test_a_logger_ends_a_message():
    reader = TracebackReader()
    for number, text in enumerate([HEADS[0], '  File "/a.py", line 3, in f', "    f()", "ValueError: one"], 1):
        assert reader.feed(Line(text=text, rank=0), number)
    assert not reader.feed(Line(text="two", rank=0, level="INFO", logger="x", time=Stamp(1.0, "")), 5)


def test_a_logger_that_heads_each_line():
    reader = TracebackReader()
    for number, text in enumerate([HEADS[0], '  File "/a.py", line 3, in f', "    f()", "ValueError: one"], 1):
        assert reader.feed(Line(text=text, level="ERROR", logger="torch"), number)
        assert reader.took
    (raised,) = reader.finish()
    assert (raised.type, raised.complete, len(raised.frames)) == ("ValueError", True, 1)


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=60))
def test_no_lines_make_it_raise(texts: list[str]):
    reader = TracebackReader()
    fed = 0
    for number, text in enumerate(texts, 1):
        if not reader.feed(Line(text=text), number):
            break
        fed = number
    for raised in reader.finish():
        assert 1 <= raised.first_line <= raised.line <= raised.last_line <= max(fed, 1)
        assert raised.repeats >= 1
        assert not raised.complete or raised.type
        locate(raised.frames, raised.type, raised.message)
    from_tail(Line(text=text) for text in reversed(texts))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    "line",
    [
        "a." * 4_000 + ":",
        "/" * 8_000,
        "x " * 4_000,
        "│ " + "/a" * 4_000,
        " " * 8_000 + "x",
        "(" * 8_000,
        '  File "' + "a" * 8_000,
        "{[" * 4_000,
        "a_" * 4_000 + "(",
        "│" * 8_000,
        "-" * 8_000 + "x",
    ],
    ids=lambda line: line[:8],
)
def test_hostile_lines_cost_little(head: str, line: str):
    assert starts(head)
    started = time.perf_counter()
    reader, _ = read([head, '  File "/a.py", line 3, in f', "    f()", *[line] * 5, "ValueError: x:", *[line] * 20])
    for raised in reader.finish():
        locate(raised.frames, raised.type, raised.message)
    assert time.perf_counter() - started < 2
