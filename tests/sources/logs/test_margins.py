"""Prefixes that no table knows are told by what stands behind them, and by being on most lines."""

from __future__ import annotations

import time

import pytest

from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.prefixes import Prefixes

BODY = [
    "start",
    "loading the data",
    "[rank0]: hello",
    "[rank3]: Traceback (most recent call last):",
    '[rank3]:   File "a.py", line 3, in main',
    "[rank3]: ValueError: x",
]
MARGINS = [
    "worker> ", "> ", "    ", "train\tRun\t2026-03-14T14:48:05.4470000Z ", "my-job/algo-2-1710384485 ", '2026-03-14T14:48:05Z {app="train"} ', "     5\t", "35:",
    "[36m(W pid=1)[0m ", "[31m", "^[[31m", "2026-03-14T14:48:05.447Z\tERROR\tw/x.go:10\t", "[INFO:swift] ", "26/03/14 14:48:05 ERROR Train: ", "site | 7f3a9c0d11ee | ",
]  # fmt: skip


def _taught(lines: list[str]) -> Prefixes:
    prefixes = Prefixes()
    prefixes.learn(lines)
    return prefixes


def _met(sample: list[str], near: list[str]) -> Line:
    """The first line of ``near``, in a log that begins with ``sample``."""
    prefixes = _taught(sample)
    prefixes.meet(near[0], lambda: near[1:])
    return prefixes.strip(near[0])


@pytest.mark.parametrize("margin", MARGINS)
def test_a_margin_is_taken_off(margin: str) -> None:
    prefixes = _taught([margin + line for line in BODY])
    assert [prefixes.strip(margin + line).rank for line in BODY] == [None, None, 0, 3, 3, 3]
    assert prefixes.strip(f"{margin}[rank11]:     indented").text == "    indented"
    assert prefixes.strip(f"{margin}plain").text == "plain"


@pytest.mark.parametrize("margin", MARGINS)
def test_a_margin_before_a_tag_that_comes_late(margin: str) -> None:
    sample = [f"{margin}{word} {number}" for number, word in enumerate(["start", "load", "build", "step", "step", "save"])]
    line = _met(sample, [f"{margin}[rank3]: Traceback (most recent call last):"])
    assert (line.text, line.rank) == ("Traceback (most recent call last):", 3)


def test_a_margin_that_only_the_lines_around_show() -> None:
    near = [f"job-7 :: {line}" for line in BODY[3:]]
    line = _met(["sbatch: queued", "module load cuda", "starting"], near)
    assert (line.text, line.rank) == ("Traceback (most recent call last):", 3)


def test_a_label_that_the_sample_does_not_show() -> None:
    near = [f"rank_3: {line}" for line in ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "    g()", "ValueError: x"]]
    line = _met(["sbatch: queued", "module load cuda", "starting", "step 1", "step 2"], near)
    assert (line.text, line.rank) == ("Traceback (most recent call last):", 3)
    listing = [
        f"{number}: {line}"
        for number, line in enumerate(["Traceback (most recent call last):", '  File "a.py", line 3', "    g()", "    h()"], 7)
    ]
    assert _met(["starting", "step 1", "step 2"], listing).rank is None


def test_times_and_levels_of_a_margin() -> None:
    form = "<<{}>> {:9}[train] {}"
    words = ["INFO", "WARNING", "ERROR", "CRITICAL", "INFO", "ERROR"]
    lines = [form.format(f"2026-03-14 14:48:0{number}", word, text) for number, (word, text) in enumerate(zip(words, BODY, strict=True))]
    line = _taught(lines).strip(form.format("2026-03-14 14:48:09", "ERROR", "[rank3]: x"))
    assert (line.text, line.rank, line.level) == ("x", 3, "ERROR")
    assert line.time is not None
    assert line.time.iso == "2026-03-14T14:48:09"
    quiet = _taught(lines).strip(form.format("2026-03-14 14:48:09", "INFO", "[rank3]: x"))
    assert (quiet.text, quiet.level) == ("x", None)  # a shipper's word is not that of the message


