"""`memdoctor check` from the command line's side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memdoctor.cli import main

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "memdoctor" / "report" / "schema.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from memdoctor.sources.probes.variables import chosen

    for name, _ in list(chosen(dict(os.environ))):
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter in whose environment nothing is installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return str(folder / "bin" / "python")


def report_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    main(["check", "--format", "json", *arguments])
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMA)
    assert isinstance(report, dict)
    return report


def test_the_list_of_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["host", "disks", "gpu", "xids", "python", "kernels", "locks", "variables", "network"]


def test_without_gpu_or_torch(bare_python: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What could not be looked at is said, nothing else is wrong, and no tick is given for it."""
    report = report_of(capsys, "--python", bare_python)
    checks = {check["name"]: check for check in report["checks"]}
    assert set(checks) == {"host", "disks", "gpu", "xids", "python", "kernels", "locks", "variables", "network"}
    assert all(check["summary"] for check in checks.values())
    for name in ("python", "kernels"):
        assert checks[name]["status"] == "skipped"
        assert "torch is not installed" in checks[name]["summary"]
    assert report["command"] == "check"
    assert {skip["source"] for skip in report["skips"]} >= {"python", "kernels"}
    assert report["incidents"] == []
    unchecked = {entry["rule"]: entry["reason"] for entry in report["not_checked"]}
    assert unchecked["env/kernel_fails"].startswith("kernels: torch is not installed")
    assert unchecked["oom/logits"] == "no log was read"


