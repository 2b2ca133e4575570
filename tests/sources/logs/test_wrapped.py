"""Logs wrapped in JSON or in CRI form, read from files as a person has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.cutting import WINDOW
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.prefixes import Prefixes
from memdoctor.sources.logs.reading import Reader

T = "2024-05-01T10:00:00.123456789Z"


def read(folder: Path, *lines: Any) -> list[str]:
    """The lines read from a file of ``lines`` (text as it is, anything else as JSON); their numbers must be those of the file."""
    path = folder / "x-json.log"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), newline="")
    reader = Reader(LogFile(str(path)))
    text = ""
    for chunk in reader:
        assert chunk.line == text.count("\n") + 1
        assert chunk.data.endswith(b"\n")
        text += chunk.data.decode()
    assert reader.lines == len(lines)
    return text.split("\n")[:-1]


def docker(log: str, stream: str = "stdout", time: str = T) -> dict[str, str]:
    return {"log": log, "stream": stream, "time": time}


def test_docker(tmp_path):
    lines = [
        docker("plain\n"),
        docker('\x1b[31mred\x1b[0m "quoted"\r\n', "stderr"),
        docker("\n"),
        docker("10%\r20%\r100%\n"),
        docker("损失\n"),
    ]
    assert read(tmp_path, *lines) == [
        f"{T} stdout F plain",
        f'{T} stderr F red "quoted"',
        f"{T} stdout F ",
        f"{T} stdout F 10%\r20%\r100%",
        f"{T} stdout F 损失",
    ]


def test_docker_as_docker_writes_it(tmp_path):
    """Without blanks after colons and commas, and with signs escaped that need none."""
    raw = '{"log":"step 1\\n","stream":"stderr","time":"' + T + '"}'
    assert read(tmp_path, raw, raw.replace("step 1", "\\u003cstep\\u003e")) == [f"{T} stderr F step 1", f"{T} stderr F <step>"]


def test_docker_cuts_long_lines_in_pieces(tmp_path):
    lines = [
        docker("first\n"),
        docker("a" * 16_384),
        docker("b" * 16_384),
        docker("error here\n", "stderr"),
        docker("c\n"),
        docker("last\n"),
    ]
    assert read(tmp_path, *lines) == [
        f"{T} stdout F first",
        "",
        "",
        f"{T} stderr F error here",
        f"{T} stdout F " + "a" * 16_384 + "b" * 16_384 + "c",
        f"{T} stdout F last",
    ]


def test_docker_piece_at_the_end_of_the_file(tmp_path):
    assert read(tmp_path, docker("first\n"), docker("a"), docker("b")) == [f"{T} stdout F first", "", f"{T} stdout F ab"]
    assert read(tmp_path, docker("1\n"), docker("2\n"), docker("a"), docker("b\n", "stderr"))[2:] == ["", f"{T} stderr F b\r{T} stdout F a"]


def test_pieces_are_not_joined_without_limit(tmp_path):
    lines = [docker("first\n")] * 60 + [docker("x" * 16_384)] * 50 + [docker("end\n")]
    out = read(tmp_path, *lines)
    assert max(map(len, out)) < 600_000
    assert sum(map(len, out)) > 50 * 16_384
    assert out[-1].endswith("xend")


def test_an_escape_sequence_across_two_pieces(tmp_path):
    assert read(tmp_path, docker("1\n"), docker("2\n"), docker("a\x1b[3"), docker("1mred\n"))[3] == f"{T} stdout F ared"


@pytest.mark.parametrize(
    ("wrap", "line"),
    [
        ({"textPayload": "hello", "timestamp": T, "severity": "ERROR"}, f"{T} stdout F hello"),
        ({"message": "hello", "@timestamp": "2024-05-01T10:00:00+02:00"}, "2024-05-01T10:00:00+02:00 stdout F hello"),
        ({"message": "hello", "timestamp": "2024-05-01 10:00:00,5"}, "2024-05-01T10:00:00.5 stdout F hello"),
        ({"message": "hello", "time": 1714557600}, "2024-05-01T10:00:00Z stdout F hello"),
        ({"msg": "hello", "ts": 1714557600.25, "level": "info"}, "2024-05-01T10:00:00.250000Z stdout F hello"),
        ({"msg": "hello", "ts": "1714557600123"}, "2024-05-01T10:00:00.123000Z stdout F hello"),
        ({"msg": "hello", "ts": 1714557600123456789}, "2024-05-01T10:00:00.123457Z stdout F hello"),
        ({"jsonPayload": {"message": "hello", "ts": 5}, "timestamp": T}, f"{T} stdout F hello"),
        ({"jsonPayload": {"msg": "hello", "time": T}}, f"{T} stdout F hello"),
        ({"log": "hello", "time": T, "kubernetes": {"pod_name": "llama-worker-3", "container_name": "pytorch"}}, f"{T} stdout F [pod/llama-worker-3/pytorch] hello"),
        ({"log": "a\nb\n", "kubernetes": {"pod_name": "w-3"}}, "[pod/w-3/-] a\r[pod/w-3/-] b"),
        ({"textPayload": "hello", "resource": {"labels": {"pod_name": "w-3", "container_name": "c"}}}, "[pod/w-3/c] hello"),
        ({"textPayload": "hello", "resource": {"labels": {"pod_name": "not a\nname"}}}, "hello"),
        ({"message": "hello"}, "hello"),
        ({"message": "hello", "time": "yesterday"}, "hello"),
        ({"message": "hello", "time": True}, "hello"),
        ({"message": "hello", "time": 1e400}, "hello"),
        ({"message": "hello", "time": {"seconds": 5}}, "hello"),
        ({"message": "nul\0 and \x1b[31mcolour\x1b[0m", "time": T}, f"{T} stdout F nul and colour"),
        ({"message": "lone \ud800", "time": T}, f"{T} stdout F lone ?"),
        ({"message": "failed", "exc_info": "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: x"}, 'failed\rTraceback (most recent call last):\r  File "a.py", line 1\rValueError: x'),
        ({"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback (most recent call last):\n  ...\nValueError: x\n", "timestamp": "1714557600"}}},
         "\r".join(f"2024-05-01T10:00:00Z stdout F {part}" for part in ("Traceback (most recent call last):", "  ...", "ValueError: x"))),
        ({"message": {"message": "RuntimeError: x"}}, "RuntimeError: x"),
        ({"msg": "a\nb", "rank": 3, "time": T}, f"{T} stdout F [rank3]: a\r{T} stdout F [rank3]: b"),
        ({"message": "hello", "extra": {"global_rank": "12"}}, "[rank12]: hello"),
        ({"message": "[rank7]: hello", "rank": 3}, "[rank7]: hello"),
        ({"message": "hello", "rank": True}, "hello"),
        ({"message": "hello", "rank": -1}, "hello"),
        ({"message": "hello", "rank": "first"}, "hello"),
    ],
)  # fmt: skip
def test_services(tmp_path, wrap, line):
    assert read(tmp_path, wrap) == [line]


def test_a_traceback_in_one_message_stays_readable(tmp_path):
    stack = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    step()\nRuntimeError: boom'
    assert read(tmp_path, {"textPayload": stack + "\n", "timestamp": T}, {"textPayload": "next", "timestamp": T}) == [
        f"{T} stdout F " + stack.replace("\n", f"\r{T} stdout F "),
        f"{T} stdout F next",
    ]


def test_plain_lines_among_wrapped_ones_are_kept(tmp_path):
    lines = [
        docker("one\n"),
        "plain text",
        docker("two\n"),
        '{"broken": ',
        '{"neither": "message"}',
        "",
        "[1, 2]",
        docker("three\n"),
        docker("4\n"),
        docker("5\n"),
        docker("6\n"),
    ]
    assert read(tmp_path, *lines)[:8] == [
        f"{T} stdout F one",
        "plain text",
        f"{T} stdout F two",
        '{"broken": ',
        '{"neither": "message"}',
        "",
        "[1, 2]",
        f"{T} stdout F three",
    ]


def test_json_in_a_plain_log_is_left_alone(tmp_path):
    lines = ["start", '{"message": "a metric", "step": 1}', "iteration 1", "iteration 2"]
    assert read(tmp_path, *lines) == lines


def test_json_lines_without_a_message_are_left_alone(tmp_path):
    assert read(tmp_path, '{"step": 1, "loss": 2.5}', '{"step": 2, "loss": 2.4}') == [
        '{"step": 1, "loss": 2.5}',
        '{"step": 2, "loss": 2.4}',
    ]


def test_deep_nesting_is_no_trouble(tmp_path):
    deep = '{"message": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert read(tmp_path, docker("1\n"), docker("2\n"), deep) == [f"{T} stdout F 1", f"{T} stdout F 2", deep]


def test_wrapped_lines_over_many_chunks(tmp_path):
    """A piece of a line is joined with the next also where a chunk ends between them."""
    lines = [docker(f"line {i}\n" if i % 7 else f"piece {i} ") for i in range(20_000)]
    out = read(tmp_path, *lines)
    for i in range(1, 19_999):
        begun = f"piece {i - 1} " if i % 7 == 1 else ""
        assert out[i] == (f"{T} stdout F {begun}line {i}" if i % 7 else "")


def test_shippers_that_take_the_line_end_off_leave_no_pieces(tmp_path):
    lines = [docker("one"), docker("two"), {**docker("three"), "kubernetes": {}}]
    assert read(tmp_path, *lines) == [f"{T} stdout F one", f"{T} stdout F two", f"{T} stdout F three"]


def test_a_line_that_is_too_long_to_be_unwrapped_stays_as_it_is(tmp_path):
    path = tmp_path / "x.log"
    long = json.dumps(docker("x" * WINDOW + "\n")).encode() + b"\n"
    path.write_bytes(
        json.dumps(docker("1\n")).encode()
        + b"\n"
        + b"\n" * 300_000
        + json.dumps(docker("2")).encode()
        + b"\n"
        + long
        + json.dumps(docker("3\n")).encode()
    )
    reader = Reader(LogFile(str(path)))
    chunks = list(reader)
    assert chunks[0].data.startswith(f"{T} stdout F 1\n".encode())
    windows = [chunk for chunk in chunks if chunk.part]
    assert windows[0].data + windows[1].data[4_096:] == long
    assert {chunk.line for chunk in windows} == {300_003}
    assert chunks[-1].data == f"{T} stdout F 3\n".encode()
    assert b"".join(chunk.data for chunk in chunks).count(f"{T} stdout F 2\n".encode()) == 1
    assert reader.lines == 300_004


def test_cri_partial_lines_are_joined(tmp_path):
    lines = [
        f"{T} stdout F one",
        f"{T} stderr P two ",
        f"{T} stdout F between",
        f"{T} stderr P:x and ",
        f"{T} stderr F three",
        "not CRI at all",
        f"{T} stdout F ",
        f"{T} stderr P the end",
    ]
    assert read(tmp_path, *lines) == [
        f"{T} stdout F one",
        "",
        f"{T} stdout F between",
        "",
        f"{T} stderr F two and three",
        "not CRI at all",
        f"{T} stdout F ",
        f"{T} stderr F the end",
    ]


def test_cri_without_partial_lines_is_untouched(tmp_path):
    lines = [f"{T} stdout F line {i}" for i in range(1_000)]
    assert read(tmp_path, *lines) == lines


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    [
        "log",
        "message",
        "msg",
        "textPayload",
        "jsonPayload",
        "time",
        "ts",
        "@timestamp",
        "stream",
        "kubernetes",
        "resource",
        "exc_info",
        "pod_name",
        "extraInfo",
    ]
)


@given(
    st.lists(
        st.one_of(
            st.dictionaries(KEYS, VALUES | st.dictionaries(KEYS, VALUES, max_size=3), max_size=4),
            st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n\x1b"), max_size=20),
        ),
        max_size=12,
    )
)
def test_any_json_keeps_its_line_number(tmp_path_factory, lines):
    lines = [*[docker("log\n")] * 12, *lines, docker("x"), docker("end\n")]
    out = read(tmp_path_factory.getbasetemp(), *lines)
    assert out[:12] == [f"{T} stdout F log"] * 12
    assert out[-1].endswith("end")


def test_the_form_that_comes_out_is_one_that_prefixes_know(tmp_path):
    prefixes = Prefixes()
    (first, second) = read(
        tmp_path,
        {"textPayload": "a\n  b", "timestamp": "2024-05-01 10:00:00.5", "kubernetes": {"pod_name": "w-3"}},
        {"msg": "c", "ts": 1714557600.25},
    )
    assert [(line.text, line.host) for line in map(prefixes.strip, first.split("\r"))] == [("a", "w-3"), ("  b", "w-3")]
    stamp = prefixes.strip(second).time
    assert stamp is not None
    assert stamp.iso == "2024-05-01T10:00:00.250000Z"
