"""Tracebacks in the shape of real ones; the cases are in traceback_cases.txt beside this file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.sites import locate
from memdoctor.sources.logs.tracebacks import RawException, TracebackReader, starts

HEADER = re.compile(r"^([VDIWEF])\d{4} \S+ \d+ \S+:\d+\] ")


def _cases() -> list[tuple[str, list[str], list[dict[str, Any]]]]:
    cases = []
    for part in (Path(__file__).parent / "traceback_cases.txt").read_text(encoding="utf-8").split("\n##### ")[1:]:
        name, *lines = part.rstrip("\n").split("\n")
        text = [line for line in lines if not line.startswith("##>> ")]
        expected = [json.loads(line[5:]) for line in lines if line.startswith("##>> ")]
        cases.append((name, text, expected))
    return cases


CASES = _cases()


def read(lines: list[str], *, alone: bool = False) -> list[RawException]:
    """What is read from ``lines``, of which the first opens the traceback; after it, each line is fed as the scan does."""
    assert starts(lines[0])
    reader, found = TracebackReader(), []
    for number, text in enumerate(lines, 1):
        header = HEADER.match(text)
        line = Line(text=text[header.end() :] if header else text, level="ERROR" if header else None, rank=0 if alone else None)
        if not reader.feed(line, number):
            break
    found = reader.finish()
    assert all(1 <= raised.first_line <= raised.line <= raised.last_line <= len(lines) for raised in found)
    return found


def test_there_are_enough_cases():
    assert len(CASES) >= 50
    assert all(expected for _, _, expected in CASES)


@pytest.mark.parametrize(("name", "lines", "expected"), CASES, ids=[case[0] for case in CASES])
def test_case(name: str, lines: list[str], expected: list[dict[str, Any]]):
    found = read(lines, alone=name.endswith(" alone"))
    assert [raised.type for raised in found] == [case["type"] for case in expected]
    for raised, case in zip(found, expected, strict=True):
        site, owner = locate(raised.frames, raised.type, raised.message)
        last = raised.frames[-1] if raised.frames else None
        seen = {
            "type": raised.type,
            "message": raised.message[: len(case["message"])],
            "ends": raised.message[len(raised.message) - len(case.get("ends", "")) :],
            "site": site,
            "owner": owner,
            "frames": len(raised.frames),
            "lines": [raised.first_line, raised.line, raised.last_line],
            "complete": raised.complete,
            "chained": raised.chained,
            "root": raised.root,
            "rank": raised.rank,
            "source": last.source if last else None,
            "file": last.file if last else None,
        }
        wanted = {"complete": True, "chained": len(expected) > 1, "root": True, **case}
        if case.get("ends") == "":
            assert raised.message == ""
        assert {key: seen[key] for key in wanted} == wanted
