"""Variables and their files, locks, the kernel log, and the child process that others rely on."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdoctor.sources.probes import child, disks, locks, variables, xids
from memdoctor.sources.probes.notebook import Notebook
from memdoctor.sources.probes.request import Request
from tests.sources.probes.test_host import facts_of, tree

# --- variables ------------------------------------------------------------------------------------------------------------------


def test_secrets_and_strangers_are_left_alone() -> None:
    environ = {
        "NCCL_DEBUG": "INFO", "HF_TOKEN": "hf_x", "HF_HOME": "/data", "AWS_SECRET_ACCESS_KEY": "x", "WANDB_API_KEY": "x", "NCLL_DEBUG": "1", "PATH": "/bin", "SLURM_JOB_ID": "7",
        "SLURM_JOB_ACCOUNT": "secret-project", "RANK": "0", "nccl_algo": "ring", "HOME": "/home/ann", "NCCL_API_KEY": "x",
    }  # fmt: skip
    assert [name for name, _ in variables.chosen(environ)] == ["HF_HOME", "NCCL_DEBUG", "NCLL_DEBUG", "RANK", "SLURM_JOB_ID", "nccl_algo"]


def test_files_of_nccl(tmp_path: Path) -> None:
    conf = tmp_path / "nccl.conf"
    conf.write_text("# NCCL_DEBUG=TRACE\nNCCL_SOCKET_IFNAME==ens1f0\nNCCL_IB_HCA=mlx5\nnonsense\nNCCL_DEBUG=WARN\n")
    notes = Notebook("variables", "here")
    variables.probe(notes, Request(environ={"NCCL_CONF_FILE": str(conf), "NCCL_IB_HCA": "mlx4"}))
    found = {fact["variable"]: (fact["value"], fact["from"]) for fact in facts_of(notes, "env.setting")}
    assert found["NCCL_SOCKET_IFNAME"] == ("=ens1f0", str(conf))  # the first = separates
    assert found["NCCL_IB_HCA"] == ("mlx4", "environment")  # the environment goes first
    assert found["NCCL_DEBUG"] == ("WARN", str(conf))
    fact = next(fact for fact in notes.facts if fact.get("variable") == "NCCL_SOCKET_IFNAME")
    assert (fact.origin.path, fact.origin.line) == (str(conf), 2)


def test_the_users_own_file(tmp_path: Path) -> None:
    (tmp_path / ".nccl.conf").write_text("NCCL_P2P_DISABLE=1\n")
    notes = Notebook("variables", "here")
    variables.probe(notes, Request(environ={"HOME": str(tmp_path)}))
    assert {fact["variable"] for fact in facts_of(notes, "env.setting")} >= {"NCCL_P2P_DISABLE"}


def test_a_path_at_which_nothing_is(tmp_path: Path) -> None:
    notes = Notebook("variables", "here")
    variables.probe(
        notes,
        Request(environ={"NCCL_TOPO_FILE": str(tmp_path / "none"), "CUDA_HOME": str(tmp_path), "NCCL_DEBUG_FILE": str(tmp_path / "x.%p")}),
    )
    assert {fact["variable"]: fact.get("absent") for fact in facts_of(notes, "env.setting")} == {
        "NCCL_TOPO_FILE": True,
        "CUDA_HOME": None,
        "NCCL_DEBUG_FILE": None,
    }


# --- locks ----------------------------------------------------------------------------------------------------------------------


def test_locks_are_found_with_their_age(tmp_path: Path) -> None:
    for name in ("py312_cu128/fused_adam", "py312_cu128/utils", "far/down/below/that"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "lock").touch()
    (tmp_path / "py312_cu128" / "utils" / "lock").unlink()
    os.utime(tmp_path / "py312_cu128" / "fused_adam" / "lock", (time.time() - 7200, time.time() - 7200))
    notes = Notebook("locks", "here")
    locks.probe(notes, Request(environ={"TORCH_EXTENSIONS_DIR": str(tmp_path)}))
    (fact,) = facts_of(notes, "host.lock")
    assert (fact["op"], fact["path"]) == ("fused_adam", str(tmp_path / "py312_cu128" / "fused_adam" / "lock"))
    assert 7190 < fact["age"] < 7300


def test_no_cache_no_locks(tmp_path: Path) -> None:
    notes = Notebook("locks", "here")
    locks.probe(notes, Request(environ={"HOME": str(tmp_path)}))
    assert (notes.facts, notes.skips) == ([], [])


# --- the kernel log ---------------------------------------------------------------------------------------------------------------


def test_xids_of_a_log_file(tmp_path: Path) -> None:
    log = """\
