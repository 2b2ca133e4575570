"""Lines read once more by their number."""

from __future__ import annotations

import gzip
from pathlib import Path

from memdoctor.model import Fact, Origin
from memdoctor.sources.logs.quoting import quote, with_lines


def test_lines_of_files_and_archives(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.log", tmp_path / "b.log.gz"
    text = "".join(f"line {number}\n" for number in range(1, 100_001))
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    wanted = {1, 2, 50_000, 100_000, 200_000}
    found = quote({str(plain): wanted, str(packed): wanted, "-": {1}}, {})
    for path in (plain, packed):
        assert {number: found.get((str(path), number)) for number in sorted(wanted)} == {
            1: "line 1", 2: "line 2", 50_000: "line 50000", 100_000: "line 100000", 200_000: None,
        }  # fmt: skip


def test_of_a_bar_that_is_redrawn_the_last_sign_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\r\n\r 10%|#| 1/10\r 20%|#| 2/10\nthree\n")
    assert quote({str(path): {1, 2}}, {}) == {(str(path), 1): "one", (str(path), 2): " 20%|#| 2/10"}


def test_of_a_file_whose_name_cannot_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "a\n.log"
    path.write_text("one\n")
    assert quote({"a\\n.log": {1}}, {"a\\n.log": str(path)}) == {("a\\n.log", 1): "one"}


def test_facts_get_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("one\ntwo\n")
    facts = (
        Fact("series.spike", {}, Origin("log", str(path), 2, "")),
        Fact("series.spike", {}, Origin("log", str(path), 1, "kept")),
        Fact("run.ended", {}, Origin("derived", str(path), 1, "")),
        Fact("series.spike", {}, Origin("log", str(tmp_path / "gone.log"), 1, "")),
    )
    assert [fact.origin.excerpt for fact in with_lines(facts, ())] == ["two", "kept", "", ""]
    assert with_lines(facts[2:3], ()) == facts[2:3]
