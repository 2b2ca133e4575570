"""Whatever bytes a log holds: an answer in both forms, never an exception but our own, and the same answer every time."""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import memdoctor.report
from memdoctor import pipeline
from memdoctor.engine.load import load
from memdoctor.errors import MemdoctorError
from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs
from memdoctor.report import json as as_json
from memdoctor.report import terminal
from memdoctor.report.redact import redact
from memdoctor.resources import rules_dir
from tests.hostile.mutations import anything, mutated
from tests.hostile.running import measured
from tests.hostile.test_big import MANY

CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
SCHEMA = jsonschema.Draft202012Validator(json.loads(Path(next(iter(memdoctor.report.__path__)), "schema.json").read_text()))
FAST, SLOW = 1, 10
LONGEST = 20.0  # seconds for some kilobytes that take milliseconds


@pytest.fixture(autouse=True)
def _rules_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are the same for all examples; reading them each time would take longer than the rest."""
    base = load([rules_dir()])
    monkeypatch.setattr(pipeline, "load", lambda folders: base)


def answer(path: Path) -> tuple[str, ...] | str:
    """All forms of the report on ``path``, checked; or the text of the error that refuses it."""
    try:
        report = diagnose_logs([str(path)])
    except MemdoctorError as error:
        return str(error)
    return tuple(checked(each) for each in (report, redact(report)))


def checked(report: Report) -> str:
    machine = as_json.render(report)
    found: dict[str, Any] = json.loads(machine)
    SCHEMA.validate(found)
    assert CONTROL.search(machine) is None
    causes = {diagnosis["cause"] for diagnosis in found["diagnoses"]}
    assert found["root_cause"] is None or found["root_cause"] in causes
    pages = [machine]
    for verbose, width in ((0, 100), (2, 60)):
        page = io.StringIO()
        terminal.render(report, verbose=verbose, color=False, width=width, file=page)
        assert CONTROL.search(page.getvalue()) is None
        page.getvalue().encode("utf-8")
        pages.append(page.getvalue())
    return "".join(pages)


def in_time(path: Path) -> tuple[str, ...] | str:
    """``answer``, where it takes no more of the processor than a hang would."""
    begun = time.process_time()
    found = answer(path)
    assert time.process_time() - begun < LONGEST
    return found


def property_of(strategy: st.SearchStrategy[bytes], examples: int) -> Callable[[Path], None]:
    @settings(max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def holds(path: Path, data: bytes) -> None:
        path.write_bytes(data)
        assert in_time(path) == in_time(path)

    return holds


@pytest.mark.parametrize("times", [FAST, pytest.param(SLOW, marks=pytest.mark.slow)])
def test_any_bytes(times: int, tmp_path: Path) -> None:
    property_of(anything, 100 * times)(tmp_path / "any.log")


@pytest.mark.parametrize("times", [FAST, pytest.param(SLOW, marks=pytest.mark.slow)])
def test_mutations_of_the_fixtures(times: int, tmp_path: Path) -> None:
    property_of(mutated(), 60 * times)(tmp_path / "mutated.log")


@pytest.mark.parametrize("times", [FAST, pytest.param(SLOW, marks=pytest.mark.slow)])
def test_several_files_in_a_folder(times: int, tmp_path: Path) -> None:
    """Logs of ranks whose contents have nothing to do with each other."""

    @settings(max_examples=15 * times, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.one_of(mutated(), anything), min_size=2, max_size=4))
    def holds(contents: list[bytes]) -> None:
        for number in range(4):
            (tmp_path / f"rank_{number}.log").write_bytes(contents[number] if number < len(contents) else b"")
        assert in_time(tmp_path) == in_time(tmp_path)

    holds()


@pytest.mark.parametrize("count", [30, pytest.param(600, marks=pytest.mark.slow)])
def test_the_whole_command_on_a_folder_of_them(count: int, tmp_path: Path) -> None:
    """In a process of its own, in every form: it ends as it should, and in bounded memory."""

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(st.one_of(mutated(), anything))
    def write(data: bytes) -> None:
        (tmp_path / f"{len(os.listdir(tmp_path))}.log").write_bytes(data)

    write()
    assert len(os.listdir(tmp_path)) > count / 2
    for arguments in (["--format", "json"], ["-vv", "--plot"], ["--redact", "--workers", "2"]):
        ended = measured("logs", str(tmp_path), *arguments)
        assert ended.err == ""
        assert ended.code == 1
        assert ended.peak < MANY
        assert CONTROL.search(ended.out.decode()) is None
