"""What is to be done about an Xid follows its number: the action, the hosts to leave out and the commands agree with rules/tables/xids.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.model import Report
from memdoctor.pipeline import diagnose_logs

LINE = "Mar 11 10:14:02 gpu-03 kernel: NVRM: Xid (PCI:0000:3b:00): {number}, pid=7003, name=python3, {text}\n"
RECOVERY = "GPU recovery action changed from 0x0 (None) to 0x{code} ({words})"
RESET, REBOOT = "nvidia-smi --gpu-reset", "sudo reboot"


def diagnose(tmp_path: Path, *lines: tuple[int, str]) -> Report:
    path = tmp_path / "kern.log"
    path.write_text("".join(LINE.format(number=number, text=text) for number, text in lines), encoding="utf-8")
    return diagnose_logs([str(path)])


def commands(report: Report) -> str:
    return "\n".join(fix.command or "" for fix in report.diagnoses[0].fixes)


@pytest.mark.parametrize(
    ("number", "text", "rule", "action", "excluded"),
    [
        (48, "DBE (double bit error) ECC error", "gpu/xid", "exclude-hosts", True),
        (95, "Uncontained: LTC TAG", "gpu/xid", "exclude-hosts", True),
        (119, "Timeout after 45s of waiting for RPC response from GPU0 GSP!", "gpu/xid", "exclude-hosts", True),
        (79, "GPU has fallen off the bus.", "gpu/xid_reboot", "call-hardware", True),
        (154, RECOVERY.format(code=2, words="Node Reboot Required"), "gpu/xid_reboot", "call-hardware", True),
        (154, RECOVERY.format(code=1, words="GPU Reset Required"), "gpu/xid", "exclude-hosts", True),
        (154, RECOVERY.format(code=3, words="Drain P2P"), "gpu/xid_drain", "exclude-hosts", True),
        (64, "Row Remapper: Error", "gpu/xid_replace", "call-hardware", True),
        (54, "auxiliary power", "gpu/xid_power", "call-hardware", True),
        (78, "vGPU start error", "gpu/xid_driver", "fix-config", False),
        (151, "Key rotation failed", "gpu/xid_machine", "restart", False),
        (8, "Channel 00000012", "gpu/xid_restart", "restart", False),
        (32, "Channel ID 00000012", "gpu/xid_restart", "restart", False),
        (94, "Contained: SM (0x1). RST: No, D-RST: No", "gpu/xid_restart", "restart", False),
        (31, "Ch 00000008, intr 00000000. MMU Fault", "gpu/xid_application", "fix-code", False),
        (399, "something new", "gpu/xid_unknown", "exclude-hosts", True),
        (63, "Row Remapper: New row marked for remapping", "gpu/xid_reset_later", "none", False),
        (92, "High single-bit ECC error rate", "gpu/xid_minor", "none", False),
    ],
)
def test_the_action_of_a_number(tmp_path: Path, number: int, text: str, rule: str, action: str, excluded: bool) -> None:
    report = diagnose(tmp_path, (number, text))
    assert (report.diagnoses[0].rule, report.action, report.hosts_to_exclude) == (rule, action, ("gpu-03",) if excluded else ())
    assert (RESET in commands(report)) is (rule in ("gpu/xid", "gpu/xid_reset_later"))
    assert (REBOOT in commands(report)) is (rule == "gpu/xid_reboot")
    assert ("--exclude" in commands(report)) is excluded


@pytest.mark.parametrize(("code", "words", "rule"), [(1, "GPU Reset Required", "gpu/xid"), (2, "Node Reboot Required", "gpu/xid_reboot")])
@pytest.mark.parametrize("number", [48, 79, 94, 145])
def test_the_drivers_own_word_goes_before_the_table(tmp_path: Path, number: int, code: int, words: str, rule: str) -> None:
    report = diagnose(tmp_path, (number, "Fatal" if number == 145 else "x"), (154, RECOVERY.format(code=code, words=words)))
    assert [diagnosis.rule for diagnosis in report.diagnoses] == [rule]
    assert f"Xid {number}" in report.diagnoses[0].message
    assert f"the driver asks for: {words}" in report.diagnoses[0].message


def test_a_driver_that_is_content_again_takes_nothing_back(tmp_path: Path) -> None:
    report = diagnose(tmp_path, (48, "DBE"), (154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"))
    assert [diagnosis.rule for diagnosis in report.diagnoses] == ["gpu/xid"]
