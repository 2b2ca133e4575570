"""Long lines that a terminal folded at its width."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.pipeline import diagnose_logs
from memdoctor.sources.logs.folded import unfolder


def _step(number: int, loss: str) -> str:
    return (
        f" [2026-03-14 14:48:{number:02d}] iteration {number:8d}/   20000 | consumed samples: {number * 256:12d} | elapsed time per iteration (ms): 5044.0 |"
        f" learning rate: 1.500000E-04 | global batch size:   256 | lm loss: {loss} | loss scale: 1.0 | grad norm: 0.31 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def _lines(count: int) -> list[str]:
    return [_step(number, "2.598000E+00" if number < 9 else "nan") for number in range(1, count)]


def _fold(lines: list[str], width: int) -> str:
    return "".join(f"{line[at : at + width]}\n" for line in lines for at in range(0, max(len(line), 1), width))


@pytest.mark.parametrize("width", [80, 100, 104, 120, 211])
def test_a_folded_log_tells_what_it_told_before(width: int, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    found = []
    for text in ("\n".join([*_lines(15), ""]), _fold(_lines(15), width)):
        path.write_text(text)
        report = diagnose_logs([str(path)])
        found.append((report.root_cause, report.diagnoses[0].iteration))
    assert found[0] == found[1]
    assert found[0][0] is not None


def test_the_line_is_three_times_as_long_as_the_terminal_is_wide() -> None:
    assert len(_step(1, "2.598000E+00")) == 3 * 104


def test_pieces_that_a_chunk_cuts_apart() -> None:
    data = _fold(_lines(15), 80).encode()
    unfold = unfolder(data)
    assert unfold is not None
    cut = data.index(b"\n", len(data) // 2) + 1
    out = unfold.feed(data[:cut]) + unfold.feed(data[cut:]) + unfold.finish()
    assert out.count(b"\n") == data.count(b"\n")
    assert [line.decode() for line in out.split(b"\n") if line] == _lines(15)


@pytest.mark.parametrize(
    "lines",
    [
        _lines(15),
        ["a line of a log that is as long as all the others, and tells of nothing at all"] * 20,
        [line[:80] for line in _lines(15)],
        [piece for line in _lines(15) for piece in (line, "x" * len(line))],
        ["x" * 80, "y"] * 20,
    ],
    ids=["whole", "alike", "cut off", "between others", "no steps"],
)
def test_whole_lines_stay(lines: list[str]) -> None:
    assert unfolder("\n".join([*lines, ""]).encode()) is None
