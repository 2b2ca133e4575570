"""The made-up log is the same every time and mostly tells nothing; the benchmark's own parts do what they say."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import pytest

from memdoctor import catalog
from memdoctor.engine.load import load
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs
from tests.bench.__main__ import Bench
from tests.bench.children import environment, run
from tests.bench.generate import pieces
from tests.bench.inputs import SMALL_FILE, Inputs, Sizes
from tests.bench.some_signals import part
from tests.bench.table import Limit, Row
from tests.update_readme import README

SIZE = 10_000_000


def log(size: int, seed: int = 1) -> bytes:
    return b"".join(pieces(size, seed))


def test_one_seed_makes_the_same_bytes_every_time() -> None:
    first = log(1_000_000)
    assert len(first) == 1_000_000
    assert first.endswith(b"\n")
    assert hashlib.sha256(first).digest() == hashlib.sha256(log(1_000_000)).digest()
    assert first != log(1_000_000, seed=2)


def test_one_line_in_ten_thousand_tells_of_something(tmp_path: Path) -> None:
    """Beside readings (timers), which are many, and the one summary that a process gets however much it printed."""
    path = tmp_path / "train.log"
    path.write_bytes(log(SIZE))
    facts = read_logs([str(path)], load([rules_dir()]).signals)
    told = sum(count for key, count in facts.counts.items() if not catalog.KINDS[key[0]].readings and key[0] != "nccl.setup")
    assert 0.00005 < told / facts.inputs[0].lines < 0.0005


def test_the_small_files_are_the_big_one(tmp_path: Path) -> None:
    inputs = Inputs(tmp_path, Sizes(cut=1_000_000))
    files = sorted(inputs.files().iterdir())
    assert b"".join(file.read_bytes() for file in files) == inputs.log(1_000_000).read_bytes()
    assert all(file.stat().st_size <= SMALL_FILE for file in files)
    assert 100 <= len(files) <= 103


def test_a_part_of_the_signals_holds_those_of_the_log() -> None:
    signals, head = load([rules_dir()]).signals, log(1_000_000)
    chosen = [signal.id for signal in part(signals, head, 300)]
    assert len(set(chosen)) == 300
    assert {"phase.save_megatron", "peer.nccl_connect"} <= set(chosen)
    with pytest.raises(ValueError, match="not 100000"):
        part(signals, head, 100_000)


def test_a_child_is_measured_with_its_children(tmp_path: Path) -> None:
    work = "import subprocess, sys; x = bytearray(400_000_000); subprocess.run([sys.executable, '-c', 'sum(range(6_000_000))'], check=True)"
    used = run((sys.executable, "-c", work), environment(tmp_path))
    idle = run((sys.executable, "-c", "print(7)"), environment(tmp_path))
    assert used.seconds > idle.seconds
    assert used.peak > 400_000_000 > idle.peak  # both count the process that starts them, until they are another program
    assert idle.output == "7\n"
    with pytest.raises(RuntimeError, match="exit code 3: sad"):
        run((sys.executable, "-c", "import sys; print('sad'); sys.exit(3)"), environment(tmp_path))


def test_the_readme_shows_the_measures_and_their_limits(tmp_path: Path) -> None:
    shown = re.findall(r"^\| (.+?) \| ([\d.]+ \| [\d.]+) \| [\d.]+(?: MB)? \| ", README.read_text(encoding="utf-8"), re.MULTILINE)
    bench = Bench(Inputs(tmp_path, Sizes()), tmp_path, "rg", 1)
    expected = [(measure.name, str(measure.limit)) for measure in bench.measures()]
    assert [(re.sub(r"\([\d,]+ patterns\)", "(0 patterns)", name), limit) for name, limit in shown] == expected


def test_a_row_says_whether_it_holds() -> None:
    row = Row("speed", Limit(2.0, 1.3), 2.04, "a 1.00 s, b 0.49 s")
    assert str(row) == "| speed | 2 | 1.3 | 2.04 | a 1.00 s, b 0.49 s |"
    assert row.missed
    assert not Row("speed", Limit(2.0, 1.3), 1.99, "").missed
    assert not Row("speed", Limit(2.0, 1.3), None, "no rg").missed
