"""The bar shows only to a person who waits."""

from __future__ import annotations

import io
import sys

import pytest

from memdoctor.report.progress import ByteBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def read(bar: ByteBar, total: int | None = 100) -> None:
    bar.start(total)
    bar.advance(40)
    bar.advance(60)
    bar.stop()
    bar.stop()


def test_nothing_where_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    page = io.StringIO()
    monkeypatch.setattr(sys, "stderr", page)
    read(ByteBar(patience=0))
    assert page.getvalue() == ""


def test_nothing_in_the_first_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Terminal()
    monkeypatch.setattr(sys, "stderr", page)
    read(ByteBar())
    assert page.getvalue() == ""


@pytest.mark.parametrize("total", [100, None])
def test_bytes_and_rate_for_who_waits(total: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Terminal()
    monkeypatch.setattr(sys, "stderr", page)
    monkeypatch.setenv("TERM", "xterm")
    read(ByteBar(patience=0), total)
    assert "reading" in page.getvalue()
    assert "bytes" in page.getvalue()
