"""Lines that fit a printed page."""

from __future__ import annotations

import json
import shlex

from hypothesis import given
from hypothesis import strategies as st

from memdoctor.report import fit


def test_what_fits_stays() -> None:
    assert fit.paste("--bf16") == ("--bf16",)
    assert fit.paste("a: 1\nb: 2") == ("a: 1", "b: 2")
    assert fit.log("short line") == ("short line",)


def test_a_command_goes_on_after_a_backslash() -> None:
    command = "pip install --no-build-isolation 'transformer_engine[pytorch]' " + "--flag value " * 8
    lines = fit.paste(command, 60)
    assert all(len(line) <= 60 for line in lines)
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(command)


def test_quotes_stay_whole() -> None:
    lines = fit.paste(f"python -c '{'print(1); ' * 20}' train.py", 60)
    assert lines[0] == "python -c \\"
    assert lines[1].startswith("  'print(1); ")


def test_json_is_set_anew() -> None:
    value = {
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 2000}},
    }
    lines = fit.paste(json.dumps(value), 60)
    assert all(len(line) <= 60 for line in lines)
    assert json.loads("\n".join(lines)) == value
    assert '  "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},' in lines


def test_a_comment_goes_before_its_line_and_yaml_needs_no_backslash() -> None:
    assert fit.paste(f"{'x = 1; ' * 12}y   # why", 60)[0] == "# why"
    lines = fit.paste("resources: {requests: {memory: 200Gi, cpu: 32}, limits: {memory: 200Gi, cpu: 32}}", 60)
    assert len(lines) == 2
    assert "\\" not in "".join(lines)


def test_a_long_line_of_a_log_is_cut() -> None:
    lines = fit.log("word " * 100, 40, 3)
    assert len(lines) == 3
    assert all(len(line) <= 40 for line in lines)
    assert lines[-1].endswith(" …")


@given(st.text(alphabet="ab \"'{}:,\\#", max_size=300))
def test_nothing_is_lost_or_endless(text: str) -> None:
    lines = fit.paste(text, 20)
    kept = "".join("".join(lines).split()).replace("\\", "")
    assert sorted(kept) == sorted("".join(text.split()).replace("\\", "")) or "#" in text or text.strip().startswith("{")
    assert len(fit.log(text, 20)) <= fit.MOST_LINES
