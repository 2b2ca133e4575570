"""Nothing in a log, a file's name or a rule pack may steer the terminal: no escapes, no C1, no change of direction, no markup."""

from __future__ import annotations

import json
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from memdoctor.cli import main
from tests.flight.faults import plant
from tests.hostile.running import OOM, command, environ, memdoctor

# What a terminal obeys or a reader cannot see: C0 but \n, DEL, C1, direction signs, zero width, line separators, tags.
CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
SIGNS = {
    "csi": "\x1b[2J\x1b[31mred",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "no_end": "\x1b]0;never ended",
    "dcs": "\x1bP1$r0m\x1b\\",
    "stray": "a\x1b\x1b\x1b[",
    "c1": "\x9b31m \x9d0;title\x9c \x90 \x85",
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069 \u200f \u061c",
    "zero": "a\u200bb\u200dc\ufeffd\u2060",
    "bell": "\a\b\b\b\v\f",
    "separators": "a\u2028b\u2029c\x1c\x1d\x1e",
    "tags": "\U000e0041\U000e0042",
    "markup": "[bold red]x[/bold red] [link=http://evil.example]y[/link] [/] [/nope] [blink",
    "backslash": "\\[bold] \\x1b[31m",
    "emoji": ":skull: :warning:",
    "surrogate": "\\ud800 \\udc9b",
    "combining": "e" + "\u0301" * 300,
}


def shown(out: str) -> str:
    assert CONTROL.search(out) is None, ascii(CONTROL.search(out))
    return out


def with_sign(sign: str) -> str:
    """A failed run that has ``sign`` wherever a log has free text."""
    return (
        f"[rank3]: Traceback (most recent call last):\n"
        f'[rank3]:   File "/job/{sign}/train.py", line 3, in {sign}\n'
        f"[rank3]:     loss({sign})\n"
        f"[rank3]: Broken{sign}Error: it broke {sign}\n"
        f"node{sign}01:12:13 [0] NCCL WARN Call to connect to {sign} returned Connection refused\n"
        f"FileNotFoundError: [Errno 2] No such file or directory: '/data/{sign}/x.bin'\n"
        f"ModuleNotFoundError: No module named '{sign}'\n"
        f"RuntimeError: {sign}\n"
    )


@pytest.mark.parametrize("name", SIGNS)
@pytest.mark.parametrize("verbose", [[], ["-vv"]])
def test_lines_of_a_log(name: str, verbose: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(with_sign(SIGNS[name]).encode("utf-8", "surrogatepass"))
    assert main(["logs", str(path), *verbose]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    shown(out)


@pytest.mark.parametrize("name", SIGNS)
def test_json_of_such_lines(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(with_sign(SIGNS[name]).encode("utf-8", "surrogatepass"))
    assert main(["logs", str(path), "--format", "json"]) == 1
    out = capsys.readouterr().out
    shown(out)
    json.loads(out)


def test_at_a_terminal_with_colour(tmp_path: Path) -> None:
    """With colour the only escapes are ours: SGR, and nothing else."""
    import pty

    path = tmp_path / "train.log"
    text = with_sign(" ".join(SIGNS.values()))
    path.write_bytes(text.encode("utf-8", "surrogatepass").replace(b"it broke", b"it \x9b31m \x9d0;x\x9c broke"))
    ours, theirs = pty.openpty()
    pid = os.posix_spawn(
        os.fspath(command()[0]),
        [os.fspath(part) for part in command("logs", str(path))],
        environ(TERM="xterm-256color", NO_COLOR="", COLUMNS="100"),
        file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1), (os.POSIX_SPAWN_DUP2, theirs, 2), (os.POSIX_SPAWN_CLOSE, ours)],
    )
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65_536):
            seen += piece
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(ours)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    text = seen.decode()
    assert "\x1b[" in text
    bare = re.sub("\x1b\\[[0-9;]*m", "", text).replace("\r\n", "\n")
    bare = re.sub("\r|\x1b\\[(?:[0-9]*[KA]|\\?25[lh])", "", bare)  # the bar that shows how far reading is
    shown(bare)
    assert "http://evil.example" not in re.findall("\x1b\\]8;[^\x1b\a]*", text)


