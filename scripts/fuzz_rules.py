"""Feeds arbitrary bytes to the reader of rules and signals, guided by coverage (atheris): faults are told, never raised.

atheris is no dependency of memdoctor. How to run, from the top of the checkout:

    python -m venv /tmp/fuzz && /tmp/fuzz/bin/pip install atheris -e .
    mkdir -p /tmp/fuzz/rules
    /tmp/fuzz/bin/python scripts/fuzz_rules.py /tmp/fuzz/rules rules fixtures/bad_rules -max_total_time=600 -max_len=8192 -rss_limit_mb=2048 -timeout=20

The bytes are read as a rule and as a file of signals, beside a small pack that is sound. Inputs worth keeping go to the first
folder; further folders are seeds. An input that breaks something is written to the working folder as ``crash-…``.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found,unused-ignore]

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))

with atheris.instrument_imports(include=["memdoctor"]):
    from memdoctor.engine.extend import extend
    from memdoctor.engine.load import read
    from memdoctor.report.text import visible
    from memdoctor.sources.logs.index import SignalIndex

BASE = read([TOP / "fixtures" / "bad_rules" / "base"], thorough=True)
KEYS = (
    "id cause title severity when all any none count message fixes confidence over explains applies match has sample set fact more rows until pairs values "
    "max_lines gates about note error warning first do setting risk within attempt rank name kind"
).split()


def one_input(data: bytes, folder: Path) -> None:
    """Read ``data`` as a rule and as signals; whatever is sound must serve, and every fault must be one that can be shown."""
    for place in ("oom/fuzz.yaml", "signals/fuzz.yaml"):
        path = folder / place
        path.write_bytes(data)
        try:
            found = extend(BASE, folder, thorough=True)
        finally:
            path.unlink()
        for fault in found.errors:
            assert visible(str(fault)).isprintable()
        if place.startswith("signals") and len(found.signals) > len(BASE.signals):
            SignalIndex(found.signals)


def main() -> None:
    with tempfile.TemporaryDirectory() as place, contextlib.suppress(SystemExit):
        folder = Path(place, "pack")
        for name in ("oom", "signals"):
            (folder / name).mkdir(parents=True)
        dictionary = Path(place, "words")
        dictionary.write_text("".join(f'"{word}: "\n' for word in KEYS))
        atheris.Setup([*sys.argv, f"-dict={dictionary}"], lambda data: one_input(data, folder))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
