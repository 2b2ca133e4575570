"""Whatever a line holds: stripping and cutting never fail, and lose nothing of the message."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.glue import split_glued
from memdoctor.sources.logs.prefixes import Prefixes

PARTS = [
    "[default1]:", "[rank1]: ", "[rank1]:", "[trainer1|1]: ", "[1,3]<stderr>:", "[pod/a/b] ", "worker-0 › c ", "(W pid=4, ip=1.2.3.4) ", "(pid=99) ",
    "[E1023 02:44:30.941975491 a.cpp:632] ", "[W a.cpp:1] ", "W1129 13:09:23.793000 7378 torch/distributed/run.py:874] ", "E0321 02:07:08.408271 1 a.cpp:6] ",
    "n1:12:13 [0] NCCL INFO ", "[2026-05-05 06:16:47] n1:1:2 [7] a/b.cc:3 (f) NCCL WARN ", "[2025-01-01 10:00:00,123] [INFO] [a.py:1:f] [Rank -1] ",
    "INFO:a.b:", "2024-05-01 10:00:00,123 - INFO - a - ", "[2024-05-01 10:00:00,123][a][INFO] - ", "2024-05-01 10:00:00 | INFO     | a:b:1 - ",
    "[NeMo W 2024-05-01 10:00:00 a:1] ", "[INFO|a.py:1] 2024-05-01 10:00:00,123 >> ", " [2025-01-01 10:00:00.1] ", "[12345.678901] ", "Oct 01 13:00:00 n1 kernel: ",
    "<34>1 2024-10-11T22:14:15.003Z n1 p 4 I - ", "2024-05-01T10:00:00.1Z stderr F ", "12: ", " 3: ", "node01: ", "[3] ", "3|", "10:00:00 ", "2024-13-01 99:99:99 ",
    "[Rank 0] ", "[PG ID 0 PG GUID 0(default_pg) Rank 1] ", "Traceback (most recent call last):", "  File \"a.py\", line 1, in f", "RuntimeError: x", "[", "]", ":", " ",
]  # fmt: skip
ALONE = [part for part in PARTS[:-14] if part != "[rank1]:"]  # that tag may take a space or not
SAMPLES = [
    [],
    ["0: a", "1: b", "0: c"],
    ["node01: a", "node02: b", "node01: c", "node02: d"],
    ["[0] a", "[1] b", "[0] c"],
    ["3|a", "1|b", "0|c"],
    ["worker-0 pytorch a"] * 4,
    ["[worker0]:a"] * 4,
]

lines = st.one_of(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=6)), max_size=8).map("".join), st.text(max_size=80))


@given(lines, st.sampled_from(SAMPLES))
def test_strip_keeps_the_message(raw: str, sample: list[str]) -> None:
    prefixes = Prefixes(year_hint=2026)
    prefixes.learn(sample)
    line = prefixes.strip(raw)
    assert raw.endswith(line.text)
    assert line.rank is None or line.rank >= 0
    assert "\n" not in line.stream or "\n" in raw


@given(st.lists(lines, max_size=12))
def test_learn_never_raises(sample: list[str]) -> None:
    prefixes = Prefixes()
    prefixes.learn(sample)
    for raw in sample:
        assert raw.endswith(prefixes.strip(raw).text)


@given(lines)
def test_pieces_are_the_line(raw: str) -> None:
    pieces = split_glued(raw)
    assert "".join(pieces) == raw
    assert all(pieces) or raw == ""


@given(
    st.lists(st.sampled_from(ALONE), max_size=3).map("".join),
    st.text(alphabet=" abc", min_size=1, max_size=8).map(lambda text: text + "x"),
)
def test_a_message_behind_prefixes_keeps_its_indentation(prefix: str, message: str) -> None:
    assert Prefixes(year_hint=2026).strip(prefix + message).text.endswith(message)


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 16_000, "[rank" * 4_000, "[default1]:" * 2_000, "a" * 16_000, "a." * 8_000 + " NCCL ", "[2024-05-01 10:00:00] " * 1_000, "(a pid=" * 3_000,
        "1" * 16_000 + ": ", " " * 16_000, "[E1023 02:44:30.941975491 " + "a" * 16_000, "x [20" + "- " * 8_000 + " NCCL .cpp:", ":1:1 [0] " * 2_000 + " NCCL INFO ",
        "[Rank 0] (after " * 1_500 + "[Rank ", "INFO:" * 3_000, "<34>1 2024-10-11T22:14:15.003Z " + "[" * 16_000, "2024-05-01 10:00:00 - " + "a" * 16_000,
    ],
    ids=lambda raw: raw[:20],
)  # fmt: skip
def test_hostile_lines_take_no_time(raw: str) -> None:
    began = time.perf_counter()
    Prefixes().strip(raw)
    split_glued(raw)
    assert time.perf_counter() - began < 0.5
