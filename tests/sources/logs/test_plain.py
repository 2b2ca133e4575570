"""Many small logs: what is read of them at one stroke is what the whole reader reads."""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memdoctor.model import FileRead, LogFacts
from memdoctor.pipeline import diagnose_logs
from memdoctor.sources.logs import collect, one_log, scan
from memdoctor.sources.logs.collect import read_logs
from memdoctor.sources.logs.plain import PlainLogs
from memdoctor.sources.logs.sampling import MANY, Gates, Sampling, of_the_sample
from memdoctor.sources.logs.workers import Workers
from tests.bench.generate import pieces
from tests.sources.logs.test_workers import numbers, signals

STEP = (
    " [2026-03-01 10:00:{second:02d}.250] iteration {step:8d}/ 5000 | consumed samples: {samples:12d} | elapsed time per iteration (ms): 5200.5 | "
    "learning rate: 1.5E-04 | global batch size: {batch} | lm loss: {loss} | loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   {skipped} | "
    "number of nan iterations:   0 |"
)
DEEPSPEED = "[2026-03-01 10:00:{second:02d},250] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped={skipped}, lr=[1.2e-05], mom=[(0.9, 0.95)]"


class OutOfTheSample(Sampling):
    """Leaves out of a plain log what plain logs are not looked through for."""

    def __init__(self, gates: Gates, logs: int, *, brief: bool = False) -> None:
        super().__init__(gates, logs, brief=brief)
        if brief:
            self._out, self.most = gates.out, math.inf


def compared(facts: LogFacts) -> list[Any]:
    """All that was read, comparable; without ages, and without moments, which plain logs tell by their step lines alone."""
    files = [(replace(file, age=None, first=None, last=None, series=None), numbers(file.series)) for file in facts.files]
    return [facts.facts, facts.inputs, facts.skips, dict(facts.counts), facts.dumps, files]


def both(folder: Path) -> tuple[LogFacts, LogFacts, int]:
    """The logs of ``folder`` as read, and by the whole reader alone; and how many were read at one stroke. None is in the sample."""
    plain = 0
    real = PlainLogs.read

    def read(self: PlainLogs, some: Sequence[Any]) -> tuple[list[Any], frozenset[int]]:
        nonlocal plain
        found, unread = real(self, some)
        plain += sum(one is not None for one in found)
        return found, unread

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "rare", lambda *_: [])
        patch.setattr(one_log, "of_the_sample", lambda *_: False)
        patch.setattr(PlainLogs, "read", read)
        found = read_logs([str(folder)], signals())
        patch.setattr(PlainLogs, "read", real)
        patch.setattr(one_log, "of_the_sample", lambda *_: True)
        patch.setattr(scan, "Sampling", OutOfTheSample)
        whole = read_logs([str(folder)], signals())
    return found, whole, plain


def cut(size: int, each: int) -> Iterator[bytes]:
    """A made-up log in pieces that end with a line or with the redraw of a bar."""
    data = b"".join(pieces(size))
    while data:
        end = max(data.rfind(b"\n", 0, each), data.rfind(b"\r", 0, each)) + 1 or len(data)
        yield data[:end]
        data = data[end:]


def test_the_same_as_the_whole_reader(tmp_path: Path) -> None:
    count = 0
    for count, data in enumerate(cut(2_000_000, 8_000)):
        (tmp_path / f"worker-{count:04d}.log").write_bytes(data)
    found, whole, plain = both(tmp_path)
    assert compared(found) == compared(whole)
    assert count > 200
    assert plain > count / 2


ODD = {
    "dos": lambda text: text.replace(b"\n", b"\r\n"),
    "colours": lambda text: b"\x1b[32m" + text + b"\x1b[0m\n",
    "zeros": lambda text: text + b"\0\0\0\n",
    "packed": gzip.compress,
    "wide": lambda text: text.decode().encode("utf-16"),
    "marked": lambda text: b"\xef\xbb\xbf" + text,
    "docker": lambda text: b"".join(
        b'{"log":"%s\\n","stream":"stdout","time":"2026-03-01T10:00:00.1Z"}\n' % line.replace(b'"', b'\\"') for line in text.splitlines()
    ),
    "cri": lambda text: b"".join(b"2026-03-01T10:00:00.000000000Z stdout F %s\n" % line for line in text.splitlines()),
    "ranks": lambda text: b"".join(b"[rank%d]: %s\n" % (number % 3, line) for number, line in enumerate(text.splitlines())),
    "no end": lambda text: text[:-1],
    "redrawn": lambda text: text[:-1] + b"\r",
    "only an end": lambda text: text + b"\r",
    "traceback": lambda text: text + b"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nValueError: no\n",
    "empty": lambda text: b"",
    "sacct": lambda text: b"JobID|State|ExitCode\n7|FAILED|1:0\n",
    "pickle": lambda text: b"\x80\x04" + text,
}  # fmt: skip


