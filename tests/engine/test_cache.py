"""The built-in rules are kept between starts; whatever is wrong with what was kept, they are read anew."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from memdoctor import kept as kept_files
from memdoctor import resources
from memdoctor.engine import cache, folders
from memdoctor.engine.load import load, read
from memdoctor.engine.schema import Base

BASE = Path(__file__).parents[2] / "fixtures" / "bad_rules" / "base"


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that counts as the built-in one, and an empty cache."""
    folder = tmp_path / "rules"
    shutil.copytree(BASE, folder)
    monkeypatch.setattr(resources, "rules_path", lambda *parts: str(folder.joinpath(*parts)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def kept(folder: Path) -> Path:
    return resources.cache_dir() / f"rules-{cache.state(str(folder))}.jsonl"


def sealed(text: str) -> str:
    """``text`` as a file that is what was written."""
    return f"{zlib.crc32(text.encode()):08x}\n{text}"


def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The YAML files that are read from now on."""
    seen: list[Path] = []

    def parse_file(path: Path) -> Any:
        seen.append(path)
        return folders.parse_file(path)

    monkeypatch.setattr("memdoctor.engine.extend.parse_file", parse_file)
    return seen


def test_what_was_kept_is_what_was_read(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read([rules])
    assert first.rules
    assert kept(rules).is_file()
    seen = reads(monkeypatch)
    assert read([rules]) == first
    assert seen == []


def test_the_built_in_base_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    base = read([resources.rules_dir()], thorough=False)
    sound = Base(base.signals, base.rules, base.causes)
    cache.put("x", sound)
    assert cache.get("x") == sound


def test_a_changed_file_is_read(rules: Path) -> None:
    read([rules])
    path = rules / "oom" / "activations.yaml"
    path.write_text(path.read_text().replace("status: stable", "status: draft"))
    os.utime(path, ns=(1, 1))
    assert [rule.status for rule in read([rules]).rules] == ["draft"]
    path.unlink()
    assert read([rules]).rules == ()


def test_a_pack_is_read_on_top(rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read([rules])
    pack = tmp_path / "pack" / "area"
    pack.mkdir(parents=True)
    text = (rules / "oom" / "activations.yaml").read_text()
    (pack / "slug.yaml").write_text(text.replace("id: oom/activations", "id: area/slug\nover: [oom/activations]"))
    seen = reads(monkeypatch)
    assert [rule.id for rule in load([rules, pack.parent]).rules] == ["oom/activations", "area/slug"]
    assert seen == [pack / "slug.yaml"]


def test_broken_rules_are_not_kept(rules: Path) -> None:
    (rules / "oom" / "activations.yaml").write_text("id: [")
    assert read([rules]).errors
    assert not kept(rules).exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"signals": [], "rules": []}', '{"signals": 1, "rules": [], "causes": []}', "[" * 9999],
)
def test_what_cannot_be_understood_is_ignored(text: str, rules: Path) -> None:
    first = read([rules])
    for data in (text, sealed(text)):
        kept(rules).write_text(data)
        assert read([rules]) == first


def test_what_was_cut_or_changed_by_accident_is_ignored(rules: Path) -> None:
    first = read([rules])
    whole = kept(rules).read_text()
    for data in (whole[:-20], whole.replace("oom", "oon"), whole[:9]):
        kept(rules).write_text(data)
        assert read([rules]) == first


def test_only_what_is_asked_for_is_made(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read([rules])
    made: list[dict[str, Any]] = []
    revive = cache._revive

    def spied(value: dict[str, Any]) -> Any:
        made.append(value)
        return revive(value)

    monkeypatch.setattr(cache, "_revive", spied)
    base = read([rules])
    assert (len(base.rules), len(base.signals), made) == (1, 1, [])
    assert base.rules[-1].id == "oom/activations"
    assert {each["class"] for each in made if "class" in each} >= {"Rule", "Leaf"}
    count = len(made)
    assert base.rules[0] is base.rules[:1][0]
    assert len(made) == count


def test_what_others_may_write_is_ignored(rules: Path) -> None:
    first = read([rules])
    path = kept(rules)
    path.write_text(sealed(json.dumps({"signals": [], "rules": [], "causes": []}) + "\n"))
    assert read([rules]).rules == ()  # so the file is used ...
    path.chmod(0o666)
    assert read([rules]) == first  # ... but not when it may be anyone's
    path.chmod(0o600)
    shutil.move(path, path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))
    assert read([rules]) == first


def test_no_cache_folder_is_no_fault(rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(read([rules]).rules) == 1


def test_old_states_go(rules: Path) -> None:
    for number in range(kept_files.KEEP + 3):
        cache.put(f"{number}", Base())
        os.utime(resources.cache_dir() / f"rules-{number}.jsonl", (number, number))
    assert sorted(path.name for path in resources.cache_dir().iterdir()) == [
        f"rules-{number}.jsonl" for number in range(3, kept_files.KEEP + 3)
    ]