def test_a_level_in_a_column_leaves_the_indentation() -> None:
    lines = [f"job_9 {word:9}{text}" for word, text in zip(["INFO", "WARNING", "ERROR", "CRITICAL", "INFO", "ERROR"], BODY, strict=True)]
    prefixes = _taught(lines)
    raw = 'job_9 ERROR      File "a.py", line 3, in f'
    assert prefixes.strip(raw).text == '  File "a.py", line 3, in f'


def test_what_mpirun_prints_behind_a_margin() -> None:
    lines = [
        f"2026-03-14T02:48:05+00:00 run/algo-1-17 [1,mpirank:{rank},algo-2]<stderr>:{word}"
        for rank, word in enumerate(["start", "load", "build"])
    ]
    raw = lines[0].replace("start", "  indented")
    line = _taught(lines).strip(raw)
    assert (line.text, line.rank, line.host) == ("  indented", 0, "algo-2")


def test_machines_that_a_margin_names_are_streams_of_their_own() -> None:
    lines = [f"run/algo-{number % 2 + 1}-17 {text}" for number, text in enumerate([*BODY, *BODY])]
    prefixes = _taught(lines)
    assert {prefixes.strip(f"run/algo-{number}-17 x").stream for number in (1, 2, 1)} == {"run/algo-1-17", "run/algo-2-17"}


def test_a_label_and_nccl_behind_a_margin() -> None:
    lines = [
        f"cloud> {rank}: n{rank}:4711:99 [0] NCCL INFO {word} x"
        for rank, word in [(0, "Channel"), (3, "Trees"), (1, "Using"), (2, "Bootstrap")]
    ]
    raw = "cloud> 3: hello"
    line = _taught(lines).strip(raw)
    assert (line.text, line.rank) == ("hello", 3)


@pytest.mark.parametrize(
    "lines",
    [
        [f"waiting for [rank{rank}]: {rank} s" for rank in range(6)],
        [f"heartbeat of [rank{rank}]: {word}" for rank, word in enumerate(["late", "ok", "lost", "dead", "slow"])],
        [f"Lost [rank{rank}]: gone" for rank in range(6)],
        [f"2026-03-14 14:48:05 lost contact with [rank{rank}]: {word}" for rank, word in enumerate(["late", "ok", "lost", "dead"])],
        [f'level=info msg="[rank{rank}]: {word}"' for rank, word in enumerate(["late", "ok", "lost", "dead"])],
        [f"buffers([rank{rank}]: {word})" for rank, word in enumerate(["late", "ok", "lost", "dead"])],
        ["start", "loading", "peer is [rank3]: gone", "step 1", "step 2"],
        ["  | Traceback (most recent call last):", '  |   File "a.py", line 3, in f', "  |     g()", "  | ValueError: x"],
        ["failed: Traceback (most recent call last):", '  File "a.py", line 3, in f', "    g()", "ValueError: x"],
    ],
    ids=lambda lines: lines[0],
)
def test_a_message_that_names_a_rank_is_none(lines: list[str]) -> None:
    prefixes = _taught(lines)
    for place, line in enumerate(lines):
        prefixes.meet(line, lambda place=place: lines[place + 1 :])  # type: ignore[misc]
    bare = Prefixes()
    bare.learn([])
    assert [prefixes.strip(line).text for line in lines] == [bare.strip(line).text for line in lines]


@pytest.mark.parametrize(
    "raw", ["a" * 16_000 + "[rank3]: x", "1:" * 70 + "[rank3]: x", "a.b-" * 30 + "1:1:1 [0] NCCL INFO x", "7f3a9c0d " * 16 + "[rank3]: x"]
)
def test_hostile_margins_take_no_time(raw: str) -> None:
    began = time.perf_counter()
    prefixes = _taught([raw] * 200)
    prefixes.meet(raw, lambda: [raw] * 20)
    assert time.perf_counter() - began < 1.0
