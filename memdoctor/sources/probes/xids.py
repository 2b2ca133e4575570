"""Xids in the kernel log of this boot: from /dev/kmsg, else from the journal, else from the files of syslog."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator

from memdoctor.records import record
from memdoctor.sources.probes.child import run_text
from memdoctor.sources.probes.notebook import Notebook, read_text, say
from memdoctor.sources.probes.request import Request

KINDS = ("gpu.xid",)
LIMIT = 5.0  # seconds that the journal may take
FILES = ("/var/log/kern.log", "/var/log/messages", "/var/log/syslog")
TAIL = 8 << 20  # bytes of such a file
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\)[^:]*: (\d+),\s*(.{0,300})")
_FALLEN = re.compile(r"NVRM: .{0,40}GPU ([0-9a-fA-F:.]+).{0,60}fallen off the bus")
_RECORD = re.compile(r"\d+,\d+,(\d+),[^;]*;(.*)")
_JOURNAL = re.compile(r"(\d+\.\d+) \S+ kernel: (.*)")


@record
class Line:
    """A line of the kernel; ``age`` in seconds, None where the log does not tell."""

    age: float | None
    text: str


def probe(notes: Notebook, request: Request) -> None:
    source, lines = kernel_log(request)
    if lines is None:
        has_driver = os.path.isdir(f"{request.root}/proc/driver/nvidia")
        notes.skip(source if has_driver else f"there is no NVIDIA driver, and {source}", *KINDS)
        return
    for (number, bus), found in group(lines).items():
        ages = [line.age for line in found if line.age is not None]
        notes.add(
            "gpu.xid", path=source, excerpt=found[-1].text, number=number, bus_id=bus, age=min(ages, default=None), times=len(found)
        )  # fmt: skip


def group(lines: Iterable[Line]) -> dict[tuple[int, str], list[Line]]:
    """The lines of each (Xid, GPU), in order. A GPU that has fallen off the bus counts as Xid 79, however that is said."""
    found: dict[tuple[int, str], list[Line]] = {}
    for line in lines:
        match = _XID.search(line.text)
        if match is not None:
            found.setdefault((int(match[2]), match[1].lower()), []).append(line)
        elif (match := _FALLEN.search(line.text)) is not None:
            found.setdefault((79, match[1].lower().rstrip(":").removesuffix(".0")), []).append(line)
    return found


def kernel_log(request: Request) -> tuple[str, list[Line] | None]:
    """Where the log was read and its lines, or why it cannot be read and None."""
    try:
        return "/dev/kmsg", list(_kmsg(f"{request.root}/dev/kmsg"))
    except OSError as error:
        problem = say(error)
    if request.root == "" and shutil.which("journalctl"):
        command = ["journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-unix", "-g", "NVRM"]
        code, text = run_text(command, timeout=request.timeout or LIMIT, environ=request.environ)
        lines = [Line(time.time() - float(match[1]), match[2]) for match in map(_JOURNAL.match, text.splitlines()) if match]
        if lines or (code in (0, 1) and _may_read_journal()):
            return "journalctl -k", lines
    for path in FILES:
        end = _tail(request.root + path)
        if end is not None:
            return path, [Line(None, line) for line in end.splitlines() if "NVRM" in line]
    return f"the kernel log may not be read here ({problem}); as root: dmesg | grep -i xid", None


def _kmsg(path: str) -> Iterator[Line]:
    """The kernel's own buffer; it may be gone through without waiting."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        empty = True
        now = time.clock_gettime(time.CLOCK_MONOTONIC) if hasattr(time, "CLOCK_MONOTONIC") else None
        for _ in range(200_000):
            try:
                record = os.read(descriptor, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:  # records were overwritten meanwhile
                continue
            if not record:
                break
            empty = False
            match = _RECORD.match(record.decode("utf-8", "replace"))
            if match is not None and "NVRM" in match[2]:
                yield Line(None if now is None else max(0.0, now - int(match[1]) / 1e6), match[2])
    finally:
        os.close(descriptor)
    if empty:  # a container's stand-in for it; the kernel's own always holds something
        raise OSError(None, "it is empty", path)


def _may_read_journal() -> bool:
    """An empty answer means "no Xid" only for somebody who may see the kernel's messages."""
    import grp

    if os.geteuid() == 0:
        return True
    names = set()
    for number in os.getgroups():
        try:
            names.add(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    return bool(names.intersection(("systemd-journal", "adm", "wheel")))


def _tail(path: str) -> str | None:
    try:
        size = os.path.getsize(path)
    except OSError:
        return None
    if size <= TAIL:
        return read_text(path, TAIL)
    try:
        with open(path, "rb") as file:
            file.seek(size - TAIL)
            return file.read(TAIL).decode("utf-8", "replace")
    except OSError:
        return None
