"""Small files in the user's cache folder: what took long to make once need not be made at every start.

Only the owner can change what is kept, and data is kept as JSON, so that a file which somebody managed to change there holds wrong data at
worst. Whatever goes wrong, there is nothing: a cache must never be the reason why nothing works.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from typing import Any

from memdoctor import resources

KEEP = 4  # states of one kind: of a few versions side by side


def get(kind: str, state: str) -> Any:
    """What was kept of ``kind`` in this state; None where nothing is."""
    data = get_bytes(kind, f"{state}.json") if state else None
    try:
        return None if data is None else json.loads(data)
    except Exception:
        return None


def put(kind: str, state: str, value: Any) -> None:
    """Keep ``value``; older states are removed. Does nothing where that is not possible."""
    with contextlib.suppress(Exception):
        if state:
            put_bytes(kind, f"{state}.json", json.dumps(value, separators=(",", ":")).encode())


def get_bytes(kind: str, name: str) -> bytes | None:
    """The file ``name`` of ``kind``; None where there is none, or it is not the user's alone."""
    try:
        descriptor = os.open(resources.cache_path(f"{kind}-{name}"), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022 or not stat.S_ISREG(status.st_mode)):
                return None
            return file.read()
    except Exception:
        return None


def put_bytes(kind: str, name: str, data: bytes) -> None:
    """Keep a file; the oldest of its kind are removed. Does nothing where that is not possible."""
    with contextlib.suppress(Exception):
        import tempfile

        from memdoctor.interrupts import Held

        folder = resources.cache_dir()
        with Held():
            descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f"{kind}-", suffix=".tmp")  # mode 0600
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.replace(temporary, folder / f"{kind}-{name}")
            except BaseException:
                os.unlink(temporary)
                raise
        kept = sorted(folder.glob(f"{kind}-*{os.path.splitext(name)[1]}"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-KEEP]:
            path.unlink()
