"""The JSON report: the keys of the contract in their order, valid against its own schema, and nothing in a log can break it."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memdoctor.report
from memdoctor.model import Diagnosis, Evidence, Fix, Incident, InputFile, Report, Run, Skip, Stamp
from memdoctor.report.json import as_object, render

SCHEMA = json.loads((Path(memdoctor.report.__path__[0]) / "schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

EMPTY = Report("logs", (InputFile("train.log", 0, 0),), Run(), None, None, None)
OOM = Diagnosis(
    "d1", "oom/logits", "oom.logits", "error", "likely", "GPU 3 has no room: 2 GiB asked", "Why.", "", "The logits do not fit", "fix-config",
    ranks=(7,), hosts=("node-02",), first_time=Stamp(1.5, "2025-03-01T10:00:00.500"), iteration=1201,
    evidence=(Evidence("train.log", 88123, 7, None, "torch.OutOfMemoryError: CUDA out of memory."),),
    fixes=(Fix("halve", "Halve the micro-batch.", "--micro-batch-size 1", None, "safe", "half of the activations", None, "megatron-lm"),),
)  # fmt: skip
HANG = dataclasses.replace(
    OOM, id="d2", rule="hang/straggler", cause="hang.straggler", explained_by="d1", ranks=tuple(range(63)), count=63, fixes=()
)
FULL = Report(
    "logs", (InputFile("train.log", 1 << 30, 88130),),
    Run(("megatron-lm", "nccl"), {"torch": "2.6", "nccl": "2.21"}, 64, 64, 1, "failed", 1, 1201, Stamp(0, "2025-03-01T09:00:00Z"), None, {"lr": 1e-4, "bf16": True}),
    "oom.logits", "likely", "fix-config", (), (), (Incident(1, "oom.logits", ("d1", "d2")),), (OOM, HANG),
    (("env/driver_old", "no nvidia-smi was read"),), (Skip("dmesg.txt", "cannot be read: Permission denied"),),
)  # fmt: skip


def check(report: Report) -> Any:
    text = render(report)
    assert text == render(report)
    assert text.endswith("}\n")
    text.encode("utf-8")
    read = json.loads(text)
    VALIDATOR.validate(read)
    return read


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("report", [EMPTY, FULL], ids=["empty", "full"])
def test_valid(report: Report) -> None:
    check(report)


def test_keys_and_their_order() -> None:
    read = check(FULL)
    assert (
        list(read)
        == (
            "schema_version memdoctor command inputs run root_cause candidates confidence action hosts_to_exclude incidents diagnoses not_checked skips series"
        ).split()
    )
    assert list(read["inputs"][0]) == ["path", "bytes", "lines"]
    assert (
        list(read["run"])
        == ("frameworks versions world_size ranks_seen attempts ended first_iteration last_iteration first_time last_time args").split()
    )
    assert list(read["incidents"][0]) == ["attempt", "root_cause", "diagnoses"]
    assert (
        list(read["diagnoses"][0])
        == (
            "id rule cause severity confidence state explained_by ranks hosts count first_time iteration message why not_this evidence fixes"
        ).split()
    )
    assert list(read["diagnoses"][0]["evidence"][0]) == ["path", "line", "rank", "time", "text"]
    assert list(read["diagnoses"][0]["fixes"][0]) == ["id", "do", "command", "config", "risk", "saves", "repro"]
    assert list(read["not_checked"][0]) == ["rule", "reason"]
    assert list(read["skips"][0]) == ["source", "reason"]


def test_schema_names_every_key() -> None:
    """Whoever adds a key to the report adds it to the schema."""

    def compare(schema: Any, value: Any) -> None:
        if "$ref" in schema:
            schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]]
        if isinstance(value, dict) and "properties" in schema:
            assert list(value) == [key for key in schema["properties"] if key in value]  # `checks` is of one command only
            assert list(value) == schema["required"]
            for key, each in value.items():
                compare(schema["properties"][key], each)
        elif isinstance(value, list):
            for each in value:
                compare(schema["items"], each)

    compare(SCHEMA, as_object(FULL))


def test_values() -> None:
    read = check(FULL)
    assert (read["schema_version"], read["command"], read["root_cause"], read["confidence"], read["action"]) == (
        1,
        "logs",
        "oom.logits",
        "likely",
        "fix-config",
    )
    first, second = read["diagnoses"]
    assert first["first_time"] == "2025-03-01T10:00:00.500"
    assert (first["explained_by"], second["explained_by"], second["count"], len(second["ranks"])) == (None, "d1", 63, 63)
    assert first["fixes"][0]["config"] is None
    assert read["run"]["first_time"] == "2025-03-01T09:00:00Z"
    assert read["run"]["last_time"] is None
    assert list(read["run"]["versions"]) == ["nccl", "torch"]


def test_nothing_found() -> None:
    read = check(EMPTY)
    assert (read["root_cause"], read["confidence"], read["action"], read["diagnoses"], read["series"]) == (None, None, None, [], {})


def test_at_most_five_lines_of_evidence() -> None:
    many = dataclasses.replace(OOM, evidence=OOM.evidence * 9)
    assert len(check(dataclasses.replace(FULL, diagnoses=(many,)))["diagnoses"][0]["evidence"]) == 5


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("caf\udce9.log", "caf\\xe9.log"),
        ("\x00\x1b[31m\x7f\x9b2J", "\x00\x1b[31m\x7f\x9b2J"),
        ("\u202egnp.exe", "\u202egnp.exe"),
        ("日本語 ≥ …", "日本語 ≥ …"),
    ],
)
def test_hostile_text(text: str, shown: str) -> None:
    evil = dataclasses.replace(OOM, message=text, hosts=(text,), evidence=(Evidence(text, 1, None, None, text),))
    report = dataclasses.replace(
        FULL,
        inputs=(InputFile(text, 0, 0),),
        diagnoses=(evil,),
        hosts_to_exclude=(text,),
        skips=(Skip(text, text),),
        run=Run(args={text: text}, versions={"torch": text}),
    )
    read = check(report)
    assert read["diagnoses"][0]["message"] == read["inputs"][0]["path"] == read["skips"][0]["reason"] == shown
    assert read["run"]["args"] == {shown: shown}
    assert all(sign.isprintable() or sign == "\n" for sign in render(report))


def test_values_that_json_cannot_hold() -> None:
    args = {
        "nan": math.nan, "inf": -math.inf, "tuple": (1, 2.5), "set": {3, 1}, "bytes": b"a\xff", "stamp": Stamp(0, "2025-03-01T10:00:00"),
        "object": Path("x"), "big": 10**30, "map": {1: {"b": None, "a": True}},
    }  # fmt: skip
    assert check(dataclasses.replace(FULL, run=Run(args=args)))["run"]["args"] == {
        "nan": None, "inf": None, "tuple": [1, 2.5], "set": [1, 3], "bytes": "a\\xff", "stamp": "2025-03-01T10:00:00",
        "object": "x", "big": 10**30, "map": {"1": {"a": True, "b": None}},
    }  # fmt: skip


def test_arguments_nested_without_end() -> None:
    nested: dict[str, Any] = {}
    nested["again"] = nested
    check(dataclasses.replace(FULL, run=Run(args=nested)))


def test_equal_reports_give_equal_text() -> None:
    one = dataclasses.replace(FULL, run=Run(args={"a": 1, "b": {2, 3}}, versions={"x": "1", "y": "2"}))
    other = dataclasses.replace(FULL, run=Run(args={"b": {3, 2}, "a": 1}, versions={"y": "2", "x": "1"}))
    assert render(one) == render(other)


anything = st.text(st.characters(codec=None), max_size=20)


@settings(max_examples=150, deadline=None)
@given(
    anything,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | anything,
        lambda inner: st.lists(inner) | st.dictionaries(anything, inner),
        max_leaves=8,
    ),
)
def test_any_text_gives_valid_json(text: str, value: Any) -> None:
    evil = dataclasses.replace(
        OOM, message=text, why=text, evidence=(Evidence(text, 1, None, None, text),), fixes=(Fix("x", text, text, text, saves=text),)
    )
    check(dataclasses.replace(FULL, diagnoses=(evil,), run=Run(args={"value": value}), not_checked=(("a/b", text),)))
