"""sacct and nvidia-smi -q beside a log."""

from __future__ import annotations

from memdoctor.sources.logs import formats

SACCT = """\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
4711              train        gpu     llmlab        512    TIMEOUT      0:0
4711.batch        batch                llmlab         64  CANCELLED     0:15
4711.0             bash                llmlab        512 OUT_OF_ME+    0:125
"""
SMI = """\

==============NVSMI LOG==============

Driver Version                            : 550.54.15
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Not Active
    ECC Errors
        Volatile
            SRAM Correctable              : 3
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 9
    Remapped Rows
        Pending                           : Yes
        Remapping Failure Occurred        : No
"""


def read(text: str) -> list[tuple[str, dict[str, object]]]:
    lines = text.split("\n")
    reader = formats.detect(lines)
    assert reader is not None
    return [(kind, dict(fields)) for line in lines for kind, fields in reader.feed(line)]


def test_sacct_table() -> None:
    facts = read(SACCT)
    assert [(kind, fields["name"]) for kind, fields in facts] == [
        ("scheduler", "time_limit"),
        ("scheduler", "cancelled"),
        ("host.oom", "slurm"),
    ]
    assert facts[1][1]["signal"] == "15"


def test_sacct_parsable() -> None:
    facts = read("JobID|JobName|State|ExitCode|NodeList\n9|x|NODE_FAIL|0:0|node[01-04]\n9.0|x|COMPLETED|0:0|node01\n")
    assert facts == [("scheduler", {"name": "node_failure", "job": "9", "state": "NODE_FAIL", "exitcode": "0", "node": "node[01-04]"})]


def test_nvidia_smi_names_only_what_is_wrong() -> None:
    facts = read(SMI)
    assert [fields["name"] for _, fields in facts] == ["hw_slowdown", "ecc_uncorrectable", "remap_pending"]
    assert {fields["bus_id"] for _, fields in facts} == {"00000000:3B:00.0"}
    assert facts[1][1]["value"] == 2.0


def test_a_training_log_is_neither() -> None:
    assert formats.detect(["[rank0]: Traceback (most recent call last):", "JobID is not a header here", "iteration 1/ 10 |"]) is None
