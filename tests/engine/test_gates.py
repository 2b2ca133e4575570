"""What a pattern cannot match without: read from the pattern, and true of every line that the built-in signals know."""

from __future__ import annotations

from pathlib import Path

import pytest
import regex

from memdoctor.engine.gates import ENOUGH, MOST, gates
from memdoctor.engine.load import load_signals
from memdoctor.resources import rules_dir

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (r"Unsupported gpu architecture '(?P<what>\w+)'", ("Unsupported gpu architecture '",)),
        (r"^(?:cannot find CUDA_HOME|nvcc missing)", ("cannot find CUDA_HOME", "nvcc missing")),
        (r"fp16\.(?:hysteresis|scale) must be \d", ("fp16.hysteresis must be ", "fp16.scale must be ")),
        (r"(?P<name>[Bb]f16) is only supported", ("Bf16 is only supported", "bf16 is only supported")),
        (r"Error: .{0,160}Transformer ?Engine", ("Transformer",)),
        (r"(?:abcdefgh)+ or x", ("abcdefgh",)),
        (r"a(?!b)c(?=d)\bdef", ("acdef",)),
        (r"(?:abc|\w+ defghi)", ()),  # "abc" is no rarer than the text of `has`
        (r"[^a]bc|d?", ()),
        (r"(?i)cuda out of memory", ()),  # in any case of letters
        (r"\p{Lu}bcdefgh", ()),  # syntax of the package regex alone
        ("|".join(f"{chr(ord('a') + number)}-word" for number in range(MOST + 1)), ()),
    ],
)
def test_texts_that_a_pattern_needs(match: str, expected: tuple[str, ...]) -> None:
    assert gates(["abc"], match) == expected


def test_a_long_text_is_good_enough() -> None:
    assert gates(["x" * ENOUGH], "y" * 100) == ()


def test_further_patterns_are_passed_over_only_where_they_cannot_match() -> None:
    signals = [signal for signal in load_signals([rules_dir()]) if signal.more]
    assert all(len(signal.needs) == len(signal.more) for signal in signals)
    lines = {line for signal in signals for line in signal.sample.split("\n")}
    lines |= {line for path in FIXTURES.rglob("*.log") for line in path.read_text("utf-8", "replace").split("\n") if len(line) < 1_000}
    found = passed = 0
    for signal in signals:
        for pattern, texts in zip(signal.more, signal.needs, strict=True):
            search = regex.compile(pattern).search
            for line in lines:
                if all(text in line for text in signal.has):
                    match = search(line)
                    found += match is not None
                    passed += bool(texts) and not any(text in line for text in texts)
                    assert match is None or not texts or any(text in line for text in texts), (signal.id, pattern, line)
    assert min(found, passed) > 100


def test_no_line_of_the_fixtures_is_lost() -> None:
    signals = [signal for signal in load_signals([rules_dir()]) if signal.gates]
    assert len(signals) > 50
    for signal in signals:
        assert any(text in signal.sample.split("\n")[0] for text in signal.gates), signal.id
    lines = {line for path in FIXTURES.rglob("*.log") for line in path.read_text("utf-8", "replace").split("\n")}
    found = 0
    for signal in signals:
        pattern = regex.compile(signal.match)
        for line in lines:
            if all(text in line for text in signal.has) and pattern.search(line):
                found += 1
                assert any(text in line for text in signal.gates), (signal.id, line)
    assert found > 100
