"""A report is written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memdoctor.cli import output
from memdoctor.errors import InputError


def test_a_new_file_and_an_old_one(tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    output.write(str(target), "one → two\n")
    assert target.read_text(encoding="utf-8") == "one → two\n"
    target.chmod(0o640)
    output.write(str(target), "three\n")
    assert target.read_text() == "three\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["report.txt"]


def test_the_umask_counts(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        output.write(str(tmp_path / "report.txt"), "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "report.txt").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    output.write(str(tmp_path / "link.txt"), "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.txt"
    target.write_text("old")

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        output.write(str(target), "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.txt"]


@pytest.mark.parametrize(("name", "said"), [("missing/report.txt", "no folder"), (".", "is a folder")])
def test_refused_before_anything_is_read(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        output.check(str(tmp_path / name))


def test_what_is_no_ordinary_file_is_written_through() -> None:
    output.check(os.devnull)
    output.write(os.devnull, "text")
    assert not Path(os.devnull).is_file()


def test_signs_that_utf8_cannot_hold_are_escaped(tmp_path: Path) -> None:
    output.write(str(tmp_path / "r"), "name \udcff\n")
    assert (tmp_path / "r").read_text() == "name \\udcff\n"


def python(code: str, **given: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False, **given)  # type: ignore[call-overload,no-any-return]


def test_a_reader_that_goes_away_is_no_fault() -> None:
    code = "from memdoctor.cli import output\noutput.write(None, 'x' * 1_000_000)\nimport sys; sys.exit(1)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_stdout_on_a_full_disk() -> None:
    code = "from memdoctor.cli import main\nfrom memdoctor.cli import group, output\ngroup.root.callback = lambda: output.write(None, 'x')\nimport sys; sys.exit(main([]))"
    with open("/dev/full", "wb") as full:
        result = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert result.returncode == 2
    assert result.stderr == b"memdoctor: stdout: the report cannot be written: No space left on device\n"


def test_a_narrow_terminal_encoding_gets_escapes() -> None:
    code = "from memdoctor.cli import output\noutput.tolerate_narrow_encodings()\noutput.write(None, '3 \N{RIGHTWARDS ARROW} 4\\n')"
    result = python(code, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert result.stdout == b"3 \\u2192 4\n"


def test_json_is_utf8_whatever_the_locale() -> None:
    code = "from memdoctor.cli import output\noutput.tolerate_narrow_encodings()\noutput.use_utf8()\noutput.write(None, '\xe9')"
    assert python(code, env={**os.environ, "PYTHONIOENCODING": "ascii"}).stdout == "\xe9".encode()
