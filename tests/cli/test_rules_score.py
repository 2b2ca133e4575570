"""`memdoctor rules score`: precision and recall over labelled logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memdoctor.cli import main
from memdoctor.fixtures import find_cases
from memdoctor.fixtures.labels import Known, read_labels

OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.20 GiB is free.\n"
PORT = "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n"
HEALTHY = "".join(
    f" iteration {step:8d}/     10 | consumed samples: {step * 8:12d} | lm loss: 2.{100 - step:03d}E+00 |\n" for step in range(1, 11)
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Four runs: three labelled right, one wrongly."""
    for name, text, label in (
        ("one", OOM, "root_cause: oom.activations\n"),
        ("two", PORT, "- root_cause: [net.socket, job.port_in_use]\n"),
        ("three", HEALTHY, "- {input: [train.log], root_cause: null, exit: 0, diagnoses: []}\n"),
        ("four", PORT, "- {input: [train.log], root_cause: oom.host, exit: 1, diagnoses: [{rule: oom/host}, {rule: job/port_in_use}]}\n"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text(text)
        (tmp_path / name / "case.yaml").write_text(label)
    return tmp_path


def scores(runs: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["rules", "score", str(runs), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = scores(runs, capsys)
    assert (found["runs"], found["right"], found["healthy"], found["false_alarms"]) == (4, 3, 1, 0)
    causes = {each.pop("id"): each for each in found["causes"]}
    assert causes["oom.activations"] == {"expected": 1, "named": 1, "right": 1, "precision": 1.0, "recall": 1.0}
    assert causes["net.socket"]["right"] == 1  # a second right answer counts as the best one
    assert causes["oom.host"] == {"expected": 1, "named": 0, "right": 0, "precision": None, "recall": 0.0}
    assert causes["job.port_in_use"] == {"expected": 0, "named": 1, "right": 0, "precision": 0.0, "recall": None}
    rules = {each["id"]: each for each in found["rules"]}
    assert set(rules) == {"oom/host", "job/port_in_use"}  # only of runs with a complete list
    assert rules["job/port_in_use"]["recall"] == 1.0
    (miss,) = found["misses"]
    assert (miss["expected"], miss["got"], miss["input"]) == ("oom.host", "job.port_in_use", ["train.log"])


def test_text(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "score", str(runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "root cause right in 3 of 4 runs (75%); 0 of 1 healthy runs accused"
    assert lines[2].split() == ["cause", "expected", "named", "right", "precision", "recall"]
    assert {lines[3].split()[0], lines[4].split()[0]} == {"job.port_in_use", "oom.host"}  # the worst first
    assert any(line.split() == ["oom.activations", "1", "1", "1", "100%", "100%"] for line in lines)
    assert lines[-1].endswith("four/case.yaml:1  train.log: expected oom.host, got job.port_in_use")


def test_a_false_alarm(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "three" / "train.log").write_text(OOM)
    assert scores(runs, capsys)["false_alarms"] == 1


def test_rules_of_ones_own_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rules", "new", "site/licence", "--dir", str(tmp_path)])
    capsys.readouterr()
    assert main(["rules", "score", str(tmp_path / "fixtures"), "--rules", str(tmp_path / "rules"), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["right"] == 2
    assert [(each["id"], each["precision"], each["recall"]) for each in found["rules"]] == [("site/licence", 1.0, 1.0)]


def test_the_rules_that_lie_in_the_folder_are_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rules", "new", "site/licence", "--dir", str(tmp_path)])
    for place in (tmp_path, tmp_path / "rules"):
        for more in ([], ["--rules", str(tmp_path / "rules")]):  # named once more, it is the same folder
            capsys.readouterr()
            assert main(["rules", "score", str(place), "--format", "json", *more]) == 0
            found = json.loads(capsys.readouterr().out)
            assert found["right"] == 2
            assert [(each["id"], each["recall"]) for each in found["rules"]] == [("site/licence", 1.0)]


def test_a_folder_of_logs_that_is_called_rules(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "one").rename(runs / "rules")
    assert scores(runs, capsys)["runs"] == 4


def test_a_broken_rule_comes_before_the_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules" / "site").mkdir(parents=True)
    (tmp_path / "rules" / "site" / "licence.yaml").write_text("id: site/other\n")
    assert main(["rules", "score", str(tmp_path)]) == 2
    assert "licence.yaml:1: " in capsys.readouterr().err


@pytest.mark.parametrize("label", ["{input: [gone.log], root_cause: null}", "{input: [train.log, gone.log], root_cause: oom.activations}"])
def test_what_cannot_be_read_counts_and_the_rest_is_scored(label: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "one" / "case.yaml").write_text(f"- {label}\n")
    assert main(["rules", "score", str(runs), "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["labelled"], found["runs"], found["right"]) == (4, 3, 2)
    assert "one/case.yaml:1: " in found["unread"][0]
    assert "gone.log" in found["unread"][0]
    assert main(["rules", "score", str(runs)]) == 2
    out = capsys.readouterr().out
    assert out.startswith("root cause right in 2 of 4 runs (50%), of which 1 could not be read; 0 of 1 healthy runs accused\n")
    assert "not as labelled\n" in out


def test_a_log_that_is_expected_to_be_unreadable(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "one" / "empty").mkdir()
    (runs / "one" / "case.yaml").write_text("- {input: [empty], root_cause: null, exit: 2, diagnoses: []}\n")
    found = scores(runs, capsys)
    assert (found["labelled"], found["runs"], found["unread"]) == (3, 3, [])


def test_saved_facts_are_scored_too(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[2] / "fixtures" / "oom" / "shm_limit"
    found = scores(folder, capsys)
    assert found["runs"] == found["right"] > 0
    assert "oom/shm_limit" in {each["id"] for each in found["rules"]}


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("root_cause: nonsense\n", "case.yaml:1: no cause is called 'nonsense' (null where nothing is wrong; `memdoctor explain '*'` lists"),
        ("- input: [train.log]\n  root_cause: oom.activation\n", "case.yaml:2: no cause is called 'oom.activation'; did you mean 'oom.activations'"),
        ("root_cause: oom/logits\n", "case.yaml:1: no cause is called 'oom/logits'; did you mean 'oom.logits'?"),
        ("root_cause:\n- oom.logits\n- oom.logit\n", "case.yaml:3: no cause is called 'oom.logit'; did you mean 'oom.logits'"),
        (
            "root_cause: oom.logits\ndiagnoses:\n- rule: oom/logits\n- rule: oom/logit\n",
            "case.yaml:4: no rule is called 'oom/logit'; did you mean 'oom/logits'",
        ),
        (
            "root_cause: oom.logits\ndiagnoses:\n- rule: oom/logits\n  cause: oom.logit\n",
            "case.yaml:4: no cause is called 'oom.logit'; did you mean 'oom.logits'",
        ),
    ],
)  # fmt: skip
def test_a_label_that_names_nothing(label: str, said: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "two" / "case.yaml").write_text(label)
    assert main(["rules", "score", str(runs)]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (out, err.count("\n")) == ("", 1)


def test_every_label_of_the_fixtures_names_causes_and_rules() -> None:
    known = Known.of([])
    labels = [label for path in find_cases(Path(__file__).parents[2] / "fixtures") for label in read_labels(path, known)]
    assert len(labels) > 1_000


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("- {input: [train.log]}\n", "lacks the key `root_cause`"),
        ("- {root_cause: []}\n", "is an empty list"),
        ("- {root_cause: {a: b}}\n", "must be text"),
        ("just text\n", "must be a list"),
        ("- {root_cause: null, notes: x}\n", "has no key `notes`"),
    ],
)
def test_broken_labels(label: str, said: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "one" / "case.yaml").write_text(label)
    assert main(["rules", "score", str(runs)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "one/case.yaml:1: " in err


def test_no_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "score", str(tmp_path)]) == 2
    assert f"no case.yaml under {tmp_path};" in capsys.readouterr().err
    (tmp_path / "case.yaml").write_text("root_cause: null\n")
    assert main(["rules", "score", str(tmp_path)]) == 2
    assert "no log to go with this entry" in capsys.readouterr().err
