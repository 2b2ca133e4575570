"""`memdoctor rules new` and `rules show`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from memdoctor.cli import main
from memdoctor.engine.load import load
from memdoctor.handbook.book import Book
from memdoctor.handbook.source import source
from memdoctor.resources import rules_dir


def test_what_is_written_loads_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "new", "site/licence-check", "--dir", str(tmp_path)]) == 0
    paths = capsys.readouterr().out.split()
    assert [str(Path(path).relative_to(tmp_path)) for path in paths] == [
        "rules/site/licence-check.yaml",
        "fixtures/site/licence-check/case.yaml",
        "fixtures/site/licence-check/fires.log",
        "fixtures/site/licence-check/quiet.log",
    ]
    assert main(["rules", "test", str(tmp_path)]) == 0
    assert "2 entries, 0 failed" in capsys.readouterr().out
    (rule,) = [rule for rule in load([rules_dir(), tmp_path / "rules"]).rules if rule.id == "site/licence-check"]
    assert (rule.status, rule.cause) == ("draft", "job.code")


@pytest.mark.parametrize("kind", ["config.error", "nccl.warn", "cuda.oom", "scheduler"])
def test_with_a_signal(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["rules", "new", "site/licence", "--dir", str(tmp_path), "--signal", kind, "--cause", "env.limits"]
    assert main(arguments) == 0
    assert main(["rules", "test", str(tmp_path)]) == 0, capsys.readouterr().out
    base = load([rules_dir(), tmp_path / "rules"])
    assert [signal.fact for signal in base.signals if signal.id == "site.licence"] == [kind]
    assert [rule.cause for rule in base.rules if rule.id == "site/licence"] == ["env.limits"]


def test_the_cause_of_the_same_name_is_taken(tmp_path: Path) -> None:
    assert main(["rules", "new", "oom/growth_of_ours", "--dir", str(tmp_path)]) == 0
    assert "cause: job.code" in (tmp_path / "rules/oom/growth_of_ours.yaml").read_text()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = tmp_path / "fixtures/site/licence/quiet.log"
    quiet.parent.mkdir(parents=True)
    quiet.write_text("mine\n")
    assert main(["rules", "new", "site/licence", "--dir", str(tmp_path)]) == 2
    assert f"{quiet}: is there already" in capsys.readouterr().err
    assert not (tmp_path / "rules").exists()
    assert quiet.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["licence"], "is no id of a rule; write area/slug"),
        (["Site/licence"], "is no id of a rule"),
        (["../../etc/x"], "is no id of a rule"),
        (["signals/x"], "is no id of a rule"),
        (["oom/logits"], "there is a rule 'oom/logits' already"),
        (["a/b", "--cause", "oom.logit"], "no cause is called 'oom.logit'; did you mean 'oom.logits'"),
        (["a/b", "--signal", "config.eror"], "did you mean 'config.error'?"),
        (["a/b", "--signal", "host.memory"], "no line of a log makes a fact of the kind 'host.memory'"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "new", *arguments, "--dir", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules").write_text("a file")
    assert main(["rules", "new", "a/b", "--dir", str(tmp_path)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_show_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", "oom/logits"]) == 0
    out = capsys.readouterr().out
    assert (rules_dir() / "oom" / "logits.yaml").read_text(encoding="utf-8").rstrip("\n") in out
    assert yaml.safe_load(out)["id"] == "oom/logits"  # what is added is comment
    assert "# facts of the kind cuda.oom:\n#   cuda_oom.torch " in out


def test_show_a_rule_whose_facts_are_computed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", "nan/divergence"]) == 0
    assert "# facts of the kind series.numerics are computed" in capsys.readouterr().out


def test_show_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", "cuda_oom.torch_bare"]) == 0
    (entry,) = yaml.safe_load(capsys.readouterr().out)
    assert (entry["id"], entry["fact"]) == ("cuda_oom.torch_bare", "cuda.oom")


def test_show_of_ones_own_and_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rules", "new", "site/licence", "--dir", str(tmp_path)])
    capsys.readouterr()
    assert main(["rules", "show", "site/licence", "--rules", str(tmp_path / "rules")]) == 0
    assert "id: site/licence" in capsys.readouterr().out
    assert main(["rules", "show", "oom/logit"]) == 2
    assert "did you mean 'oom.logits' or 'oom/logits'?" in capsys.readouterr().err


@pytest.mark.parametrize("cause", ["oom.logits", "net.socket", "gpu.lost"])
def test_show_the_rules_of_a_cause(cause: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", cause]) == 0
    shown = list(yaml.safe_load_all(capsys.readouterr().out))
    rules = [rule for rule in load([rules_dir()]).rules if rule.cause == cause]
    assert sorted(each["id"] for each in shown) == sorted(rule.id for rule in rules)
    assert {each["cause"] for each in shown} == {cause}
    same = cause.replace(".", "/")
    assert shown[0]["id"] == same or same not in {rule.id for rule in rules}  # the rule of the cause's own name comes first


def test_show_what_is_a_cause_and_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", "gpu.ecc"]) == 0
    *rules, signals = yaml.safe_load_all(capsys.readouterr().out)
    assert {rule["cause"] for rule in rules} == {"gpu.ecc"}
    assert [signal["id"] for signal in signals] == ["gpu.ecc"]


def test_show_a_cause_with_the_rules_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rules", "new", "site/licence", "--dir", str(tmp_path), "--cause", "env.limits"])
    capsys.readouterr()
    assert main(["rules", "show", "env.limits", "--rules", str(tmp_path / "rules")]) == 0
    shown = {each["id"] for each in yaml.safe_load_all(capsys.readouterr().out)}
    assert {"site/licence", "env/threads"} <= shown


def test_show_a_cause_that_no_rule_names(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Book, "rules_of", lambda book, cause: [])
    assert main(["rules", "show", "oom.logits"]) == 2
    assert (
        capsys.readouterr().err
        == "memdoctor: 'oom.logits' is a cause that no rule names; `memdoctor explain oom.logits` tells what it means\n"
    )


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("cuda_oom.torch_bar", "'cuda_oom.torch_bare'"), ("Oom.Logits", "'oom.logits' or 'oom/logits'")],
)
def test_show_suggests_what_it_can_show(asked: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "show", asked]) == 2
    err = capsys.readouterr().err
    assert f"no rule, cause or signal is called '{asked}'" in err
    assert meant in err


def test_what_there_is_can_be_shown() -> None:
    book = Book()
    rules, causes, signals = book.rule_ids[::40], book.cause_ids[::10], [signal.id for signal in book.base.signals][::60]
    for id_ in [*rules, *causes, *signals]:
        assert re.search(rf"\bid: {re.escape(id_)}(?: +#.*)?\n", source(book, id_)) or f"cause: {id_}\n" in source(book, id_)


def test_explain_says_what_a_signal_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "cuda_oom.torch"]) == 2
    assert "'cuda_oom.torch' is a signal, not a cause or rule; `memdoctor rules show cuda_oom.torch` shows it" in capsys.readouterr().err
