"""Places where a job writes: room, files, read-only mounts. Apart from the other readings because a dead network file system hangs."""

from __future__ import annotations

import contextlib
import errno
import os
import re

from memdoctor import units
from memdoctor.sources.probes.notebook import Notebook, read_text, say
from memdoctor.sources.probes.request import Request

KINDS = ("host.disk",)


def probe(notes: Notebook, request: Request) -> None:
    mounts = read_text("/proc/self/mounts") or ""
    seen: set[tuple[int, bool]] = set()
    closed: set[str] = set()
    environ = dict(request.environ)
    for name, path in places(environ).items():
        notes.at = path
        missing = name == "tmp" and bool(environ.get("TMPDIR")) and not os.path.isdir(path)
        if missing:
            notes.add("host.disk", path=path, excerpt=f"TMPDIR={path}: no such folder", name=name, path_=path, missing=True)
        there = _existing(path)
        try:
            status, stats = os.stat(there), os.statvfs(there)
        except OSError as error:
            notes.skip(f"{path}: {say(error)}")
            continue
        read_only = bool(stats.f_flag & os.ST_RDONLY)
        if name != "work" and not (read_only or missing or there in closed or _writable(there)):
            closed.add(there)
            notes.add(
                "host.disk", path=there, excerpt=f"{there}: {say(PermissionError(errno.EACCES, os.strerror(errno.EACCES)))}",
                name=name, path_=there, unwritable=True,
            )  # fmt: skip
        if (status.st_dev, read_only) in seen:
            continue
        seen.add((status.st_dev, read_only))
        if not stats.f_blocks:
            notes.skip(f"{path} lies on a file system that tells no size ({_filesystem(mounts, there) or 'unknown'})")
            continue
        size, free = stats.f_blocks * stats.f_frsize, stats.f_bavail * stats.f_frsize
        filesystem = _filesystem(mounts, there)
        excerpt = f"{units.format_size(free)} of {units.format_size(size)} free" + (f" ({filesystem})" if filesystem else "")
        notes.add(
            "host.disk", path=path, excerpt=excerpt + (", mounted read-only" if read_only else ""), name=name, path_=path, filesystem=filesystem,
            size=size, free=free, files_free=stats.f_favail if stats.f_files else None, read_only=read_only,
        )  # fmt: skip
    notes.at = ""


def places(environ: dict[str, str]) -> dict[str, str]:
    """name -> folder, the ones that matter most first; several may lie on one file system."""
    home = environ.get("HOME") or os.path.expanduser("~")
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    named = {
        "tmp": environ.get("TMPDIR") or "/tmp",
        "cache": cache,
        "extensions": environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(cache, "torch_extensions"),
        "triton": environ.get("TRITON_CACHE_DIR") or os.path.join(home, ".triton"),
        "huggingface": environ.get("HF_HOME") or os.path.join(cache, "huggingface"),
        "home": home,
    }
    with contextlib.suppress(OSError):  # the working folder may be deleted
        named["work"] = os.getcwd()
    return named


def _existing(path: str) -> str:
    """``path``, or the nearest folder above it that is there."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _writable(folder: str) -> bool:
    """Whether this user, as which jobs run, may make files in ``folder``."""
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def _filesystem(mounts: str, path: str) -> str | None:
    """The type of the file system that ``path`` lies on."""
    path = os.path.realpath(path)
    best, type_ = "", None
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        place = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), parts[1])
        if (path == place or path.startswith(place.rstrip("/") + "/")) and len(place) >= len(best):
            best, type_ = place, parts[2]
    return type_
