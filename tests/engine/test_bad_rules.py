"""Every broken pack of fixtures/bad_rules is refused with exactly the faults of its expected.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.engine.load import load, main, read
from memdoctor.errors import RuleError

FOLDER = Path(__file__).parents[2] / "fixtures" / "bad_rules"
PACKS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "base")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)  # faults show paths below the working folder


def test_the_base_is_sound() -> None:
    base = read([Path("base")], thorough=True)
    assert [str(error) for error in base.errors] == []
    assert (len(base.signals), len(base.rules)) == (1, 1)


def test_there_are_packs_for_many_kinds_of_fault() -> None:
    problems = {(FOLDER / pack / "expected.txt").read_text().partition(": ")[2].split("'")[0] for pack in PACKS}
    assert len(PACKS) >= 70
    assert len(problems) >= 40


@pytest.mark.parametrize("pack", PACKS)
def test_every_fault_is_told_with_its_line_and_a_hint(pack: str) -> None:
    found = read([Path("base"), Path(pack)])
    assert "".join(f"{error}\n" for error in found.errors) == (FOLDER / pack / "expected.txt").read_text()


@pytest.mark.parametrize("pack", PACKS)
def test_load_raises_the_first_of_them(pack: str) -> None:
    with pytest.raises(RuleError) as caught:
        load([Path("base"), Path(pack)])
    assert f"{caught.value}\n" in (FOLDER / pack / "expected.txt").read_text()
    assert caught.value.path.startswith(f"{pack}/")


@pytest.mark.parametrize("pack", PACKS)
def test_a_broken_pack_does_not_cost_the_sound_base(pack: str) -> None:
    found = read([Path("base"), Path(pack)])
    assert "oom/activations" in [rule.id for rule in found.rules]
    assert "cuda_oom.torch" in [signal.id for signal in found.signals]


def test_the_command_prints_each_fault_and_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["many_faults"]) == 2
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("many_faults/")]
    assert [line.split(": ")[0] for line in lines[:4]] == [f"many_faults/oom/many_faults.yaml:{number}" for number in (4, 5, 6, 20)]


def test_the_command_refuses_a_folder_without_rules(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
    assert "no rules in it" in capsys.readouterr().out
    assert main([str(tmp_path / "absent")]) == 2
    assert "no such folder" in capsys.readouterr().out