def test_markup_stands_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        '[rank3]: Traceback (most recent call last):\n[rank3]:   File "/a.py", line 1, in f\n[rank3]: app.OddError: [bold]it[/bold] broke [/]\n'
    )
    main(["logs", str(path), "-v"])
    assert "[bold]it[/bold] broke [/]" in capsys.readouterr().out


@pytest.mark.parametrize("name", SIGNS)
def test_plots_comparisons_and_step_lines(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names and values of arguments and of what a step line tells come from the log."""
    sign = SIGNS[name]
    for run, rate in (("good", 1), ("bad", 7)):
        steps = "".join(
            f" iteration {step:8d}/ 100 | lm loss: {9 - step / 20 if run == 'good' else step}E+00 | load{sign}: {step}.0 | {sign} norm: {step * rate}.5 |\n"
            for step in range(1, 80)
        )
        text = f"  lr .............................. {rate}{sign}\n  opt{sign} ............ {rate}\n{steps}{with_sign(sign) if run == 'bad' else ''}"
        (tmp_path / f"{run}.log").write_bytes(text.encode("utf-8", "surrogatepass"))
    series = tmp_path / "steps.csv"
    arguments = ["logs", str(tmp_path / "bad.log"), "--baseline", str(tmp_path / "good.log"), "--plot", "-vv", "--series", str(series)]
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert err == ""
    shown(out)
    shown(series.read_text())
    assert main([*arguments[:4], "--format", "json"]) == 1
    json.loads(shown(capsys.readouterr().out))


@pytest.mark.parametrize("name", SIGNS)
def test_flight_recorder_dumps(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of groups, functions and files stand in a dump as they were given."""

    def signed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: signed(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(signed(each) for each in value)
        return f"{value}{SIGNS[name]}" if isinstance(value, str) and not value[:1].isdigit() and value[:1] != "[" else value

    planted = plant(3, "never", (1, 1, 4))
    for rank in planted.present():
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(signed(planted.recording.dump(rank)), protocol=2))
    for rest in ([], ["-vv"], ["--format", "json"]):
        assert main(["logs", str(tmp_path), *rest]) in (0, 1, 2)
        out, err = capsys.readouterr()
        assert "internal error" not in err
        shown(out)
        shown(err)


NAMES = {**SIGNS, "newline": "a\nb\n\n[rank3]: c\rd", "bytes": "caf\udce9 \udcff\udcfe"}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    log = f"./x{NAMES[name].replace('/', '_')[:60]}.log"
    monkeypatch.chdir(tmp_path)
    Path(log).write_text("[rank3]: " + OOM)
    for arguments in (["logs", log], ["logs", "."], ["logs", log, "-v", "--redact"], ["logs", log, "--format", "json"]):
        assert main(arguments) == 1
        out, err = capsys.readouterr()
        assert err == ""
        assert "oom." in shown(out)
    assert json.loads(out)["inputs"][0]["lines"] == 1


def test_undecodable_names_in_a_child_of_any_locale(tmp_path: Path) -> None:
    log = b"./caf\xe9 \xff\n\x1b[31m.log"
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), log))).write_text("[rank3]: " + OOM)
    for more in ({}, {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}):
        ended = memdoctor("logs", log, cwd=tmp_path, env=environ(**more))
        assert (ended.code, ended.err) == (1, "")
        shown(ended.out.decode())
        assert memdoctor("logs", log, "--format", "json", cwd=tmp_path, env=environ(**more)).report["root_cause"].startswith("oom.")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_what_is_not_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    sign = NAMES[name].replace("/", "_")
    monkeypatch.chdir(tmp_path)
    Path("x").write_text("fine\n")
    for rest in (
        [sign],
        ["x", "--output", f"{sign}/x"],
        ["x", "--rules", sign],
        ["x", "--ignore", sign],
        ["x", "--format", sign],
        [f"--{sign}", "x"],
    ):
        assert main(["logs", *rest]) == 2, rest
        out, err = capsys.readouterr()
        assert out == ""
        shown(err)
        assert "Traceback" not in err
    for arguments in (["explain", sign], ["rules", "show", sign], [sign]):
        assert main(arguments) == 2, arguments
        shown(capsys.readouterr().err)


