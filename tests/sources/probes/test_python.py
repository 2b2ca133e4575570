"""Another interpreter is examined: real programs, made-up packages."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
INSIDE = ROOT / "memdoctor" / "sources" / "probes" / "inside.py"


class Environment:
    """A virtual environment without pip and without memdoctor, into which packages are put by hand."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.folder, self.python = folder, str(folder / "bin" / "python")
        self.packages = next(folder.glob("lib/python*/site-packages"))

    def add(self, module: str, code: str, version: str = "", distribution: str = "") -> None:
        path = self.packages / f"{module.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        if version:
            (self.packages / f"{distribution or module}-{version}.dist-info").mkdir()

    def state(self) -> dict[str, tuple[int, int, str]]:
        return {
            str(path): (
                path.stat().st_mtime_ns,
                path.stat().st_mode,
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            )
            for path in sorted(self.folder.rglob("*"))
            if not path.is_symlink()
        }

    def check(self, *arguments: str, home: Path | None = None) -> tuple[dict[str, Any], int]:
        environ = {"PATH": os.environ["PATH"], "HOME": str(home or self.folder.parent / "home"), "CUDA_HOME": str(self.folder)}
        command = [
            sys.executable,
            "-m",
            "memdoctor",
            "check",
            "--only",
            "python",
            "--only",
            "kernels",
            "--format",
            "json",
            "--python",
            self.python,
        ]
        done = subprocess.run([*command, *arguments], env=environ, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert done.stdout, done.stderr
        return json.loads(done.stdout), done.returncode


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "venv")


# As much of torch as the check asks for, built for CUDA 12.8 and without a GPU; operations are those of a list.
FAKE_TORCH = """
import types
__version__ = "2.9.0+cu128"
version = types.SimpleNamespace(cuda="12.8", hip=None)
_C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True, _cuda_getArchFlags=lambda: "sm_80 sm_90 compute_90")
class _Cuda(types.SimpleNamespace):
    def is_available(self): return False
    def device_count(self): return 0
    def init(self): raise RuntimeError("Found no NVIDIA driver on your system.")
cuda = _Cuda(nccl=types.SimpleNamespace(version=lambda: (2, 27, 5)))
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91002))
def device(*a): raise RuntimeError("no kernels here")
"""


def rules(report: dict[str, Any]) -> list[str]:
    return sorted(each["rule"] for each in report["diagnoses"])


def test_nothing_is_installed_and_nothing_is_changed(environment: Environment) -> None:
    before = environment.state()
    report, code = environment.check()
    assert (rules(report), code) == ([], 0)
    assert {check["name"]: check["status"] for check in report["checks"]} == {"python": "skipped", "kernels": "skipped"}
    assert any(f"torch is not installed for {environment.python}" in skip["reason"] for skip in report["skips"])
    assert environment.state() == before


def test_a_torch_that_aborts_on_import(environment: Environment) -> None:
    environment.add(
        "torch.__init__", "import os, sys\nprint('noise on stdout')\nsys.stderr.write('libfoo: fatal\\n')\nos.abort()\n", "2.9.0", "torch"
    )
    before = environment.state()
    report, code = environment.check("--only", "host")
    assert (rules(report), code) == (["env/import_crash"], 1)
    (diagnosis,) = report["diagnoses"]
    assert "torch 2.9.0 ends Python: the interpreter died of SIGABRT (libfoo: fatal)" in diagnosis["message"]
    assert diagnosis["fixes"][0]["command"].startswith(environment.python)
    assert {check["name"]: check["status"] for check in report["checks"]} == {"python": "wrong", "kernels": "skipped", "host": "ok"}
    assert environment.state() == before


def test_a_torch_that_never_comes_back(environment: Environment) -> None:
    environment.add("torch.__init__", "import time\ntime.sleep(1000)\n", "2.9.0", "torch")
    begun = time.monotonic()
    report, code = environment.check("--timeout", "2")
    assert time.monotonic() - begun < 15
    assert (rules(report), code) == (["env/import_slow"], 0)
    assert "not done after 2 s" in report["diagnoses"][0]["message"]


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("raise ImportError('flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi')", "env/torch_library"),
        ('raise ImportError("/lib/libc.so.6: version `GLIBC_2.38\' not found")', "env/torch_library"),
        ("import a_module_that_is_not_there", "env/package_broken"),
        ("raise RuntimeError('this build is for another planet')", "env/package_broken"),
        ("import sys; sys.exit('leaving')", "env/package_broken"),
        ("import os; os._exit(0)", "env/import_crash"),
    ],
)
def test_a_torch_that_cannot_be_imported(environment: Environment, code: str, rule: str) -> None:
    environment.add("torch.__init__", code, "2.9.0", "torch")
    report, exit_code = environment.check()
    assert (rules(report), exit_code) == ([rule], 1)
    assert "torch 2.9.0 " in report["diagnoses"][0]["message"]


