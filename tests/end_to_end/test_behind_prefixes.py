"""The same failure, whatever a launcher, a service or a site puts before the lines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memdoctor.pipeline import diagnose_logs

BEGAN = datetime(2026, 3, 14, 14, 48, 5, 447_000, tzinfo=UTC)
RAISED = [
    "Traceback (most recent call last):",
    '  File "/srv/job/pretrain.py", line 301, in <module>',
    "    main(datasets, model)",
    '  File "/srv/job/data/indexed.py", line 88, in __init__',
    '    with open(path, "rb") as stream:',
    "         ^^^^^^^^^^^^^^^^",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/corpus/part_07.idx'",
]
Before = Callable[[datetime, int], str]  # what stands before a line of a rank

KNOWN: dict[str, Before] = {
    "a rank in words within syslog": lambda t, r: (
        f"<14>1 {t:%Y-%m-%dT%H:%M:%S.%fZ} node-02 train {4000 + r} - - [{t:%Y-%m-%d %H:%M:%S}] [Rank {r}] "
    ),
    "a rank in words within the journal": lambda t, r: (
        f"{t:%b %d %H:%M:%S} node-02 python3[{4000 + r}]: [{t:%Y-%m-%d %H:%M:%S}] [Rank {r}] "
    ),
    "srun within compose within syslog": lambda t, r: (
        f"<14>1 {t:%Y-%m-%dT%H:%M:%S.%fZ} node-02 train {4000 + r} - - worker-{r}  | {t:%Y-%m-%dT%H:%M:%S.%fZ} {r}: "
    ),
    "a clock of twelve hours": lambda t, r: f"{t:%m/%d/%Y %I:%M:%S %p} - ERROR - ",
    "Airflow": lambda t, r: f"[{t:%Y-%m-%dT%H:%M:%S}.447+0000] {{subprocess.py:93}} INFO - ",
    "the full journal": lambda t, r: f"{t:%a %Y-%m-%d %H:%M:%S} UTC node-02 torchrun[42]: ",
    "the journal in seconds": lambda t, r: f"{t.timestamp():.6f} node-02 torchrun[42]: ",
}

MARGINS: dict[str, Before] = {
    "a machine in the cloud": lambda t, r: f"{t:%Y-%m-%dT%H:%M:%S.%f}+00:00 run-9/algo-{r // 4 + 1}-1710384485 ",
    "a step of a pipeline": lambda t, r: f"train\tRun\t{t:%Y-%m-%dT%H:%M:%S.%f}0Z ",
    "a platform of its own": lambda t, r: f"<<{t:%d.%m.%Y %H:%M:%S}>> job-88|{r:04x}f00d7 :: ",
}


def _log(before: Before, tag: str = "[rank{}]: ") -> str:
    lines = [(rank, "", text) for text in ("starting", "loading the data", "building the model") for rank in (0, 5, 2)]
    lines += [(5, tag.format(5), text) for text in RAISED]
    moments = (BEGAN + timedelta(seconds=place) for place in range(len(lines)))
    return "".join(f"{before(moment, rank)}{head}{text}\n" for moment, (rank, head, text) in zip(moments, lines, strict=True))


@pytest.mark.parametrize("before", [*KNOWN.values(), *MARGINS.values()], ids=[*KNOWN, *MARGINS])
def test_the_rank_and_the_time_are_read(before: Before, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(_log(before))
    report = diagnose_logs([str(path)])
    root = report.diagnoses[0]
    assert (report.root_cause, root.ranks) == ("data.missing", (5,))
    assert root.first_time is not None
    assert root.first_time.iso.startswith("2026-03-14T14:48:20")


def test_a_time_since_the_start_is_no_time_of_day(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("[2026-03-14 02:48:05] start\n" + _log(lambda t, r: f"00:00:{(t - BEGAN).seconds:02d} "))
    root = diagnose_logs([str(path)]).diagnoses[0]
    assert (root.ranks, root.first_time) == ((5,), None)


@pytest.mark.parametrize("before", [lambda t, r: "> ", *MARGINS.values()], ids=["a quotation", *MARGINS])
def test_the_failure_may_come_late(before: Before, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    chat = "".join(f"{before(BEGAN, 0)}{word} {number}\n" for number in range(400) for word in ("tokens", "shard", "cache"))
    path.write_text(chat + _log(before))
    root = diagnose_logs([str(path)]).diagnoses[0]
    assert (root.cause, root.ranks) == ("data.missing", (5,))


@pytest.mark.parametrize(
    "header",
    [
        "2026-03-14 14:48:20,447 - train - ERROR - failed",
        "2026-03-14 14:48:20.447 | ERROR    | __main__:<module>:301 - An error has been caught in function '<module>':",
        "[2026-03-14 14:48:20,447] [ERROR] [engine.py:12:step] [Rank 5] failed",
    ],
)
def test_what_a_logger_prints_below_a_header_is_of_its_time(header: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("\n".join(["2026-03-14 14:48:05,447 - train - INFO - start", header, *RAISED, ""]))
    root = diagnose_logs([str(path)]).diagnoses[0]
    assert (root.ranks, root.cause) == ((5,) if "Rank" in header else (), "data.missing")
    assert root.first_time is not None
    assert root.first_time.iso == "2026-03-14T14:48:20.447"


def test_a_traceback_below_what_only_informs_is_of_a_later_time(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("\n".join(["2026-03-14 14:48:05,447 - train - INFO - start", *RAISED, ""]))
    assert diagnose_logs([str(path)]).diagnoses[0].first_time is None


def _followed(names: dict[int, str]) -> str:
    parts: list[str] = []
    for rank, name in names.items():
        parts.append(f"==> {name} <==\nstarting\nloading the data\n")
        parts.extend(f"{line}\n" for line in (RAISED if rank == 5 else ["waiting"]))
        parts.append("\n")
    return "".join(parts)


def test_files_that_were_followed_together(tmp_path: Path) -> None:
    path = tmp_path / "all.log"
    path.write_text("\n" + _followed({rank: f"logs/rank_{rank}.log" for rank in (0, 5, 2)}))
    root = diagnose_logs([str(path)]).diagnoses[0]
    assert (root.cause, root.ranks) == ("data.missing", (5,))
    path.write_text(_followed({0: "logs/a.log", 5: "logs/b.log"}))
    root = diagnose_logs([str(path)]).diagnoses[0]
    assert (root.cause, root.ranks, root.evidence[0].line) == ("data.missing", (), 5 + 3 + len(RAISED))


def test_an_arrow_alone_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "all.log"
    path.write_text("==> starting rank_5\n" + "".join(f"{line}\n" for line in RAISED))
    assert diagnose_logs([str(path)]).diagnoses[0].ranks == ()


@pytest.mark.parametrize("form", ["logs/rank_{}.log:", "rank_{}.log:17:", "run-9/rank{}.stderr.txt-17-"])
def test_lines_that_grep_found_in_several_files(form: str, tmp_path: Path) -> None:
    path = tmp_path / "all.log"
    path.write_text(_log(lambda t, r: form.format(r), tag=""))
    root = diagnose_logs([str(path)]).diagnoses[0]
    assert (root.cause, root.ranks) == ("data.missing", (5,))


@pytest.mark.parametrize("head", ["2026-03-14 14:48:20.447 | ERROR    | __main__:main:120 - [rank5]: ", "[rank5]: ", "[1,5]<stderr>:"])
def test_a_record_of_several_lines_has_its_tag_once(head: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("starting\n" + head + "\n".join([*RAISED, ""]))
    root = diagnose_logs([str(path)]).diagnoses[0]
    assert (root.cause, root.ranks) == ("data.missing", (5,))
    assert (root.first_time is not None) == head.startswith("2026")
