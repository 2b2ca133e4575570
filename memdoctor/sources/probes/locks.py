"""Locks that a killed build of a JIT extension left behind: every later run waits for them without a word."""

from __future__ import annotations

import os
import time

from memdoctor import units
from memdoctor.sources.probes import system
from memdoctor.sources.probes.notebook import Notebook
from memdoctor.sources.probes.request import Request

KINDS = ("host.lock",)
BUILDERS = ("ninja", "nvcc", "cicc", "ptxas", "cc1plus", "c++", "g++", "clang++", "hipcc")
DEEPEST = 3  # <cache>/<python and CUDA>/<extension>/lock


def probe(notes: Notebook, request: Request) -> None:
    locks = find_locks(extensions_dir(request))
    builders = system.commands_running(BUILDERS) if locks else []
    for path, age in locks:
        op = os.path.basename(os.path.dirname(path))
        running = f"; running now: {', '.join(builders)}" if builders else "; no compiler is running"
        notes.add(
            "host.lock",
            path=path,
            excerpt=f"lock of {op}, {units.format_duration(age)} old{running}",
            op=op,
            path_=path,
            age=age,
            builder=bool(builders),
        )


def extensions_dir(request: Request) -> str:
    """Where torch.utils.cpp_extension builds."""
    home = request.environ.get("HOME") or os.path.expanduser("~")
    cache = request.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return request.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(cache, "torch_extensions")


def find_locks(top: str) -> list[tuple[str, float]]:
    """(path, age in seconds) of every ``lock`` below ``top``."""
    found = []
    depth = top.rstrip(os.sep).count(os.sep)
    for folder, names, files in os.walk(top):
        if folder.count(os.sep) - depth >= DEEPEST:
            names.clear()
        if "lock" in files:
            path = os.path.join(folder, "lock")
            try:
                found.append((path, max(0.0, time.time() - os.path.getmtime(path))))
            except OSError:
                continue
    return sorted(found)
