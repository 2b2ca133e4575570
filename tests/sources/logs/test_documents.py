"""Logs within a JSON document or YAML records: where each message comes out, and what stays text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs import reading
from memdoctor.sources.logs.documents import LONGEST, document
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.reading import NOT_TURNED, TURNED, Reader
from memdoctor.sources.logs.wrapped import unwrapper

T = "2024-05-01T10:00:00Z"


def read(folder: Path, text: str) -> dict[int, str]:
    """The lines that come out, by their numbers."""
    path = folder / "x.json"
    path.write_text(text, newline="")
    reader = Reader(LogFile(str(path)))
    out: list[str] = []
    places: list[int] = []
    for chunk in reader:
        assert chunk.places is not None
        assert chunk.line == chunk.places[0]
        assert not chunk.part
        out += chunk.data.decode().split("\n")[:-1]
        places += chunk.places
    assert places == sorted(places)
    if "\n" in text.strip():
        assert reader.lines == text.removesuffix("\n").count("\n") + 1
    return dict(zip(places, out, strict=True))


def entries(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"insertId": "x", **more, "textPayload": f"line {i} [{{", "timestamp": T} for i in range(count)]


def test_messages_stand_where_they_stand_in_the_file(tmp_path):
    text = json.dumps(entries(3, resource={"labels": {"pod_name": "w-3"}}), indent=2)
    stored = text.split("\n")
    assert {stored[number - 1]: line for number, line in read(tmp_path, text).items()} == {
        f'    "textPayload": "line {i} [{{",': f"{T} stdout F [pod/w-3/-] line {i} [{{" for i in range(3)
    }


def test_of_a_document_on_one_line_each_record_is_a_line(tmp_path):
    lines = {i + 1: f"{T} stdout F line {i} [{{" for i in range(3)}
    assert read(tmp_path, json.dumps(entries(3))) == lines
    assert read(tmp_path, json.dumps(entries(3)) + "\n") == lines


def test_a_long_line_is_read_in_windows(tmp_path):
    out = read(tmp_path, json.dumps(entries(40_000, labels={"app": "x" * 20})))
    assert out == {i + 1: f"{T} stdout F line {i} [{{" for i in range(40_000)}


def test_many_lines_over_many_chunks(tmp_path):
    text = json.dumps({"events": [{"timestamp": 1714557600000, "message": f"m {i}\nand more"} for i in range(20_000)]}, indent=4)
    out = read(tmp_path, text)
    assert out == {5 + 4 * i: f"{T} stdout F m {i}\r{T} stdout F and more" for i in range(20_000)}


def test_what_several_records_share(tmp_path):
    streams = [
        {"stream": {"pod": f"w-{i}"}, "values": [["1714557600000000000", f"a {i}"], ["1714557600000000000", f"b {i}"]]} for i in range(2)
    ]
    out = read(tmp_path, json.dumps({"data": {"result": streams}}))
    assert [*out.values()] == [f"{T} stdout F [pod/w-{i}/-] {name} {i}" for i in range(2) for name in "ab"]


def test_plain_text_around_records_stays(tmp_path):
    out = read(tmp_path, json.dumps(entries(1), indent=1) + "\nERROR: (gcloud.logging.read) quota\n")
    assert out == {4: f"{T} stdout F line 0 [{{", 8: "ERROR: (gcloud.logging.read) quota"}


def test_a_record_that_is_cut_off_stays_as_it_is(tmp_path):
    whole = json.dumps(entries(3), indent=2)
    cut = whole[: whole.rfind('"timestamp"')]
    out = read(tmp_path, cut)
    assert out[14] == '    "textPayload": "line 2 [{",'


def test_a_record_without_end_hides_nothing_before_it(tmp_path):
    text = json.dumps(entries(50), indent=2)[:-2] + ',\n{"message": "' + "x" * 100 + '",\n' + '"y": "z",\n' * (LONGEST // 8)
    out = read(tmp_path, text)
    assert out[4] == f"{T} stdout F line 0 [{{"


@pytest.mark.parametrize(
    "text",
    [
        "[2024-05-01 10:00:00] iteration 1",
        "[rank0]: start",
        '{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.4}\n',
        json.dumps({"log_history": [{"loss": 2.5, "step": 1}]}, indent=2),
        json.dumps([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]),
        json.dumps([{"text": "a page", "timestamp": T, "url": "https://example.org"}] * 3),
        json.dumps({"results": {"mmlu": {"acc": 0.5}}, "config": {"message": None}}, indent=2),
        json.dumps(
            {"apiVersion": "v1", "items": [{"apiVersion": "v1", "kind": "Event", "message": "Pulled", "reason": "Pulled"}]}, indent=2
        ),
        '[{"message": ',
        "[{}, {}]",
        "{{{{",
        "[[[[[[[[[[",
    ],
)
def test_what_is_no_document_of_log_lines(text):
    assert unwrapper(text.encode()) is None


def test_yaml(tmp_path):
    text = (
        "---\ninsertId: a\ntextPayload: 'it''s'\ntimestamp: '2024-05-01T10:00:00Z'\n"
        "---\ntextPayload: |-\n  first\n    second\ntimestamp: '2024-05-01T10:00:00Z'\n"
        "---\njsonPayload:\n  message: third\n  rank: 4\ntimestamp: '2024-05-01T10:00:00Z'\n"
    )
    stamp = f"{T} stdout F "
    assert read(tmp_path, text) == {3: f"{stamp}it's", 6: f"{stamp}first\r{stamp}  second", 12: f"{stamp}[rank4]: third"}


@given(st.text(alphabet='[]{}",:\\ \n1aé', max_size=60))
def test_any_brackets_tell_their_lines(text):
    whole = document(b'[\n{"message": "a"},\n{"message": "b"},\n')
    assert whole is not None
    data = b'[\n{"message": "a"},\n{"message": "b"},\n' + text.encode() + b"\n"
    for out, places in (whole.feed(data), whole.finish()):
        assert out.count(b"\n") == len(places)
        assert [*places] == sorted(places)
    assert whole.lines == data.count(b"\n")


def test_what_is_listed_newest_first_is_read_from_its_end(tmp_path):
    listed = [{"textPayload": f"line {i}", "timestamp": f"2024-05-01T10:00:0{i}Z"} for i in range(5, 0, -1)]
    wanted = [f"2024-05-01T10:00:0{i}Z stdout F line {i}" for i in range(1, 6)]
    assert read(tmp_path, json.dumps(listed)) == dict(enumerate(wanted, 1))
    assert read(tmp_path, "".join(json.dumps(each) + "\n" for each in listed)) == dict(enumerate(wanted, 1))
    assert read(tmp_path, json.dumps(listed, indent=1)) == {4 + 4 * i: line for i, line in enumerate(wanted)}
    assert Reader(LogFile(str(tmp_path / "x.json"))).skip is None
    reader = Reader(LogFile(str(tmp_path / "x.json")))
    assert len([*reader]) == 1
    assert reader.skip is not None
    assert reader.skip.reason == TURNED


def test_what_is_too_much_to_be_turned_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "HELD", 1_000_000)
    path = tmp_path / "x.json"
    path.write_text("".join(json.dumps({"message": f"line {i}", "time": 1_700_000_000 + i}) + "\n" for i in range(40_000, 0, -1)))
    reader = Reader(LogFile(str(path)))
    assert next(iter(reader)).data.startswith(b"2023-11-15T09:20:00Z stdout F line 40000\n")
    reader = Reader(LogFile(str(path)))
    assert sum(chunk.data.count(b"\n") for chunk in reader) == reader.lines == 40_000
    assert reader.skip is not None
    assert reader.skip.reason == NOT_TURNED