RULE = """\
id: oom/hostile
cause: oom.activations
title: {quoted}
status: stable
severity: error
confidence: certain
when:
  any:
    - fact: cuda.oom
over: ["*"]
message: {quoted}
why: {quoted}
fixes:
  - id: hostile
    do: {quoted}
    command: {quoted}
    config: {quoted}
    saves: {quoted}
action: fix-config
not_this: {quoted}
refs: [{link}]
"""


def yaml_quoted(text: str) -> str:
    """``text`` as a YAML scalar in double quotes, with what YAML does not allow as escapes."""
    return CONTROL.sub(lambda match: f"\\U{ord(match[0]):08x}", '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')


def pack(folder: Path, sign: str) -> Path:
    (folder / "oom").mkdir(parents=True)
    quoted = yaml_quoted(f"begin {sign} end")
    (folder / "oom" / "hostile.yaml").write_text(RULE.format(quoted=quoted, link=json.dumps("https://example.org/")), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", SIGNS)
def test_a_rule_pack(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Either it is refused, or what it says is made harmless: in reports, lists, explanations and the guide."""
    rules = str(pack(tmp_path / "mine", SIGNS[name]))
    (tmp_path / "train.log").write_text("[rank3]: " + OOM)
    log = str(tmp_path / "train.log")
    commands = [
        ["logs", log, "--rules", rules, "-vv"], ["logs", log, "--rules", rules, "--format", "json"], ["rules", "list", "--rules", rules],
        ["rules", "show", "oom/hostile", "--rules", rules], ["explain", "oom/hostile", "--rules", rules, "-v"],
        ["explain", "oom/hostile", "--rules", rules, "--format", "json"], ["explain", "oom/hostile", "--rules", rules, "--format", "markdown"],
        ["explain", "oom.*", "--rules", rules],
    ]  # fmt: skip
    codes = set()
    for arguments in commands:
        codes.add(main(arguments))
        out, err = capsys.readouterr()
        shown(out)
        shown(err)
        assert "Traceback" not in err
        assert "internal error" not in err
    assert codes <= {0, 1, 2}


@pytest.mark.parametrize("name", SIGNS)
def test_a_rule_pack_that_is_broken(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its names and keys stand in the message that refuses it."""
    rules = tmp_path / "mine"
    (rules / "oom").mkdir(parents=True)
    text = SIGNS[name]
    quoted = yaml_quoted(text)
    (rules / "oom" / "x.yaml").write_text(
        f"id: {quoted}\n{quoted}: 1\ncause: {quoted}\nseverity: {quoted}\nwhen: {{any: [{{fact: {quoted}}}]}}\n", encoding="utf-8"
    )
    (tmp_path / "train.log").write_text(OOM)
    assert main(["logs", str(tmp_path / "train.log"), "--rules", str(rules)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    shown(err)
    assert "x.yaml" in err


@pytest.mark.parametrize("name", SIGNS)
def test_a_rule_pack_as_raw_bytes(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "mine"
    (rules / "oom").mkdir(parents=True)
    (rules / "oom" / "x.yaml").write_bytes(f"id: {SIGNS[name]}\n".encode("utf-8", "surrogatepass") + b"\x9b\xff")
    (tmp_path / "train.log").write_text(OOM)
    assert main(["logs", str(tmp_path / "train.log"), "--rules", str(rules)]) == 2
    shown(capsys.readouterr().err)
