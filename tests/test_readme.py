"""README.md says what is true: its outputs are real, its example works, its commands name what exists."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from memdoctor.cli import main
from memdoctor.cli.group import LATER
from tests.update_readme import README, ROOT, blocks, output_of

TEXT = README.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", list(blocks("output")))
def test_outputs_are_real(command: str) -> None:
    assert blocks("output")[command] == output_of(command), "python -m tests.update_readme writes it anew"


def test_there_are_outputs() -> None:
    assert any(command.startswith("memdoctor logs ") for command in blocks("output"))


def test_the_first_command_reads_a_log_that_is_there() -> None:
    command = blocks("command")["first"].strip()
    assert "\n" not in command
    path = shlex.split(command)[-1]
    assert (ROOT / path).exists()
    assert f"memdoctor logs {path}" in blocks("output")


def test_the_second_command_installs_and_verifies() -> None:
    command = blocks("command")["second"].strip()
    assert "\n" not in command
    assert "'.[dev]'" in command
    assert command.endswith("&& ./verify")


def test_the_worked_example_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = blocks("file")
    assert len(files) == 4
    for name, body in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    assert main(["rules", "test", str(tmp_path)]) == 0, capsys.readouterr().out
    assert "2 entries, 0 failed" in capsys.readouterr().out


def test_options_and_commands_that_are_named_exist(capsys: pytest.CaptureFixture[str]) -> None:
    main(["logs", "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    section = TEXT.partition("## Use")[2].partition("\n## ")[0]
    assert set(re.findall(r"(?<=`)--[a-z-]+", section)) == options - {"--help"}
    later = re.search(r"Not in this version: (.*?)\.", TEXT, re.DOTALL)
    assert later is not None
    assert tuple(re.findall(r"`(\w+)`", later[1])) == LATER


@pytest.mark.parametrize("script", ["verify", ".ci/run"])
def test_scripts_are_sound(script: str) -> None:
    assert subprocess.run(["bash", "-n", str(ROOT / script)], check=False).returncode == 0
    assert (ROOT / script).stat().st_mode & 0o111
    wrong = subprocess.run([str(ROOT / script), "--nonsense"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("usage: ")


def test_ci_runs_the_commands_of_the_readme() -> None:
    """What .ci/run takes out of README.md is what stands there."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    function = next(line for line in script.splitlines() if line.startswith("command_of()"))
    for name in ("first", "second"):
        got = subprocess.run(["bash", "-c", f"{function}; command_of {name}"], cwd=ROOT, capture_output=True, text=True, check=True)
        assert got.stdout == blocks("command")[name]
