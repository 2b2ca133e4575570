"""Exit codes and messages of the command line as a whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

import memdoctor
from memdoctor.cli import group, main
from memdoctor.errors import InputError, RuleError


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*args: object, **given: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("name", group.LATER)
@pytest.mark.parametrize("rest", [[], ["--help"], ["some", "--thing"]])
def test_commands_to_come(name: str, rest: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, *rest]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"memdoctor: `memdoctor {name}` is not in this version\n"


def test_every_command_of_the_contract_has_a_name() -> None:
    known = {"check", "logs", "lint", "estimate", "plan", "recipe", "confirm", "preflight", "watch", "explain", "rules", "guide"}
    assert known == {*group.COMMANDS, *group.LATER}


def test_help_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "logs" in out
    assert "Exit codes: 0" in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.split()[-1] == memdoctor.__version__


@pytest.mark.parametrize(
    "argv", [[], ["nope"], ["logs"], ["logs", "--nope", "x"], ["logs", "x", "--fail-on", "sometimes"], ["--nope"], ["rules"]]
)
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "memdoctor" in err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("train.log: no such file"), 2, "memdoctor: train.log: no such file\n"),
        (RuleError("a.yaml", 3, "unknown key", "did you mean x?"), 2, "memdoctor: a.yaml:3: unknown key (did you mean x?)\n"),
        (ValueError("first\nsecond"), 3, "memdoctor: internal error: ValueError: first; set MEMDOCTOR_DEBUG=1 to see where\n"),
        (RecursionError(), 3, "memdoctor: internal error: RecursionError; set MEMDOCTOR_DEBUG=1 to see where\n"),
        (MemoryError(), 3, "memdoctor: memdoctor ran out of memory\n"),
        (KeyboardInterrupt(), 130, "\n"),
        (InputError("bad\x1b[31m name\r"), 2, "memdoctor: bad\\x1b[31m name\n"),
    ],
)
def test_errors_end_in_one_line(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MEMDOCTOR_DEBUG", raising=False)
    monkeypatch.setattr("memdoctor.pipeline.diagnose_logs", failing(error))
    assert main(["logs", "x"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err == said


def test_debug_shows_where(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MEMDOCTOR_DEBUG", "1")
    monkeypatch.setattr("memdoctor.pipeline.diagnose_logs", failing(ValueError("oops")))
    assert main(["logs", "x"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_as_a_module() -> None:
    result = subprocess.run([sys.executable, "-m", "memdoctor", "plan"], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert result.stderr == "memdoctor: `memdoctor plan` is not in this version\n"


def test_an_interrupt_ends_it_quietly() -> None:
    code = "import sys, memdoctor.pipeline\nfrom memdoctor.cli import main\nprint('ready', flush=True)\nsys.exit(main(['logs', '-']))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"a line\n" * 1000)
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read().strip() == b""


def test_a_name_that_looks_like_options(tmp_path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "-x.log").write_text("started\n")
    monkeypatch.chdir(tmp_path)
    assert main(["logs", "-x.log"]) == 2
    assert capsys.readouterr().err.endswith("-x.log is a file: write ./-x.log, or -- before it.\n")
    assert main(["logs", "./-x.log"]) == main(["logs", "--", "-x.log"]) == 0
