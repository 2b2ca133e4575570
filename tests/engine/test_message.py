from __future__ import annotations

import pytest

from memdoctor.engine.message import LONGEST, one_line, parse, render

KNOWN = {"gpu": "0", "tried": "2 GiB"}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("GPU {gpu} has no room for {tried}", "GPU 0 has no room for 2 GiB"),
        ("{tried} asked[, {free} free]", "2 GiB asked"),
        ("{tried} asked[, on GPU {gpu}]", "2 GiB asked, on GPU 0"),
        ("[GPU {gpu}: ]{tried}", "GPU 0: 2 GiB"),
        ("[{gpu} of {free}]none", "none"),
        ("{free} free", "unknown free"),
        ("list[[{gpu}]] and {{gpu}}", "list[0] and {gpu}"),
        ("[ a [[{gpu}]] ]", " a [0] "),
        ("plain", "plain"),
        ("{ gpu }", "0"),
    ],
)
def test_render(template: str, expected: str) -> None:
    assert render(parse(template), KNOWN.get) == expected


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{gpu", "'{' is never closed"),
        ("gpu}", "'}' without '{'"),
        ("{}", "names no field"),
        ("[{gpu}", "'[' is never closed"),
        ("{gpu}]", "']' without '['"),
        ("[a [{gpu}]]", "'[' inside"),
        ("[or so]", "holds no field"),
    ],
)
def test_a_broken_template_is_refused(template: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(template)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("template", "ranks", "count", "expected"),
    [
        ("Rank {ranks}: {count} reports of it", "3, 11", "2", "Ranks 3, 11: 2 reports of it"),
        ("Rank {ranks}: {count} reports of it", "3", "1", "Rank 3: 1 report of it"),
        ("[by rank {ranks} ]{count} times", "0-7", "1", "by ranks 0-7 1 time"),
        ("{count} miss", "0", "1", "1 miss"),
        ("frank {ranks}", "0-7", "1", "frank 0-7"),
    ],
)
def test_nouns_agree(template: str, ranks: str, count: str, expected: str) -> None:
    assert render(parse(template), {"ranks": ranks, "count": count}.get) == expected


@pytest.mark.parametrize(
    ("template", "waiting", "expected"),
    [
        ("held up {waiting} others: ALLREDUCE", "1", "held up 1 other: ALLREDUCE"),
        ("held up {waiting} others: ALLREDUCE", "7", "held up 7 others: ALLREDUCE"),
        ("{waiting} ranks in collectives", "1", "1 rank in collectives"),
        ("{waiting} of 2 ranks", "1", "1 of 2 ranks"),
    ],
)
def test_the_number_of_those_that_wait_agrees_too(template: str, waiting: str, expected: str) -> None:
    assert render(parse(template), {"waiting": waiting}.get) == expected


def test_a_value_becomes_one_line_that_is_not_too_long() -> None:
    assert one_line("a\n  b\tc ") == "a b c"
    assert one_line("x" * 1000) == "x" * (LONGEST - 1) + "…"
