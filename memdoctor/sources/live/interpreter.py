"""Whether a process is Python at all: only then has it a Python stack."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NAME = re.compile(r"(?:python|pypy)[\d.]*[a-z]*(?: \(deleted\))?")
_LOADED = re.compile(r"/(?:lib(?:python|pypy)[\d.a-z]*\.so|[^/\n]*\.cpython-\d+[^/\n]*\.so)")
MOST = 8  # processes that are offered in place of one


def program(folder: Path) -> str:
    """The file name of the program that the process of ``folder`` (/proc/PID) runs; "" where that is not told."""
    try:
        return os.path.basename(os.readlink(folder / "exe"))
    except OSError:
        return ""


def runs_python(folder: Path) -> bool | None:
    """Whether the process is Python, by its program or by the libraries that it has loaded; None where that may not be seen."""
    name = program(folder)
    if _NAME.fullmatch(name):
        return True
    try:
        maps = (folder / "maps").read_text("utf-8", "replace")
    except OSError:
        return None
    if not name or not maps:  # a process that has just ended, or one of the kernel
        return None
    return _LOADED.search(maps) is not None


def below(pid: int, proc: Path = Path("/proc")) -> list[int]:
    """The topmost Python processes that descend from ``pid``, at most MOST of them."""
    found: list[int] = []
    todo = _children(pid, proc)
    while todo and len(found) < MOST:
        child = todo.pop(0)
        if runs_python(proc / str(child)):
            found.append(child)
        else:
            todo += _children(child, proc)
    return sorted(found)


def _children(pid: int, proc: Path) -> list[int]:
    found: list[int] = []
    for thread in (proc / str(pid) / "task").glob("*/children"):
        try:
            found += [int(word) for word in thread.read_text().split()]
        except (OSError, ValueError):
            continue
    return found
