"""`memdoctor rules`: listing, and testing a folder of rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.cli import main
from memdoctor.engine.load import load_rules
from memdoctor.fixtures import run_case
from memdoctor.resources import rules_dir

RULE = """\
id: job/licence
cause: data.missing
title: The licence server refuses
status: stable
severity: error
confidence: certain
when:
  all:
    - fact: exception
      where: {type: licences.LicenceError}
over: [job/code]
message: "The licence server refused: {message}"
why: The job asks for a licence at its start, and had none.
fixes:
  - {id: ask, do: Ask for a licence before the job starts.}
action: fix-config
not_this: "A warning that a licence is late; the job then goes on."
refs: ["https://licences.example.org/errors"]
"""
FIRES = """\
Traceback (most recent call last):
  File "/job/train.py", line 12, in <module>
    take_licence()
  File "/job/licences.py", line 7, in take_licence
    raise LicenceError("none left")
licences.LicenceError: none left
"""
ITERATIONS = "".join(
    f" iteration {step:8d}/     100 | consumed samples: {step * 8:12d} | lm loss: 2.{100 - step:03d}E+00 |\n" for step in range(1, 101)
)
CASE = """\
- input: [fires.log]
  root_cause: data.missing
  exit: 1
  diagnoses:
    - {rule: job/licence, confidence: certain, explained_by: null}
- input: [quiet.log]
  root_cause: null
  exit: 0
  diagnoses: []
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    case = tmp_path / "pack" / "fixtures" / "job" / "licence"
    case.mkdir(parents=True)
    (case / "case.yaml").write_text(CASE)
    (case / "fires.log").write_text(FIRES)
    (case / "quiet.log").write_text("WARNING: LicenceError: none left, asking again\n" + ITERATIONS)
    rule = tmp_path / "pack" / "rules" / "job"
    rule.mkdir(parents=True)
    (rule / "licence.yaml").write_text(RULE)
    return tmp_path / "pack"


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rules = load_rules([rules_dir()])
    assert [line.split()[0] for line in lines] == sorted(rule.id for rule in rules)
    assert all(rule.cause in line and rule.title in line for rule, line in zip(sorted(rules, key=lambda rule: rule.id), lines, strict=True))


def test_list_with_a_folder(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "list", "--rules", str(pack / "rules")]) == 0
    assert "The licence server refuses" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["", "rules"])
def test_a_pack_that_is_sound(pack: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "test", str(pack / place)]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("ok")
    assert first.endswith("case.yaml:1  fires.log")
    assert second.endswith("case.yaml:6  quiet.log")
    assert last == "2 entries, 0 failed"


def test_cases_alone_are_run_with_the_built_in_rules(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "test", str(pack / "fixtures" / "job")]) == 1
    out = capsys.readouterr().out
    assert "no rule is called 'job/licence'" in out
    assert "missing: job/licence" in out
    assert "2 entries, 1 failed" in out


def test_what_differs_is_shown(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = pack / "fixtures" / "job" / "licence" / "case.yaml"
    case.write_text(CASE.replace("confidence: certain", "confidence: likely").replace("root_cause: null", "root_cause: data.missing"))
    assert main(["rules", "test", str(pack)]) == 1
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].startswith("FAILED")
    assert lines[1] == "job/licence: confidence: expected likely, got certain"
    assert lines[2].startswith("FAILED")
    assert lines[3] == "root_cause: expected data.missing, got none"
    assert lines[-1] == "2 entries, 2 failed"


def test_a_missing_input(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / "fixtures" / "job" / "licence" / "quiet.log").unlink()
    assert main(["rules", "test", str(pack)]) == 1
    assert "input: there is no quiet.log beside the case" in capsys.readouterr().out


def test_a_broken_case_names_file_and_line(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / "fixtures" / "job" / "licence" / "case.yaml").write_text(CASE.replace("exit: 1", "exit: one"))
    assert main(["rules", "test", str(pack)]) == 2
    assert "case.yaml:3: `exit` cannot be 'one'" in capsys.readouterr().err


def test_a_pack_without_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rules", "new", "site/licence", "--dir", str(tmp_path)])
    (tmp_path / "fixtures").rename(tmp_path / "elsewhere")
    for place in (tmp_path, tmp_path / "rules"):
        assert main(["rules", "test", str(place)]) == 2
        assert f"no case.yaml under {tmp_path}/fixtures" in capsys.readouterr().err


@pytest.mark.parametrize("inside", [[], ["rules"], ["fixtures"], ["rules", "fixtures"], ["notes"]])
def test_a_folder_that_holds_nothing_is_the_one_spoken_of(inside: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "site"
    for name in ("site", "fixtures", *(f"site/{each}" for each in inside)):  # the fixtures beside it are none of its own
        (tmp_path / name).mkdir()
    (tmp_path / "fixtures" / "case.yaml").write_text(CASE)
    assert main(["rules", "test", str(folder)]) == 2
    err = capsys.readouterr().err
    assert str(folder) in err
    assert str(tmp_path / "fixtures") not in err
    assert "no rules in it" in err if "rules" in inside else f"{folder}: holds neither rules nor cases; `memdoctor rules new" in err


@pytest.mark.parametrize("place", ["", "rules"])
@pytest.mark.parametrize("cases", [True, False])
def test_a_broken_rule_is_told_before_anything_else(place: str, cases: bool, pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = pack / "rules" / "job" / "licence.yaml"
    rule.write_text(RULE.replace("severity: error", "severity: eror"))
    case = pack / "fixtures" / "job" / "licence" / "case.yaml"
    case.write_text("nonsense\n")
    if not cases:
        case.unlink()
    assert main(["rules", "test", str(pack / place)]) == 2
    err = capsys.readouterr().err
    assert f"{rule}:5: " in err
    assert "case.yaml" not in err


def test_an_input_that_cannot_be_read_may_be_expected(pack: Path) -> None:
    case = pack / "fixtures" / "job" / "licence" / "case.yaml"
    (case.parent / "empty").mkdir()
    case.write_text(
        "- {input: [empty], root_cause: null, exit: 2, diagnoses: []}\n- {input: [empty], root_cause: null, exit: 0, diagnoses: []}\n"
    )
    good, bad = run_case(case)
    assert good.ok
    assert bad.problems[0].startswith("exit: expected 0, got 2: ")


def test_paths_in_a_result_are_relative_to_the_case(pack: Path) -> None:
    first, _ = run_case(pack / "fixtures" / "job" / "licence" / "case.yaml", [pack / "rules"])
    assert first.report is not None
    assert [each.path for each in first.report.inputs] == ["fires.log"]
    assert {each.path for each in first.report.diagnoses[0].evidence} == {"fires.log"}


def test_without_the_source_tree_there_are_no_cases_of_memdoctors_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("memdoctor.fixtures.find_cases", lambda folder: [])
    assert main(["rules", "test"]) == 2
    assert "lie in its source tree and are not installed" in capsys.readouterr().err


def test_a_rule_that_does_not_exist_is_told_with_the_nearest(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = pack / "fixtures" / "job" / "licence" / "case.yaml"
    case.write_text(CASE.replace("rule: job/licence", "rule: job/license"))
    assert main(["rules", "test", str(pack)]) == 1
    assert "no rule is called 'job/license' (did you mean 'job/licence'?)" in capsys.readouterr().out
