"""Every message of the frameworks that is worth knowing leads to its cause, alone and without context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from memdoctor.pipeline import diagnose_logs

ROWS: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent.parent / "data" / "messages.yaml").read_text())
SHARE = 0.95  # of the rows that must be right


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


def answer(row: dict[str, Any], folder: Path) -> str | None:
    path = folder / "train.log"
    path.write_text(text_of(row))
    return diagnose_logs([str(path)]).root_cause


def test_the_rows_lead_to_their_causes(tmp_path: Path) -> None:
    wrong = {row["row"]: (got, row["cause"]) for row in ROWS if (got := answer(row, tmp_path)) not in row["cause"]}
    assert len(wrong) <= (1 - SHARE) * len(ROWS), wrong


@pytest.mark.parametrize("family", ["megatron", "deepspeed", "nccl", "oom", "xid"])
def test_the_table_is_whole(family: str) -> None:
    expected = {"megatron": 100, "deepspeed": 80, "nccl": 55, "oom": 13, "xid": 30}
    assert sum(row["row"].startswith(family) for row in ROWS) >= expected[family]