@pytest.mark.parametrize("name", ["host", "variables"])
def test_only(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(capsys, "--only", name)
    assert [check["name"] for check in report["checks"]] == [name]
    unchecked = {entry["rule"]: entry["reason"] for entry in report["not_checked"]}
    assert unchecked["gpu/missing"] == "gpu: not asked for"
    assert ("env/variable_misspelt" in unchecked) is (name == "host")  # derived from what was not looked at


def test_a_check_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--only", "gpus"]) == 2
    assert capsys.readouterr().err.startswith("memdoctor: --only gpus: there is no such check; there are: host, ")


def test_variables_stand_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NCCL_P2P_DISABLE", "true")
    monkeypatch.setenv("NCCL_SOCKET_IF_NAME", "eth0")
    monkeypatch.setenv("NCCL_IB_TIMEOUT", "22")
    report = report_of(capsys, "--only", "variables")
    assert sorted(each["message"] for each in report["diagnoses"]) == [
        "NCCL_P2P_DISABLE=true is read as 0: text that begins with no number counts as 0; 1 was probably meant",
        "NCCL_SOCKET_IF_NAME=eth0 is read by nothing: NCCL_SOCKET_IFNAME was probably meant",
    ]
    assert {each["cause"] for each in report["diagnoses"]} == {"env.variable"}
    commands = {fix["command"] for each in report["diagnoses"] for fix in each["fixes"]}
    assert commands == {"export NCCL_P2P_DISABLE=1", "unset NCCL_SOCKET_IF_NAME; export NCCL_SOCKET_IFNAME=eth0"}
    assert (report["root_cause"], report["checks"][0]["status"]) == ("env.variable", "wrong")
    assert report["checks"][0]["diagnoses"] == ["d1", "d2"]


def test_a_value_is_never_pasted_into_a_shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IF_NAME", "eth0; rm -rf ~")
    report = report_of(capsys, "--only", "variables")
    (command,) = [fix["command"] for each in report["diagnoses"] for fix in each["fixes"]]
    assert command == "unset NCCL_SOCKET_IF_NAME; export NCCL_SOCKET_IFNAME=<value>"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("gpu.device", {"ecc_volatile": 3}),  # its number is not known
        ("gpu.device", {"remap_pending": True}),
        ("gpu.device", {"gpu": 0, "remap_failure": True}),
        ("gpu.device", {"model": "NVIDIA H100 80GB HBM3", "ecc": False, "memory": 85520809984}),
        ("gpu.error", {"name": "lost"}),
        ("gpu.error", {"name": "no_answer", "text": "NVML did not answer"}),
        ("env.setting", {"variable": "NCCL_ALGO;x", "value": "Rong", "from": "environment"}),
        ("env.setting", {"variable": "NCCL_DEBUGG", "value": "INFO", "from": "/etc/nccl.conf"}),
    ],
)
def test_no_fix_leaves_open_what_the_machine_knows(
    kind: str, fields: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither for a host whose name is nothing to paste, nor for a GPU without a number."""
    source = "variables" if kind == "env.setting" else "gpu"
    odd = {"kind": kind, "fields": fields, "origin": {"source": f"probe.{source}", "path": "NVML", "excerpt": "x"}}
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"schema_version": 1, "host": "node 1;x", "probes": [source], "facts": [odd]}))
    report = report_of(capsys, str(path))
    assert report["diagnoses"]
    for each in report["diagnoses"]:
        assert each["fixes"]
        for fix in each["fixes"]:
            text = f"{fix['do']} {fix['command']} {fix['config']}"
            assert not any(place in text for place in ("<env_variable>", "<gpu>", "<host>")), text


def test_a_setting_of_a_file_is_corrected_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".nccl.conf").write_text("NCCL_DEBUG=INFO\nexport NCCL_ALGO=Ring\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    report = report_of(capsys, "--only", "variables")
    conf = str(tmp_path / ".nccl.conf")
    assert sorted(each["rule"] for each in report["diagnoses"]) == ["env/variable_leftover", "env/variable_misspelt"]
    assert all(f"(in {conf})" in each["message"] for each in report["diagnoses"])
    assert {fix["command"] for each in report["diagnoses"] for fix in each["fixes"]} == {f"grep -n = {conf}"}


def test_interfaces_that_do_not_exist_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "nosuch0")
    report = report_of(capsys, "--only", "variables", "--only", "network")
    assert [(each["rule"], each["cause"]) for each in report["diagnoses"]] == [("net/interface_name", "net.interface")]
    assert "NCCL_SOCKET_IFNAME=nosuch0" in report["diagnoses"][0]["message"]
    assert report_of(capsys, "--only", "variables")["diagnoses"] == []  # without the network nothing is concluded


@pytest.mark.parametrize(
    ("variables", "arguments", "code"),
    [
        ({}, [], 0),
        ({"NCCL_IB_DISABLE": "1"}, [], 0),
        ({"NCCL_IB_DISABLE": "1"}, ["--fail-on", "warning"], 1),
        ({"MASTER_PORT": "tcp"}, [], 1),
        ({"MASTER_PORT": "tcp"}, ["--fail-on", "never"], 0),
        ({"MASTER_PORT": "tcp"}, ["--ignore", "env.variable"], 0),
        ({"MASTER_PORT": "tcp"}, ["--ignore", "env/variable_*"], 0),
    ],
)
def test_exit_codes(variables: dict[str, str], arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["check", "--only", "variables", *arguments]) == code


def test_the_list_is_worst_first(bare_python: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MASTER_PORT", "tcp")
    monkeypatch.setenv("NCCL_IB_DISABLE", "1")
    assert main(["check", "--python", bare_python, "--only", "host", "--only", "variables", "--only", "python"]) == 1
    out = capsys.readouterr().out
    heads = [line for line in out.splitlines() if line.startswith("[")]
    assert [head.split(":")[0][4:] for head in heads] == ["Variables", "Python stack", "Host"]
    assert out.index("error: MASTER_PORT=tcp") < out.index("warning: NCCL_IB_DISABLE=1")
    assert "        unset NCCL_IB_DISABLE\n" in out  # to paste, on a line of its own
    assert out.rstrip().endswith("1 error and 1 warning in 2 checks; 1 could not be looked at.")
    assert "\x1b" not in out


def test_control_characters_in_a_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NCCL_ALGO", "\x1b[31mRing\x07")
    assert main(["check", "--only", "variables"]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31mRing\\x07" in out


def test_saved_and_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NCCL_IB_DISABLE", "1")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    saved = tmp_path / "facts.json"
    first = report_of(capsys, "--save", str(saved))
    text = saved.read_text()
    assert "hf_secret" not in text
    assert json.loads(text)["schema_version"] == 1
    second = report_of(capsys, str(saved))
    for key in ("root_cause", "diagnoses", "checks", "not_checked", "hosts_to_exclude"):
        assert second[key] == first[key], key
    assert second["inputs"] == [{"path": str(saved), "bytes": saved.stat().st_size, "lines": text.count("\n")}]
    assert report_of(capsys, str(saved), "--only", "host")["diagnoses"] == []


def test_expectations_are_saved_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "facts.json"
    first = report_of(capsys, "--only", "gpu", "--expect-gpus", "8", "--save", str(saved))
    assert [each["cause"] for each in first["diagnoses"]] == ["env.no_gpu"]
    assert "8 expected by --expect-gpus" in first["diagnoses"][0]["message"]
    assert report_of(capsys, str(saved))["diagnoses"] == first["diagnoses"]
    assert [each["severity"] for each in report_of(capsys, str(saved), "--expect-gpus", "0")["diagnoses"]] == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--save", "x.json"], "--save looks at this machine and does not go with saved facts"),
        (["--python", "/usr/bin/python3"], "--python looks at this machine"),
        (["--build"], "--build looks at this machine"),
    ],
)
def test_options_that_look_at_this_machine(arguments: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "facts.json").write_text('{"schema_version": 1, "host": "a", "facts": []}')
    assert main(["check", str(tmp_path / "facts.json"), *arguments]) == 2
    assert error in capsys.readouterr().err


def test_redacted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from memdoctor.sources.probes.notebook import host_name

    monkeypatch.setenv("NCCL_TOPO_FILE", "/home/ann/secret-project/topo.xml")
    main(["check", "--redact", "--format", "json", "--only", "variables", "--only", "network"])
    out = capsys.readouterr().out
    assert "/home/ann" not in out
    assert "secret-project" not in out
    assert "NCCL_TOPO_FILE" in out
    assert {each["path"] for diagnosis in json.loads(out)["diagnoses"] for each in diagnosis["evidence"]} == {"environment"}
    assert f'"{host_name()}"' not in out


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--only", "host", "--save", str(tmp_path / "none" / "facts.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["/proc/x.json", "/dev/full"])
def test_a_save_that_fails_names_its_option(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--only", "host", "--save", place]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"memdoctor: --save {place}: the file cannot be written: ")
    assert "--output" not in error


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """Neither where it is run, nor in the home folder, but for the cache of the rules."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "memdoctor", "check"], env=environ, cwd=work, capture_output=True, check=True)
    assert list(work.iterdir()) == []
    assert [path.name for path in home.iterdir()] in ([], [".cache"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "work"]
    if (home / ".cache").exists():
        assert [path.name for path in (home / ".cache").iterdir()] == ["memdoctor"]


def test_nothing_heavy_is_imported() -> None:
    script = "from memdoctor.cli import main; main(['check']); import sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert not {"torch", "deepspeed", "pynvml", "numpy"} & set(done.stderr.split())


@pytest.mark.slow
def test_without_gpu_or_torch_it_takes_a_second(bare_python: str) -> None:
    def seconds() -> float:
        begun = time.monotonic()
        command = [sys.executable, "-m", "memdoctor", "check", "--python", bare_python]
        subprocess.run(command, capture_output=True, cwd=ROOT, check=True)
        return time.monotonic() - begun

    seconds()  # fills the cache of the rules
    assert min(seconds() for _ in range(5)) <= 1.0