def test_whatever_is_out_of_the_ordinary_is_left_to_the_whole_reader(tmp_path: Path) -> None:
    lines = [
        STEP.format(second=step, step=step, samples=step * 8, batch=8, loss=f"{3 - step / 100:.6E}", skipped=0) for step in range(1, 6)
    ]
    text = "".join(f"{line}\n" for line in lines).encode()
    for number in range(MANY + 40):
        (tmp_path / f"worker-{number}.log").write_bytes(text)
    for number, make in enumerate(ODD.values()):
        (tmp_path / f"worker-{30 + 3 * number}.log").write_bytes(make(text))
    found, whole, plain = both(tmp_path)
    assert compared(found) == compared(whole)
    assert plain >= MANY


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1))
def test_the_same_on_anything(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Step lines of both forms whose fields change, between lines of all sorts."""
    made = random.Random(seed)
    folder = tmp_path_factory.mktemp("many")

    def line(step: int) -> str:
        fields = {
            "second": made.randrange(60), "step": step, "samples": 8 * step, "batch": made.choice([8, 8, 8, 16]),
            "loss": made.choice(["2.500000E+00"] * 9 + ["nan", "0.0", "broken"]), "skipped": made.choice([0, 0, 0, 0, 1]),
        }  # fmt: skip
        return made.choice(
            [
                STEP,
                STEP,
                STEP,
                DEEPSPEED,
                "some text",
                "loss: 1.5",
                "",
                "iter 7 loss 2.5",
                "    optimizer ......: (1.00, 2.00)",
                "x: 10:00:00",
            ]
        ).format(**fields)

    for number in range(MANY + 10):
        first = made.randrange(1_000)
        text = "\n".join(line(first + step) for step in range(made.randrange(6)))
        (folder / f"worker-{number}.log").write_text(text + made.choice(["\n", "\n", "\n", "", "\r"]))
    found, whole, _ = both(folder)
    assert compared(found) == compared(whole)


def moments(file: FileRead) -> tuple[str | None, str | None]:
    return (file.first.iso if file.first is not None else None, file.last.iso if file.last is not None else None)


def test_the_moments_are_those_of_the_step_lines_or_else_of_any_line(tmp_path: Path) -> None:
    step = STEP.format(second=30, step=1, samples=8, batch=8, loss="2.5E+00", skipped=0)
    for number in range(MANY + 1):
        (tmp_path / f"worker-{number}.log").write_text(f"{step}\n")
    (tmp_path / "worker-51.log").write_text(
        f"2026-03-01 09:00:00 begun\n{step}\n{step.replace(':30.250', ':40')}\n2026-03-01 11:00:00 over\n"
    )
    (tmp_path / "worker-52.log").write_text("2026-03-01 09:00:00 begun\nsome text\n2026-03-01 11:00:00 over\n")
    files = {Path(file.path).name: file for file in both(tmp_path)[0].files}
    assert moments(files["worker-51.log"]) == ("2026-03-01T10:00:30.250", "2026-03-01T10:00:40")
    assert moments(files["worker-52.log"]) == ("2026-03-01T09:00:00", "2026-03-01T11:00:00")


def test_few_logs_are_each_worth_a_closer_look(tmp_path: Path) -> None:
    for number in range(MANY):
        (tmp_path / f"worker-{number}.log").write_text("some text\n")
    assert both(tmp_path)[2] == 0


def test_what_each_rank_says_of_itself_is_read_of_all(tmp_path: Path) -> None:
    count = 600
    for number in range(count):
        (tmp_path / f"worker-{number}.log").write_text(
            f"[Rank {number}] (after 2 iterations) memory (MB) | allocated: 1000.0 | max allocated: {2000 + number}.0 | reserved: 3000.0 | max reserved: 3000.0\n"
            "loss: 2.5\nloss: 2.4\n"
        )
    found = read_logs([str(tmp_path)], signals())
    assert {fact.rank for fact in found.facts if fact.kind == "rank.memory"} == {*range(count)}
    most = [file.series.beside.tables["memory"].column("max_allocated")[0] for file in found.files]
    assert most == [(2000 + number) * 1024**2 for number in range(count)]


def test_on_bytes_is_told_of_all(tmp_path: Path) -> None:
    for number in range(MANY + 5):
        (tmp_path / f"worker-{number}.log").write_text("some text\n" * 20)
    told: list[int] = []
    read_logs([str(tmp_path)], signals(), told.append)
    assert sum(told) == (MANY + 5) * 200


BAR = "Epoch 0: {share:3d}%|###| {step}/500 [01:00<24:12, 9.12it/s, loss={loss}]\n"


def test_what_one_rank_draws_for_all_is_not_missed(tmp_path: Path) -> None:
    """Of 300 logs most are not looked through for bars; the one that draws them is, whichever it is."""
    for number in range(300):
        (tmp_path / f"worker-{number}.log").write_text("some text\n" * 5)
    (tmp_path / "worker-41.log").write_text(
        "".join(BAR.format(share=step // 5, step=step, loss=f"{3 - step / 100:.2f}") for step in range(1, 41))
    )
    found = read_logs([str(tmp_path)], signals())
    assert not of_the_sample(41, 300)
    assert [len(file.series) for file in found.files if len(file.series)] == [40]
    assert compared(read_logs([str(tmp_path)], signals(), engine=Workers(2))) == compared(found)


def test_a_log_with_trouble_is_read_as_a_whole(tmp_path: Path) -> None:
    """All draw bars, and one of them is not in the sample and shows a loss that is no number."""
    for number in range(300):
        losses = ["nan" if number == 41 and step > 20 else f"{3 - step / 100:.2f}" for step in range(1, 41)]
        (tmp_path / f"worker-{number}.log").write_text(
            "".join(BAR.format(share=step // 5, step=step, loss=loss) for step, loss in enumerate(losses, 1))
        )
    found = read_logs([str(tmp_path)], signals())
    assert [len(file.series) for file in found.files][41] == 40
    assert diagnose_logs([str(tmp_path)], workers=1).root_cause == "nan.divergence"


def test_the_form_of_a_step_line_is_learnt_from_many(tmp_path: Path) -> None:
    step = STEP.format(second=30, step=1, samples=8, batch=8, loss="2.5E+00", skipped=0)
    for number in range(MANY + 5):
        (tmp_path / f"worker-{number}.log").write_text(f"{step}\n")
    assert both(tmp_path)[2] == MANY + 5