def test_what_torch_says_of_itself(environment: Environment) -> None:
    environment.add("torch.__init__", FAKE_TORCH, "2.9.0+cu128", "torch")
    (environment.packages / "nvidia_nccl_cu12-2.27.5.dist-info").mkdir()
    (environment.packages / "flash_attn-2.8.3.dist-info").mkdir()
    saved = environment.folder.parent / "facts.json"
    environment.check("--save", str(saved))
    facts = json.loads(saved.read_text())["facts"]
    torch = next(fact["fields"] for fact in facts if fact["kind"] == "stack.torch")
    assert torch["version"] == "2.9.0+cu128"
    assert (torch["cuda"], torch["nccl"], torch["cudnn"], torch["archs"]) == ("12.8", "2.27.5", "9.10.2", ["sm_80", "sm_90", "compute_90"])
    assert (torch["available"], torch["text"]) == (False, "RuntimeError: Found no NVIDIA driver on your system.")
    packages = {fact["fields"]["package"]: fact["fields"]["version"] for fact in facts if fact["kind"] == "stack.package"}
    assert packages == {"torch": "2.9.0+cu128", "nvidia-nccl": "2.27.5", "flash-attn": "2.8.3"}


def test_a_package_beside_torch_that_crashes_costs_only_itself(environment: Environment) -> None:
    environment.add("torch.__init__", FAKE_TORCH, "2.9.0", "torch")
    environment.add("apex.__init__", "import os\nos.abort()\n", "0.1", "apex")
    environment.add("xformers.__init__", "", "0.0.33", "xformers")
    environment.add("xformers.ops", "raise ImportError('undefined symbol: _Znwm')", "")
    report, _ = environment.check()
    named = {each["rule"]: each["message"] for each in report["diagnoses"]}
    assert "apex 0.1" in named["env/import_crash"]
    assert "xformers 0.0.33" in named["env/package_abi"]  # looked at after the crash


def test_a_kernel_that_cannot_be_tried_is_no_fault(environment: Environment) -> None:
    """An error of the check itself, or of a library that it does not know, must not look like one of the machine."""
    environment.add("torch.__init__", FAKE_TORCH, "2.9.0", "torch")
    report, code = environment.check()
    assert (rules(report), code) == ([], 0)
    assert {check["name"]: check["status"] for check in report["checks"]}["kernels"] == "skipped"
    assert "fused adamw could not be tried: RuntimeError: no kernels here" in [skip["reason"] for skip in report["skips"]]


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memdoctor", "check", "--python", str(tmp_path / "none")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"memdoctor: --python {tmp_path}/none: no interpreter there; name the program, such as /opt/venv/bin/python\n"


def test_a_folder_stands_for_its_interpreter(environment: Environment) -> None:
    from memdoctor.sources.probes.interpreter import interpreter

    assert interpreter(str(environment.folder)) == environment.python
    assert interpreter(None) == sys.executable


def test_inside_is_one_file_of_the_standard_library() -> None:
    text = INSIDE.read_text(encoding="utf-8")
    top = re.findall(r"^(?:import|from) (\w+)", text, re.M)
    assert set(top) <= {"__future__", *sys.stdlib_module_names}
    assert "memdoctor" not in re.sub(r'""".*?"""', "", text, flags=re.S)


