"""The tables behind the handbook are read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.errors import RuleError
from memdoctor.handbook.tables import read_advice, read_causes, read_plan
from memdoctor.resources import rules_dir

TABLES = rules_dir() / "tables"


def broken(tmp_path: Path, name: str, old: str, new: str) -> Path:
    text = (TABLES / name).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "tables").mkdir(exist_ok=True)
    path = tmp_path / "tables" / name
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def test_every_cause_has_a_title_of_its_own() -> None:
    titles = [title for title, what in read_causes([rules_dir()]).values() if what]
    assert len(titles) == len(set(titles)) > 80
    assert all(len(title) <= 60 and not title.endswith(".") for title in titles)


def test_causes_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "causes.yaml").write_text("version: 1\ncauses:\n  site.x: {what: ours}\n")
    assert read_causes([rules_dir(), tmp_path])["site.x"] == ("site.x", "ours")
    assert read_causes([tmp_path / "nothing"]) == {}


def test_advice_names_each_thing_once() -> None:
    advice = read_advice(TABLES / "advice.yaml")
    assert len({each.id for each in advice}) == len(advice) >= 20
    topics = [each.topic for each in advice]
    assert sorted(set(topics), key=topics.index) == [
        topic for place, topic in enumerate(topics) if topics[place - 1] != topic or place == 0
    ]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("advice.yaml", "    claim:", "    claims:", "has no key 'claims'"),
        ("guide.yaml", "first_page:", "front_page:", "has no key 'front_page'"),
        ("guide.yaml", '{see: "address already in use", ', "{", "a symptom needs 'see'"),
        ("guide.yaml", "    causes: [job", "    cause: [job", "has no key 'cause'"),
        ("causes.yaml", "{title: ", "{titel: ", "has no key 'titel'"),
    ],
)
def test_what_is_refused(name: str, old: str, new: str, said: str, tmp_path: Path) -> None:
    path = broken(tmp_path, name, old, new)
    with pytest.raises(RuleError, match=said) as caught:
        {"advice.yaml": read_advice, "guide.yaml": read_plan}.get(name, lambda _: read_causes([tmp_path]))(path)
    assert caught.value.line is not None
