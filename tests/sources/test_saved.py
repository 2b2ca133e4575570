"""Saved facts are anybody's: whatever is wrong with a file is one line, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memdoctor import catalog
from memdoctor.errors import InputError
from memdoctor.model import Fact, Origin, Skip
from memdoctor.report.facts import render
from memdoctor.sources.saved import read_saved

GOOD: dict[str, Any] = {
    "schema_version": 1, "host": "node-01",
    "facts": [{"kind": "host.shm", "fields": {"size": 67108864, "free": 1024}, "origin": {"source": "probe.host", "path": "/dev/shm", "excerpt": "64 MiB"}}],
}  # fmt: skip


def write(folder: Path, data: Any) -> str:
    path = folder / "facts.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


def test_what_is_written_is_read() -> None:
    facts = [
        Fact("host.shm", catalog.with_computed("host.shm", {"path": "/dev/shm", "size": 100, "free": 25}), Origin("probe.host", "/dev/shm", 3, "über"), host="node-01"),
        Fact("gpu.device", {"gpu": 0, "reasons": ("idle", "hw_thermal"), "mig": False, "power": 71.5}, Origin("probe.gpu", "NVML, GPU 0", None, ""), host="node-01"),
    ]  # fmt: skip
    skips = [Skip("xids", "may not be read", ("gpu.xid",))]
    text = render("node-01", facts, skips, ["host", "gpu"], 8)
    assert "free_share" not in text  # computed fields are computed anew
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ((saved,), _) = read_saved([write(Path(folder), text)])
    assert (saved.host, saved.ran, saved.expect_gpus, saved.skips) == ("node-01", ("host", "gpu"), 8, tuple(skips))
    assert [(fact.kind, dict(fact.fields), fact.origin, fact.host) for fact in saved.facts] == [
        (fact.kind, dict(fact.fields), fact.origin, fact.host) for fact in facts
    ]


def test_computed_fields_are_there_again(tmp_path: Path) -> None:
    ((saved,), _) = read_saved([write(tmp_path, GOOD)])
    assert saved.facts[0].get("free_share") == pytest.approx(1024 / 67108864)
    assert saved.ran == ("host",)


def changed(**change: Any) -> dict[str, Any]:
    return {**GOOD, **change}


def fact(**change: Any) -> dict[str, Any]:
    return changed(facts=[{**GOOD["facts"][0], **change}])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "not JSON"),
        ("[1, 2", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "it holds no list `facts`"),
        ("7", "it holds no list `facts`"),
        (changed(facts={}), "it holds no list `facts`"),
        (changed(schema_version=2), "its schema_version is 2, this version reads 1"),
        (changed(host=7), "`host` is no text"),
        (changed(facts=[7]), "fact 1 is no object"),
        (fact(kind="host.nothing"), "no probe yields the kind 'host.nothing'"),
        (fact(kind="cuda.oom"), "no probe yields the kind 'cuda.oom'"),
        (fact(fields=[]), "`fields` is no object"),
        (fact(fields={"size": "64 MiB"}), "fact 1, size: str where bytes is wanted"),
        (fact(fields={"size": True}), "fact 1, size: bool where bytes is wanted"),
        (fact(fields={"weight": 1}), "host.shm has no field 'weight'"),
        (fact(origin="x"), "`origin` is no object"),
        (changed(skips="x"), "`skips` is no list"),
        (changed(skips=[{"source": "x"}]), "`reason` is no text"),
        (changed(probes="host"), "`probes` is no list"),
        (changed(expect_gpus="8"), "`expect_gpus` is no whole number"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, data: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        read_saved([write(tmp_path, data)])
    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/facts.json: ")
    assert "\n" not in str(caught.value)


def test_no_file_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_saved([str(tmp_path / "none.json")])
    with pytest.raises(InputError, match=r"no \.json file in this folder"):
        read_saved([str(tmp_path)])
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not JSON"):
        read_saved([str(tmp_path)])


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(changed(host=name)))
    (tmp_path / "notes.txt").write_text("not looked at")
    assert [saved.host for saved in read_saved([str(tmp_path), str(tmp_path / "a.json")])[0]] == ["a", "b"]


SOUND: dict[str, Any] = GOOD["facts"][0]


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        ("gpu.device", {"gpu": 0, "memory": 10**400}, "memory: 100000000000000000000000... is out of range"),
        ("gpu.device", {"gpu": 0, "memory": 1e300}, "memory: 1e+300 is out of range"),
        ("gpu.device", {"gpu": 0, "memory": -1}, "memory: -1 is out of range"),
        ("gpu.device", {"gpu": 0.5}, "gpu: 0.5 where a whole number is wanted"),
        ("gpu.device", {"power_limit": float("nan")}, "power_limit: nan is no number"),
        ("gpu.device", {"power_limit": float("-inf")}, "power_limit: -inf is no number"),
        ("host.memory", {"total": 10**400, "available": 1}, "total: 100000000000000000000000... is out of range"),
        ("host.memory", {"total": "much"}, "total: str where bytes is wanted"),
        ("host.lock", {"age": -5.0}, "age: -5.0 is out of range"),
        (["x"], {}, "no probe yields the kind"),
        ({"a": 1}, {}, "no probe yields the kind"),
        (None, {}, "no probe yields the kind 'None'"),
    ],
)
def test_an_odd_fact_costs_itself_alone(tmp_path: Path, kind: Any, fields: dict[str, Any], problem: str) -> None:
    from memdoctor.checkup import judge_saved

    odd = {"kind": kind, "fields": fields, "origin": {"source": "probe.host", "path": "x"}}
    path = write(tmp_path, changed(facts=[SOUND, odd, odd]))
    ((saved,), _) = read_saved([path])
    assert [each.kind for each in saved.facts] == ["host.shm"]
    (skip,) = saved.skips
    assert skip.source == "host"
    assert skip.kinds == ((kind,) if isinstance(kind, str) else ())
    assert skip.reason.startswith(f"{path}: fact 2")
    assert problem in skip.reason
    assert skip.reason.endswith("left out; 1 more of this kind")
    report = judge_saved([path])
    assert [each.reason for each in report.skips] == [skip.reason]


@pytest.mark.parametrize("odd", [7, {"kind": ["x"]}, {"kind": "host.shm", "origin": 7}])
def test_an_odd_fact_of_no_check_is_told(tmp_path: Path, odd: Any) -> None:
    from memdoctor.checkup import judge_saved

    report = judge_saved([write(tmp_path, changed(facts=[SOUND, odd]))])
    (skip,) = report.skips
    assert (skip.source, "fact 2" in skip.reason) == ("saved facts", True)
    assert [check.name for check in report.checks] == ["host"]


def test_one_of_three_files_with_an_odd_fact(tmp_path: Path) -> None:
    from memdoctor.cli import main

    for name in ("a", "b", "c"):
        facts = [SOUND, {"kind": "host.memory", "fields": {"total": 10**400 if name == "b" else 1 << 40, "available": 1 << 39}}]
        (tmp_path / f"{name}.json").write_text(json.dumps(changed(host=name, facts=facts)))
    assert main(["check", str(tmp_path), "--fail-on", "never"]) == 0


@pytest.mark.parametrize("number", [-1, 1025, 10**400])
def test_an_expectation_out_of_range(tmp_path: Path, number: int) -> None:
    with pytest.raises(InputError, match="expect_gpus"):
        read_saved([write(tmp_path, changed(expect_gpus=number))])


def test_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    ((saved,), _) = read_saved([str(path)])
    assert saved.host == "node-01"
