"""`memdoctor logs` from the command line's side: options, places, exit codes."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from memdoctor.cli import main

HEALTHY = "".join(
    f" iteration {step:8d}/     100 | consumed samples: {step * 8:12d} | lm loss: 2.{100 - step:03d}E+00 |\n" for step in range(1, 101)
)
BROKEN = (
    HEALTHY
    + """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/home/ann/Megatron-LM/pretrain_gpt.py", line 301, in <module>
[rank3]:     pretrain(
[rank3]:   File "/home/ann/Megatron-LM/megatron/training/training.py", line 2153, in train
[rank3]:     loss_dict, skipped_iter = train_step(forward_step_func, train_data_iterator, model, optimizer)
[rank3]:   File "/home/ann/Megatron-LM/megatron/core/transformer/mlp.py", line 122, in forward
[rank3]:     intermediate_parallel = self.activation_func(intermediate_parallel)
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.20 GiB is free. \
Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 74.10 GiB is allocated by PyTorch, and 512.00 MiB is \
reserved by PyTorch but unallocated.
"""
)


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    (tmp_path / "healthy.log").write_text(HEALTHY)
    return str(tmp_path / "healthy.log")


@pytest.fixture
def broken(tmp_path: Path) -> str:
    (tmp_path / "broken.log").write_text(BROKEN)
    return str(tmp_path / "broken.log")


def test_a_healthy_log(healthy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", healthy]) == 0
    out, err = capsys.readouterr()
    assert out
    assert err == ""


def test_a_broken_log(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", broken]) == 1
    out, err = capsys.readouterr()
    assert "oom." in out
    assert "\x1b" not in out
    assert err == ""


def test_nothing_fails_on_never(broken: str) -> None:
    assert main(["logs", broken, "--fail-on", "never"]) == 0


def test_json(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", broken, "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["command"] == "logs"
    assert report["root_cause"].startswith("oom.")
    assert report["diagnoses"][0]["ranks"] == [3]


@pytest.mark.parametrize("pattern", ["oom.*", "oom/*"])
def test_ignored_rules_and_causes(broken: str, pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["logs", broken, "--format", "json", "--ignore", pattern])
    diagnoses = json.loads(capsys.readouterr().out)["diagnoses"]
    assert not [each for each in diagnoses if each["cause"].startswith("oom.")]


def test_redacted(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["logs", broken, "--format", "json", "--redact"])
    out = capsys.readouterr().out
    assert "/home/ann" not in out
    assert "2.00 GiB" in out


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BROKEN.encode())))
    assert main(["logs", "-", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["inputs"][0]["path"] == "-"


def test_into_a_file(broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.txt"
    assert main(["logs", broken, "--output", str(target)]) == 1
    assert capsys.readouterr() == ("", "")
    assert "oom." in target.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written(broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", broken, "--output", str(tmp_path / "none" / "report.txt")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"memdoctor: --output {tmp_path}/none/report.txt: there is no folder {tmp_path}/none; make it first\n"


def test_nothing_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", str(tmp_path / "none.log")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "none.log" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["markdown", "html", "junit", "sarif"])
def test_formats_to_come(broken: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", broken, "--format", name]) == 2
    assert capsys.readouterr().err == f"memdoctor: `--format {name}` is not in this version; there are: text, json\n"


def test_a_broken_rule(broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine" / "oom").mkdir(parents=True)
    (tmp_path / "mine" / "oom" / "x.yaml").write_text("id: oom/x\nnonsense: 1\n")
    assert main(["logs", broken, "--rules", str(tmp_path / "mine")]) == 2
    assert "x.yaml" in capsys.readouterr().err


def test_a_missing_rules_folder(broken: str, tmp_path: Path) -> None:
    assert main(["logs", broken, "--rules", str(tmp_path / "none")]) == 2


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "variables", "colored"),
    [
        ([], {}, True),
        (["--no-color"], {}, False),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"TERM": "dumb"}, False),
    ],
)
def test_colour(arguments: list[str], variables: dict[str, str], colored: bool, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm-256color", "NO_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, value)
    page = Terminal(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", page)
    assert main(["logs", broken, *arguments]) == 1
    page.flush()
    assert (b"\x1b[" in page.buffer.getvalue()) is colored  # type: ignore[attr-defined]


def test_nothing_is_left_behind(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    main(["logs", broken])
    assert sorted(os.listdir(tmp_path)) == before
