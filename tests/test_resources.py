from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from memdoctor import resources
from memdoctor.errors import MemdoctorError

ROOT = Path(__file__).parent.parent


def test_the_checkout_uses_its_own_rules() -> None:
    assert resources.rules_dir() == ROOT / "rules"


def test_a_package_uses_the_rules_inside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "memdoctor" / "_rules" / "tables"
    inside.mkdir(parents=True)
    (inside / "causes.yaml").touch()
    monkeypatch.setattr(resources, "_HERE", tmp_path / "memdoctor")
    assert resources.rules_dir() == inside.parent


def test_without_rules_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_HERE", tmp_path / "memdoctor")
    with pytest.raises(MemdoctorError, match="install memdoctor again") as caught:
        resources.rules_dir()
    assert caught.value.exit_code == 3


def test_the_cache_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "deep" / "cache"))
    folder = resources.cache_dir()
    assert folder == tmp_path / "deep" / "cache" / "memdoctor"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert resources.cache_dir() == folder


def test_a_relative_cache_home_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resources.cache_dir() == tmp_path / ".cache" / "memdoctor"


def test_a_cache_that_others_may_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "memdoctor").mkdir()
    (tmp_path / "memdoctor").chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        resources.cache_dir()


def test_a_cache_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "memdoctor").symlink_to("elsewhere")
    with pytest.raises(OSError, match="a link or a file"):
        resources.cache_dir()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away")
def test_a_cache_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "memdoctor").mkdir(mode=0o700)
    os.chown(tmp_path / "memdoctor", 12345, -1)
    with pytest.raises(PermissionError, match="another user"):
        resources.cache_dir()


@pytest.mark.slow
def test_the_wheel_holds_every_rule_and_runs_alone(tmp_path: Path) -> None:
    build = [
        executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--disable-pip-version-check",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    run(build, check=True, timeout=300)
    (wheel,) = tmp_path.glob("memdoctor-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    expected = {f"memdoctor/_rules/{path.relative_to(ROOT / 'rules')}" for path in (ROOT / "rules").rglob("*") if path.is_file()}
    assert expected <= names
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"memdoctor"}
    code = "import memdoctor.resources as r; print(r.rules_dir())"
    where = run(
        [executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); {code}"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert where.stdout.strip() == str(tmp_path / "site" / "memdoctor" / "_rules")


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        resources.cache_path()
    assert list(tmp_path.iterdir()) == []