@pytest.mark.parametrize(
    "python", ["python3.7", "python3.8", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"]
)
def test_inside_runs_on_other_pythons(python: str, tmp_path: Path) -> None:
    try:
        version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        pytest.skip(f"no {python}")
    done = subprocess.run(
        [python, "-B", str(INSIDE), '{"stages": ["packages", "tools"]}'], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    assert version.split()[1] in [fact["fields"]["version"] for fact in facts if fact.get("kind") == "stack.python"]
    assert list(tmp_path.iterdir()) == []


def test_modules_beside_inside_hide_nothing(environment: Environment) -> None:
    """The folder of inside.py holds `kernels.py`-like names; a package of that name must still be found."""
    environment.add("network.__init__", "WHO = 'the package'")
    environment.add("torch.__init__", f"import network\nassert network.WHO == 'the package'\n{FAKE_TORCH}", "2.9.0", "torch")
    report, _ = environment.check()
    assert rules(report) == []


# --- with a real torch ----------------------------------------------------------------------------------------------------------

TORCH = os.environ.get("MEMDOCTOR_TORCH_PYTHON", sys.executable)  # an interpreter that has torch


@pytest.mark.slow
def test_a_real_torch_is_looked_at_in_less_than_two_imports(tmp_path: Path) -> None:
    def seconds(command: list[str]) -> float:
        begun = time.monotonic()
        subprocess.run(command, capture_output=True, check=True)
        return time.monotonic() - begun

    check = [sys.executable, "-m", "memdoctor", "check", "--python", TORCH]
    report = json.loads(subprocess.run([*check, "--format", "json"], capture_output=True, text=True, check=True).stdout)
    assert {each["name"]: each["status"] for each in report["checks"]}["kernels"] == "ok"
    assert rules(report) in ([], ["gpu/none"])
    imports = min(seconds([TORCH, "-c", "import torch"]) for _ in range(5))
    checks = min(seconds(check) for _ in range(5))
    assert checks <= 2 * imports


def program(folder: Path, text: str, name: str = "python") -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def check_with(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memdoctor", "check", "--only", "python", "--only", "kernels", "--python", python, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "#!/bin/sh\necho \"$@\" >> {log}\necho 'GNU bash, version 5.2'\n",
            "this is no Python; `{path} --version` says: GNU bash, version 5.2",
        ),
        ('#!/bin/sh\necho "$@" >> {log}\n', "this is no Python; `{path} --version` says: nothing"),
        ('#!/bin/sh\necho "$@" >> {log}\necho Python 3.6.15\n', "Python 3.6; memdoctor looks into Python 3.7 and later"),
        ('#!/bin/sh\necho "$@" >> {log}\necho Python 2.7.18 >&2\n', "Python 2.7; memdoctor looks into Python 3.7 and later"),
        ("\x7fELF garbage", "it cannot be started (Exec format error)"),
    ],
)
def test_what_is_no_python_is_asked_for_its_version_alone(tmp_path: Path, text: str, error: str) -> None:
    log = tmp_path / "log"
    path = program(tmp_path, text.replace("{log}", str(log)))
    done = check_with(path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"memdoctor: --python {path}: {error.replace('{path}', path)}\n"
    assert not log.exists() or log.read_text() == "--version\n"


def test_programs_that_are_here_and_no_python() -> None:
    for path in ("/bin/true", "/bin/bash", "/bin/sh"):
        assert check_with(path).returncode == 2


def test_an_interpreter_that_does_not_answer_costs_two_checks(tmp_path: Path) -> None:
    done = check_with(program(tmp_path, "#!/bin/sh\nexec sleep 1000\n"), "--timeout", "1")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())  # however the page is wrapped
    assert "--version was not answered within 1 s" in words
    assert words.endswith("Nothing could be looked at.")


LINES = [
    {"begin": "packages"}, {"kind": "stack.package", "path": "p", "excerpt": "torch 2.9.0", "fields": {"package": "torch", "version": "2.9.0", "state": "installed"}},
    {"end": "packages"}, {"begin": "torch"}, {"kind": "stack.torch", "path": "t", "excerpt": "torch", "fields": {"version": "2.9.0", "cuda": "12.8", "available": True, "devices": 8}},
    {"end": "torch"}, {"begin": "fused_adamw"}, {"kind": "kernel.run", "path": "torch", "excerpt": "", "fields": {"kernel": "torch fused AdamW", "package": "torch", "state": "ok", "device": "cpu"}},
    {"end": "fused_adamw"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("devices", "busy", "on_gpu", "reason"),
    [
        (8, ("GPU-1",), False, "nothing was run on a GPU: none is free"),
        (8, None, False, "nothing was run on a GPU: it is not known whether one is free"),
        (0, (), False, "nothing was run on a GPU: torch sees none"),
        (None, (), False, "nothing was run on a GPU: it is not known what torch sees of them"),
        (8, (), True, None),
    ],
)
def test_kernels_that_ran_on_no_gpu_are_said_to(tmp_path: Path, devices: int | None, busy: Any, on_gpu: bool, reason: str | None) -> None:
    from memdoctor.sources.probes import python as probes
    from memdoctor.sources.probes.notebook import Notebook
    from memdoctor.sources.probes.request import Request

    lines = json.loads(json.dumps(LINES))
    lines[4]["fields"]["devices"] = devices
    if on_gpu:
        lines.append({**lines[7], "fields": {**lines[7]["fields"], "device": "cuda"}})
    said = "\n".join(map(json.dumps, [*lines, *({"end": stage} for stage in probes.KERNEL_STAGES)]))
    path = program(tmp_path, f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
    book = Notebook("kernels", "here")
    probes.probe(None, book, Request(python=path, environ={"PATH": os.environ["PATH"]}, busy=busy, gpus=8))
    assert [skip.reason for skip in book.skips] == ([reason] if reason else [])
    assert all(skip.kinds == ("kernel.run",) for skip in book.skips)
