"""Every message of the frameworks that is worth knowing leads to its cause, alone and without context.

The rows are numbered by family: what the other files of tests/data/messages do not hold is named in ``left_out.yaml`` with the reason, and no number is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "data" / "messages"
LEFT_OUT: list[dict[str, Any]] = yaml.safe_load((FOLDER / "left_out.yaml").read_text())
ROWS: list[dict[str, Any]] = [
    row for path in sorted(FOLDER.glob("*.yaml")) if path.name != "left_out.yaml" for row in yaml.safe_load(path.read_text())
]
SHARE = 0.95  # of the rows of a family that must be right
# Many rows name several causes that are all right, the best one first: the share of the rows of a family whose answer is the first.
# One row below what was measured at most, so that a drift from the best answer to a good one shows.
FIRST = {
    "deepspeed": 0.93, "megatron": 0.915, "nan": 1.0, "nccl": 0.885, "oom": 0.93, "overflow": 0.85, "sxid": 1.0, "timeout": 0.58, "xid": 0.93,
}  # fmt: skip
OF_ALL = 0.89
# How many messages of each family are known. Xids go by their own numbers.
KNOWN = {"megatron": 102, "deepspeed": 85, "overflow": 8, "nan": 5, "nccl": 100, "timeout": 5, "oom": 27}
FAMILIES = sorted({row["row"].split()[0] for row in ROWS})


def text_of(row: dict[str, Any]) -> str:
    """The row as a short log of rank 3."""
    lines = list(row.get("lines", []))
    if "line" in row:
        lines.append(row["line"])
    if "exception" in row:
        lines += [
            "[rank3]: Traceback (most recent call last):",
            '[rank3]:   File "/workspace/pretrain.py", line 301, in <module>',
            "[rank3]:     main()",
            f'[rank3]:   File "{row["file"]}", line 212, in {row["function"]}',
            f"[rank3]:     {row['source']}",
            f"[rank3]: {row['exception']}",
            *(f"[rank3]: {line}" for line in row.get("after", [])),
        ]
    if row.get("failed"):
        lines.append(
            "E1129 13:11:06.000000 4242 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 3 (pid: 4711) of binary: /usr/bin/python3"
        )
    return "\n".join(lines) + "\n"


def answer_to(text: str, folder: Path) -> Report:
    path = folder / "train.log"
    path.write_text(text)
    return diagnose_logs([str(path)])


def wrong_in(report: Report, row: dict[str, Any]) -> str | None:
    """What is wrong with the answer; None where it is right."""
    if report.root_cause not in row["cause"]:
        return f"{report.root_cause} in place of {row['cause']}"
    if "note" in row and row["note"] not in {found.cause for found in report.diagnoses}:
        return f"no note of {row['note']}"
    return None


def number(row: dict[str, Any]) -> int | None:
    """The number of ``megatron 92b`` and of ``nccl 44 refused`` within the family; None for a message beside the numbered ones."""
    word = row["row"].split()[1] if " " in row["row"] else ""
    digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) if digits.isdigit() else None


def numbers(rows: list[dict[str, Any]], family: str) -> set[int]:
    return {n for row in rows if row["row"].split()[0] == family and (n := number(row)) is not None}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rows_lead_to_their_causes(family: str, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["row"].split()[0] == family]
    answers = {row["row"]: answer_to(text_of(row), tmp_path) for row in rows}
    wrong = {row["row"]: answer for row in rows if (answer := wrong_in(answers[row["row"]], row))}
    assert len(wrong) <= (1 - SHARE) * len(rows), wrong
    others = {row["row"]: got for row in rows if (got := answers[row["row"]].root_cause) != row["cause"][0]}
    assert 1 - len(others) / len(rows) >= FIRST[family], others


def test_of_all_rows_most_have_the_first_cause() -> None:
    """What the families hold together; it keeps the shares above from being lowered one by one."""
    assert set(FIRST) == set(FAMILIES)
    assert sum(FIRST[row["row"].split()[0]] for row in ROWS) / len(ROWS) >= OF_ALL


def test_a_warning_of_nccl_is_known_as_the_last_error_of_torch_too(tmp_path: Path) -> None:
    failed = "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, unhandled system error, NCCL version 2.27.5"
    where = {
        "file": "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
        "function": "barrier",
        "source": "work = group.barrier(opts=opts)",
    }
    warned = {row["row"]: row for row in ROWS if row.get("failed") and " NCCL WARN " in row.get("line", "")}
    wrong = {}
    for name, row in warned.items():
        told = {"exception": failed, **where, "after": ["Last error:", row["line"].split(" NCCL WARN ")[1]]}
        if answer := wrong_in(answer_to(text_of(told), tmp_path), row):
            wrong[name] = answer
    assert len(warned) > 80
    assert len(wrong) <= (1 - SHARE) * len(warned), wrong


@pytest.mark.parametrize("family", KNOWN)
def test_every_number_is_tested_or_left_out(family: str) -> None:
    tested, left_out = numbers(ROWS, family), numbers(LEFT_OUT, family)
    assert tested | left_out == set(range(1, KNOWN[family] + 1))
    assert not tested & left_out


def test_every_xid_of_the_table_is_tested() -> None:
    known = yaml.safe_load((ROOT / "rules" / "tables" / "xids.yaml").read_text())["xids"]
    assert numbers(ROWS, "xid") == set(known)


def test_no_row_stands_twice() -> None:
    names = [row["row"] for row in [*ROWS, *LEFT_OUT]]
    assert len(names) == len(set(names))


def test_whatever_is_left_out_says_why() -> None:
    assert {row["row"].split()[0] for row in LEFT_OUT} <= set(KNOWN)
    assert [row["row"] for row in LEFT_OUT if number(row) is None or not row["says"].strip() or len(row["why"].split()) < 4] == []


def test_whatever_is_left_out_names_no_cause(tmp_path: Path) -> None:
    quiet = {row["row"]: "\n".join(row["quiet"]) + "\n" for row in LEFT_OUT if "quiet" in row}
    assert len(quiet) > len(LEFT_OUT) // 2
    wrong = {name: answer for name, text in quiet.items() if (answer := wrong_in(answer_to(text, tmp_path), {"cause": [None]}))}
    assert not wrong