Nov 29 13:00:00 node-01 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000008, MMU Fault
Nov 29 13:00:01 node-01 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=4712, name=python3, Ch 00000009, MMU Fault
Nov 29 13:00:02 node-01 kernel: eth0: link up
Nov 29 13:00:03 node-01 kernel: NVRM: Xid (PCI:0000:5e:00): 145, pid=1, name=x, RLW_RXPIPE Nonfatal
Nov 29 13:00:04 node-01 kernel: NVRM: GPU 0000:86:00.0: GPU has fallen off the bus.
"""
    root = tree(tmp_path, {"/var/log/kern.log": log})
    notes = Notebook("xids", "here")
    xids.probe(notes, Request(root=root))
    found = {(fact["number"], fact["bus_id"]): fact["times"] for fact in facts_of(notes, "gpu.xid")}
    assert found == {(31, "0000:3b:00"): 2, (145, "0000:5e:00"): 1, (79, "0000:86:00"): 1}
    assert all("age" not in fact for fact in facts_of(notes, "gpu.xid"))


def test_a_log_that_may_not_be_read(tmp_path: Path) -> None:
    notes = Notebook("xids", "here")
    xids.probe(notes, Request(root=str(tmp_path)))
    (skip,) = notes.skips
    assert "the kernel log may not be read here" in skip.reason
    assert "dmesg" in skip.reason
    assert skip.kinds == ("gpu.xid",)


# --- the child --------------------------------------------------------------------------------------------------------------------


def run(code: str, timeout: float = 20.0) -> child.Outcome:
    return child.run([sys.executable, "-c", code], timeout=timeout, environ=dict(os.environ))


def test_lines_are_kept_and_nonsense_is_not() -> None:
    outcome = run("print('{\"a\": 1}'); print('nonsense'); print('[1]'); print('{\"b\": 2}', end='')")
    assert outcome.lines == [{"a": 1}, {"b": 2}]
    assert (outcome.code, outcome.ended()) == (0, "")


def test_a_crash() -> None:
    outcome = run("import os, sys; print('{\"a\": 1}', flush=True); sys.stderr.write('last words\\n'); sys.stderr.flush(); os.abort()")
    assert outcome.lines == [{"a": 1}]
    assert outcome.ended() == "it died of SIGABRT"
    assert "last words" in outcome.stderr


def test_a_hang_is_ended_with_all_its_children() -> None:
    begun = time.monotonic()
    outcome = run(
        "import subprocess, sys; print('{\"a\": 1}', flush=True); subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])",
        timeout=1.0,
    )
    assert time.monotonic() - begun < 10
    assert outcome.timed_out
    assert not outcome.stuck
    assert outcome.lines == [{"a": 1}]


def test_a_flood_is_bounded() -> None:
    outcome = run("import sys\nfor n in range(30000): print('{\"n\": %d}' % n)\nsys.stdout.flush()", timeout=30.0)
    assert len(outcome.lines) == child.MOST_LINES
    assert outcome.code == 0


def test_a_program_that_is_not_there() -> None:
    outcome = child.run(["/nowhere/python"], timeout=1.0, environ={})
    assert outcome.ended() == "it cannot be started: No such file or directory"
    assert child.run_text(["/nowhere/program"], timeout=1.0, environ={}) == (None, "")
    assert child.run_text([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.3, environ={})[0] is None


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)"])
def test_an_exit_code(code: str) -> None:
    assert run(code).ended() == "it ended with code 3"


def test_a_long_value_is_judged_whole_or_not_at_all() -> None:
    from memdoctor.derive.machine import derive_machine

    long = "roundup_power2_divisions:[" + ",".join(f"{1 << (number % 16)}:2" for number in range(200)) + "],max_split_size_mb:512"
    for value, cut in ((long, None), (long + ",foo:" + "x" * 20_000, True)):
        book = Notebook("variables", "here")
        variables.probe(book, Request(environ={"PYTORCH_CUDA_ALLOC_CONF": value}))
        (fact,) = book.facts
        assert fact.get("cut") is cut
        assert not [one for one in derive_machine(book.facts) if one.kind == "env.variable"]


def test_a_file_of_settings_that_is_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    book = Notebook("variables", "here")
    variables.probe(book, Request(environ={"NCCL_CONF_FILE": str(fifo)}))
    assert [skip.reason for skip in book.skips] == [f"{fifo} is no file: NCCL would read it, and wait"]


# --- places -------------------------------------------------------------------------------------------------------------------


def test_places_that_are_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Notebook("disks", "here")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    disks.probe(book, Request(environ={"HOME": "/proc", "TMPDIR": str(tmp_path / "none")}))
    assert [fact.get("path") for fact in book.facts if fact.get("missing")] == [str(tmp_path / "none")]
    assert not any(fact.get("size") == 0 for fact in book.facts)
    assert any("/proc" in skip.reason and "no size" in skip.reason for skip in book.skips)
    assert not any(fact.get("name") == "work" for fact in book.facts)


def test_one_read_only_file_system_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs

    def read_only(path: str) -> Any:
        values = list(real(path))
        values[8] |= os.ST_RDONLY
        return os.statvfs_result((*values, real(path).f_fsid))

    monkeypatch.setattr(os, "statvfs", read_only)
    book = Notebook("disks", "here")
    disks.probe(book, Request(environ={"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}))
    devices = {os.stat(path).st_dev for path in (tmp_path, os.getcwd())}
    assert len([fact for fact in book.facts if fact.get("read_only")]) == len(devices)


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """The working folder, which one may enter but not write in, and nobody who is root: root may write everywhere."""
    folder = Path(tempfile.mkdtemp(prefix="memdoctor-places-", dir="/tmp"))
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    folder.chmod(0o555)
    root, here = os.geteuid() == 0, Path.cwd()
    os.chdir(folder)  # where the check itself is started matters to no job
    if root:
        os.seteuid(65_534)
    yield folder
    if root:
        os.seteuid(0)
    os.chdir(here)  # which nobody might not have entered
    folder.chmod(0o755)
    shutil.rmtree(folder)


def unwritable(**environ: str) -> list[tuple[str, str]]:
    book = Notebook("disks", "here")
    disks.probe(book, Request(environ=environ))
    return [(str(fact.get("name")), str(fact.get("path"))) for fact in book.facts if fact.get("unwritable")]


def test_a_folder_that_may_not_be_written_is_told_once(as_nobody: Path) -> None:
    home, free = str(as_nobody), str(as_nobody / "open")
    assert unwritable(HOME=home, TMPDIR=free) == [("cache", home)]
    assert unwritable(HOME=home, TMPDIR=home, XDG_CACHE_HOME=free, TRITON_CACHE_DIR=free) == [("tmp", home)]
    assert unwritable(HOME=home, TMPDIR=free, XDG_CACHE_HOME=free, TRITON_CACHE_DIR=free) == [("home", home)]
    assert unwritable(HOME=free, TMPDIR=free, TRITON_CACHE_DIR=f"{home}/triton/cache") == [("triton", home)]  # it cannot be made there
    assert unwritable(HOME=free, TMPDIR=free) == []
    assert unwritable(HOME=free, TMPDIR=f"{home}/none") == []  # that it is not there is told already


def test_a_read_only_file_system_is_not_told_as_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs
    monkeypatch.setattr(
        os, "statvfs", lambda path: os.statvfs_result((*list(real(path))[:8], real(path).f_flag | os.ST_RDONLY, *list(real(path))[9:]))
    )
    monkeypatch.setattr(os, "access", lambda *given, **more: False)
    assert unwritable(HOME=str(tmp_path), TMPDIR=str(tmp_path)) == []


def test_an_empty_kernel_log_was_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kmsg").touch()
    book = Notebook("xids", "here")
    xids.probe(book, Request(root=str(tmp_path)))
    assert book.facts == []
    assert len(book.skips) == 1
    assert "it is empty" in book.skips[0].reason


# --- children -----------------------------------------------------------------------------------------------------------------


def test_a_child_that_talks_nonsense_costs_its_nonsense() -> None:
    script = """
import json, sys
for line in ({"kind": "gpu.device"}, {"kind": "nonsense", "fields": {}}, {"kind": ["x"], "fields": {}}, {"kind": "gpu.device", "fields": []}):
    print(json.dumps(line))
print(json.dumps({"kind": "gpu.device", "fields": {"gpu": 1}}))
sys.stderr.write("x" * 3_000_000 + "the end")
"""
    outcome = child.run([sys.executable, "-c", script], timeout=20, environ=os.environ)
    assert [line["fields"] for line in outcome.lines if child.is_fact(line)] == [{"gpu": 1}]
    assert outcome.stderr.endswith("the end")
    assert len(outcome.stderr) <= child.TAIL
