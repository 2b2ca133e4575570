"""A made-up NVIDIA driver library, built once for a test session; see nvml.c for its settings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Result:
    report: dict[str, Any]
    code: int
    seconds: float

    @property
    def rules(self) -> list[str]:
        return sorted(each["rule"] for each in self.report["diagnoses"])

    def diagnosis(self, rule: str) -> dict[str, Any]:
        return next(each for each in self.report["diagnoses"] if each["rule"] == rule)


@dataclass(frozen=True)
class Driver:
    folder: Path

    def environ(self, **settings: object) -> dict[str, str]:
        """The environment of a machine with this driver and nothing else that matters."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME", "LANG") if name in os.environ}
        return {**kept, "LD_LIBRARY_PATH": str(self.folder), **{f"STANDIN_{name}": str(value) for name, value in settings.items()}}

    def check(self, *arguments: str, variables: dict[str, str] | None = None, **settings: object) -> Result:
        """`memdoctor check --only gpu --format json` against the driver."""
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "memdoctor", "check", "--only", "gpu", "--format", "json", *arguments],
            env={**self.environ(**settings), **(variables or {})}, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return Result(json.loads(done.stdout), done.returncode, time.monotonic() - begun)


def build(folder: Path, *options: str) -> Driver:
    """Compile nvml.c with ``options``; the test is skipped where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = Path(__file__).with_name("nvml.c")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, *options, "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(library), str(source)], check=True)
    return Driver(folder)
