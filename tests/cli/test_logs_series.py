"""``memdoctor logs`` with curves, step lines as a file, and a run to compare with."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from memdoctor.cli import main
from memdoctor.report import plot
from tests.made_runs.make import make

SCHEMA = json.loads((Path(plot.__file__).parent / "schema.json").read_text())


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "train.log"
    path.write_text(make("growth", "titan", 10, 3).text)
    return str(path)


def test_curves_below_the_report(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--plot", "--fail-on", "never", log]) == 0
    text = capsys.readouterr().out
    places = [text.index(f"\n{title}\n") for title in ("Loss", "Gradient norm", "Memory")]
    assert places == sorted(places)
    assert "GiB |" in text
    assert main(["logs", "--fail-on", "never", log]) == 0
    assert "\nGradient norm\n" not in capsys.readouterr().out


def test_without_step_lines_there_is_nothing_to_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    path.write_text("hello\n")
    assert main(["logs", "--plot", str(path)]) == 0
    assert "No series to draw" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_step_lines_as_a_file(log: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / f"steps.{ending}"
    assert main(["logs", "--fail-on", "never", "--series", str(target), log]) == 0
    text = target.read_text()
    lines = Path(log).read_text().count("step: ")
    if ending == "csv":
        assert text.splitlines()[0].split(",")[:3] == ["attempt", "iteration", "time"]
        assert len(text.splitlines()) == lines + 1
    else:
        assert {len(column) for column in json.loads(text).values()} == {lines}


def test_an_unknown_ending_is_refused_before_reading(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--series", "steps.txt", log]) == 2
    assert ".csv or .json" in capsys.readouterr().err


def test_json_holds_a_sample_and_the_comparison(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.log"
    good.write_text(make("healthy", "titan", 10, 3).text)
    assert main(["logs", "--fail-on", "never", "--format", "json", "--baseline", str(good), log]) == 0
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMA)
    assert report["root_cause"] == "oom.growth"
    assert {len(column) for column in report["series"].values()} == {len(report["series"]["iteration"])}
    assert 0 < len(report["series"]["iteration"]) <= 500
    assert report["baseline"]["inputs"] == [str(good)]
    assert {each["kind"] for each in report["baseline"]["differences"]} >= {"memory"}
    assert main(["logs", "--fail-on", "never", "--format", "json", log]) == 0
    assert "baseline" not in json.loads(capsys.readouterr().out)


def test_the_comparison_as_text(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--fail-on", "never", "--baseline", log, log]) == 0
    text = capsys.readouterr().out
    assert "Beside the run that worked\n  nothing differs" in text
    assert main(["logs", "--baseline", str(tmp_path / "none.log"), log]) == 2


@pytest.mark.parametrize("shape", ["megatron_2", "megatron", "megatron_deepspeed", "deepspeed", "trainer", "lightning", "nemo", "titan"])
def test_curves_step_lines_and_comparison_of_every_framework(shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good, target = tmp_path / "bad.log", tmp_path / "good.log", tmp_path / "steps.csv"
    bad.write_text(make("leap", shape, 10, 3).text)
    good.write_text(make("healthy", shape, 10, 4).text)
    assert main(["logs", "--plot", "--series", str(target), "--baseline", str(good), str(bad)]) == 1
    text = capsys.readouterr().out
    assert "\nLoss\n" in text
    assert "Beside the run that worked\n  " in text
    assert "loss: " in text.split("Beside the run that worked")[1]
    rows = target.read_text().splitlines()
    columns = rows[0].split(",")
    assert {"attempt", "iteration", "loss", "line"} <= set(columns)
    assert len(rows) > 80
    assert all(len(row.split(",")) == len(columns) for row in rows)
    assert all(float(row.split(",")[columns.index("loss")]) > 0 for row in rows[1:])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--series", "{here}/none/steps.csv"), "--series {here}/none/steps.csv: there is no folder {here}/none"),
        (("--series", "{here}/folder.csv"), "--series {here}/folder.csv: is a folder"),
        (("--series", "{log}"), "--series {log}: would replace a log"),
        (("--output", "{log}"), "--output {log}: would replace a log"),
        (("--series", "{here}/good.csv", "--baseline", "{here}/good.csv"), "--series {here}/good.csv: would replace a log"),
        (("--baseline", "{here}/none.log"), "--baseline: no log could be read: {here}/none.log: no such file"),
        (("--baseline", "{here}/empty.log"), "--baseline: no log could be read: {here}/empty.log: empty"),
    ],
)
def test_paths_that_cannot_be(options: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.csv"
    (tmp_path / "good.csv").write_text(make("healthy", "plain", 10, 3).text)
    log.write_text(make("healthy", "plain", 10, 3).text)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "empty.log").touch()
    before = log.read_text()
    assert main(["logs", *(each.format(here=tmp_path, log=log) for each in options), str(log)]) == 2
    assert told.format(here=tmp_path, log=log) in capsys.readouterr().err.replace("\n", " ")
    assert log.read_text() == before


def test_json_without_step_lines(tmp_path: Path) -> None:
    path, target = tmp_path / "a.log", tmp_path / "steps.json"
    path.write_text("hello\n")
    assert main(["logs", "--series", str(target), str(path)]) == 0
    assert json.loads(target.read_text()) == {}


def test_the_line_of_a_trend_is_quoted(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--fail-on", "never", "--format", "json", log]) == 0
    report = json.loads(capsys.readouterr().out)
    lines = Path(log).read_text().splitlines()
    evidence = report["diagnoses"][0]["evidence"]
    assert evidence
    for each in evidence:
        assert each["text"].strip()
        assert lines[each["line"] - 1].startswith(each["text"][:200].rstrip("…"))
