"""`memdoctor guide`: to stdout, to a file, and the check whether a file is fresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.cli import main


def test_to_stdout_and_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guide"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Troubleshooting")
    assert main(["guide", "--output", str(tmp_path / "guide.md")]) == 0
    assert (tmp_path / "guide.md").read_text(encoding="utf-8") == out


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "guide.md"
    main(["guide", "--output", str(file)])
    assert main(["guide", "--check", str(file)]) == 0
    text = file.read_text(encoding="utf-8").split("\n")
    file.write_text("\n".join([*text[:4], "x", *text[5:]]), encoding="utf-8")
    assert main(["guide", "--check", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"memdoctor: {file} is stale from line 5 on; `memdoctor guide --output {file}` writes it anew\n"
    file.write_text("\n".join(text[:-30]), encoding="utf-8")
    assert main(["guide", "--check", str(file)]) == 1


def test_html(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "guide.html"
    assert main(["guide", "--format", "html", "--output", str(file)]) == 0
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["guide", "--format", "html", "--check", str(file)]) == 0


@pytest.mark.parametrize("arguments", [["--check", "/no/such/file"], ["--check", "x", "--output", "y"], ["--format", "json"], ["x"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guide", *arguments]) == 2
    assert capsys.readouterr().out == ""


def test_a_cause_of_ones_own_rules_is_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rules", "new", "site/licence", "--dir", str(tmp_path)])
    capsys.readouterr()
    assert main(["guide", "--rules", str(tmp_path / "rules")]) == 0
    assert "WHY IT HAPPENS" in capsys.readouterr().out
