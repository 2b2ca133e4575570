"""`memdoctor explain`: every id runs, in every form; unknown ids get an answer that helps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memdoctor.cli import main
from memdoctor.handbook.book import Book

BOOK = Book()
RULE = """\
id: site/licence
cause: job.code
title: The licence server refuses
status: draft
severity: error
confidence: certain
when:
  all:
    - fact: exception
      where: {type: LicenceError, message: {has: [no seat, left]}, site: dataloader}
    - none:
        - fact: progress
          same: [rank]
          count: {ge: 3, within: 2 min}
over: [job/code]
message: "[Rank {rank}: ]refused: {message}"
why: There are fewer seats than jobs.
action: restart
explains:
  - {cause: "hang.*", link: job, before: 40 min}
  - {cause: net.socket, link: job, before: 40 min}
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["explain", *arguments])
    return code, *capsys.readouterr()


def parsed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, err = run(capsys, *arguments, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.fixture(scope="module", autouse=True)
def _one_book() -> Any:
    """The rules are read once: reading them is not what these tests are about."""
    with pytest.MonkeyPatch.context() as patch:
        real = Book
        patch.setattr("memdoctor.handbook.book.Book", lambda folders=(): BOOK if not folders else real(folders))
        yield


@pytest.mark.parametrize("id_", [*BOOK.cause_ids, *BOOK.rule_ids])
def test_every_id(id_: str, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("text", "markdown", "json"):
        code, out, err = run(capsys, id_, "--format", form, "-v")
        assert (code, err) == (0, "")
        assert id_ in out
        assert all(line.isprintable() for line in out.split("\n"))


def test_a_cause_tells_all_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "oom.logits")
    for part in ("Why", "Rules that name it", "What the log says", "Not to be confused", "What to do", "Megatron-LM", "DeepSpeed"):
        assert f"\n{part}" in out or f"\n  {part}" in out
    assert "oom/logits: " in out
    assert "--cross-entropy-loss-fusion" in out
    assert "hang.*" in out


def test_a_rule_tells_all_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "oom/logits")
    for part in ("Why", "What memdoctor says", "What the log says", "It fires on", "What to do: change the configuration", "Not this"):
        assert f"\n{part}\n" in out
    assert "tried is at least 64 MiB" in out
    assert "<tried> asked" in out
    assert "memdoctor rules show oom/logits" in out


def test_json_of_a_cause(capsys: pytest.CaptureFixture[str]) -> None:
    found = parsed(capsys, "hang.straggler")
    assert (found["schema_version"], found["command"]) == (1, "explain")
    cause = found["cause"]
    assert cause["id"] == "hang.straggler"
    assert {rule["cause"] for rule in cause["rules"]} == {"hang.straggler"}
    fixes = [(fix["framework"], fix["do"]) for fix in cause["fixes"]]
    assert len(fixes) == len(set(fixes))
    assert {"nccl-timeout"} <= {each["id"] for each in cause["advice"]}


def test_json_of_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    rule = parsed(capsys, "oom/logits")["rule"]
    assert rule["cause"] == "oom.logits"
    assert rule["conditions"][0] == {"depth": 0, "text": "any of:"}
    assert rule["excerpts"][0]["source"].startswith("cuda_oom.")
    assert rule["path"].endswith("oom/logits.yaml")


def test_long_lists_are_folded(capsys: pytest.CaptureFixture[str]) -> None:
    _, short, _ = run(capsys, "config.argument")
    _, whole, _ = run(capsys, "config.argument", "-v")
    assert "more (-v shows them)" in short
    assert "more (-v shows them)" not in whole
    assert len(whole) > len(short)


def test_a_glob_lists(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "oom*logits")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["oom.logits", "oom/logits"]
    assert [each["id"] for each in parsed(capsys, "oom?logits")["matches"]] == ["oom.logits", "oom/logits"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("oom.logit", "did you mean 'oom.logits' or 'oom/logits'?"),
        ("OOM.Logits", "did you mean 'oom.logits' or 'oom/logits'?"),
        ("logits", "there are oom.logits, oom/logits"),
        ("oom/", "there are oom.model_states, "),
        ("xyzzy", "`memdoctor rules list` shows all"),
        ("xyz*", "`memdoctor rules list` shows all"),
        ("[[a-&&]*", "called '[[a-&&]'"),
        ("\x1b[31m", "called '\\x1b[31m'"),
    ],
)
def test_unknown_ids(asked: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, asked)
    assert (code, out) == (2, "")
    assert err.startswith("memdoctor: no cause or rule is called '")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("form", ["html", "junit", "sarif"])
def test_forms_to_come(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "oom.logits", "--format", form)
    assert (code, out) == (2, "")
    assert "is not in this version; there are: text, json, markdown" in err


def test_a_rule_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "licence.yaml").write_text(RULE)
    _, out, _ = run(capsys, "site/licence", "--rules", str(tmp_path))
    out = " ".join(out.split())
    assert "error, certain, a draft; names the cause job.code" in out
    assert "LicenceError: … no seat … left …" in out
    assert "raised in the data loader" in out
    assert 'message holds "no seat" and "left"; site is dataloader' in out
    assert "and none of:" in out
    assert "on the same rank; at least 3 times within 2 min" in out
    assert "hang.*, net.socket: anywhere in the job, up to 40 min later" in out
    assert "What to do" not in out


def test_output_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "oom.logits", "--output", str(tmp_path / "x.md"), "--format", "markdown")
    assert (code, out) == (0, "")
    assert (tmp_path / "x.md").read_text().startswith("# oom.logits: ")
    assert run(capsys, "oom.logits", "--output", str(tmp_path / "no" / "x.md"))[0] == 2
