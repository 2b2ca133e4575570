"""GPUs: a child reads them through NVML (nvml.py), so that a driver that hangs or crashes costs one time limit, not the command."""

from __future__ import annotations

import glob
import os
import sys
from pathlib import Path
from typing import Any

import memdoctor
from memdoctor import units
from memdoctor.sources.probes import system
from memdoctor.sources.probes.child import Outcome, is_fact, run
from memdoctor.sources.probes.host import container
from memdoctor.sources.probes.notebook import Notebook, read_text
from memdoctor.sources.probes.nvml_asking import NO_PERMISSION
from memdoctor.sources.probes.request import Request

KINDS = ("gpu.driver", "gpu.count", "gpu.device", "gpu.pair", "gpu.process", "gpu.state", "gpu.error")
LIMIT = 15.0  # seconds
LIBRARY = "libnvidia-ml.so.1"
NVIDIA = "0x10de"
FIRST_PIDS = "pid:[4026531836]"  # the host's own name space of processes (PROC_PID_INIT_INO in Linux)
_COUNTING = ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "LOCAL_WORLD_SIZE")  # who says how many GPUs there should be, the surest first
_CONFINING = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "NVIDIA_VISIBLE_DEVICES")
# NVML's return codes that tell what is wrong with the whole driver -> name of the kind gpu.error
_ERRORS = {15: "lost", 16: "reset_required", 18: "nvml_mismatch", 999: "nvml_unknown"}
_GPU_ERRORS = {16: "reset_required", 18: "nvml_mismatch"}  # the same of one GPU; every other one means that it is lost
_NO_DRIVER = {9: "the NVIDIA driver is installed, but not loaded", 12: f"there is no NVIDIA driver here ({LIBRARY} was not found)"}


def probe(notes: Notebook, request: Request) -> None:
    if not has_library(request):
        notes.skip(_NO_DRIVER[12], *(kind for kind in KINDS if kind not in ("gpu.count", "gpu.error")))
        _note_count(notes, request, 0, _NO_DRIVER[12])
        return
    limit = request.timeout or LIMIT
    environ = {**request.environ, "PYTHONPATH": str(Path(memdoctor.__file__).parents[1])}
    outcome = run([sys.executable, "-B", "-P", "-m", "memdoctor.sources.probes.nvml"], timeout=limit, environ=environ)
    found, reason, complete = take(notes, outcome)
    if found is not None:
        _note_count(notes, request, found, reason)
    if not complete:
        where = next((str(line["at"]) for line in reversed(outcome.lines) if "at" in line), "its start")
        what = f"NVML did not answer within {limit:g} s at {where}" if outcome.timed_out else f"NVML failed at {where}"
        ended = outcome.ended()
        # A driver that kills the process, or never answers, is at fault; a Python that ends with an error of its own is memdoctor's.
        if not outcome.failed and (outcome.timed_out or (outcome.code or 0) < 0):
            excerpt = f"{what}{f'; {ended}' if ended else ''}"
            notes.add(
                "gpu.error",
                path="NVML",
                excerpt=excerpt.removeprefix("NVML "),
                name="no_answer" if outcome.timed_out else "crashed",
                text=f"{what}{_last_line(outcome)}",
            )
        notes.skip(f"{what}{f'; {ended}' if ended else ''}{_last_line(outcome)}", *KINDS)


def has_library(request: Request) -> bool:
    """False where the driver's library is on no search path: then nothing needs to be started."""
    folders = [
        *request.environ.get("LD_LIBRARY_PATH", "").split(":"),
        "/usr/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib/wsl/lib",
    ]
    if any(folder and os.path.exists(f"{folder}/{LIBRARY}") for folder in folders):
        return True
    try:
        with open("/etc/ld.so.cache", "rb") as file:
            return LIBRARY.encode() in file.read()
    except OSError:
        return True  # a system without a cache: let the loader say


def _note_count(notes: Notebook, request: Request, found: int, reason: str | None) -> None:
    pci = pci_gpus(request.root)
    inside = container(request.root, dict(request.environ)) is not None
    confined = any(request.environ.get(name) not in (None, "", "all") for name in _CONFINING)
    excerpt = f"lists {found}, the PCI bus {'unknown' if pci is None else pci}" + (f": {reason}" if reason else "")
    claims = [f"{name}={request.environ[name]}" for name in _COUNTING if request.environ.get(name)] or None
    notes.add(
        "gpu.count", path="NVML", excerpt=excerpt, found=found, pci=pci, container=inside, confined=confined, reason=reason, claims=claims
    )


def take(notes: Notebook, outcome: Outcome) -> tuple[int | None, str | None, bool]:
    """Note what the child printed; returns how many GPUs there are (None: unknown), why there are none, and whether it came to its end."""
    found: int | None = None
    reason: str | None = None
    processes: list[dict[str, Any]] = []
    texts = _lost_texts(outcome)
    complete = refused = False
    for line in outcome.lines:
        if "count" in line:
            found = int(line["count"])
        elif "init" in line:
            code = int(line["init"])
            reason = str(line.get("text", "")) if line.get("unloaded") else _NO_DRIVER.get(code) or str(line.get("text", ""))
            if code in _ERRORS:
                notes.add("gpu.error", path="NVML", excerpt=f"nvmlInit: {reason} (code {code})", name=_ERRORS[code], text=reason, code=code)
            if code in _NO_DRIVER:
                found = 0
            notes.skip(reason, *(kind for kind in KINDS if kind not in ("gpu.count", "gpu.error")))
            complete = True
        elif "unread" in line:
            whole = "," not in str(line["unread"])
            notes.skip(f"{line['unread']} could not be read: {line.get('text')}", *(("gpu.device",) if whole else ()))
        elif line.get("code") == NO_PERMISSION:
            refused = True
            notes.skip(f"GPU {line.get('lost')} may not be looked at: {line.get('text')}")
        elif "lost" in line:
            gpu = int(line["lost"])
            place = f" at {line['bus_id']}" if line.get("bus_id") else ""
            notes.add(
                "gpu.error", path=f"NVML, GPU {gpu}", excerpt=f"{line.get('call')}{place}: {line.get('text')} (code {line.get('code')})",
                name=_GPU_ERRORS.get(int(line.get("code", 999)), "lost"), gpu=gpu, text=texts, code=line.get("code"),
            )  # fmt: skip
        elif is_fact(line) and line["kind"] == "gpu.process":
            processes.append(line["fields"])
        elif is_fact(line):
            notes.add(str(line["kind"]), path=str(line.get("path", "NVML")), excerpt=str(line.get("excerpt", "")), fields=line["fields"])
        elif "done" in line:
            complete = True
    if complete and found == 0 and reason is None and not refused:
        notes.skip("the driver lists no GPU", *(kind for kind in KINDS if kind not in ("gpu.driver", "gpu.count", "gpu.error")))
    _note_processes(notes, processes)
    return found, reason, complete


def _lost_texts(outcome: Outcome) -> str:
    """What the driver says of the GPUs that do not answer; which of them says what, where they do not say the same."""
    said: dict[str, list[int]] = {}
    for line in outcome.lines:
        if "lost" in line and line.get("code") != NO_PERMISSION:
            said.setdefault(str(line.get("text")), []).append(int(line["lost"]))
    return next(iter(said), "") if len(said) < 2 else "; ".join(f"{units.format_ranks(gpus)}: {text}" for text, gpus in said.items())


def _note_processes(notes: Notebook, processes: list[dict[str, Any]]) -> None:
    """NVML counts processes as the host does: inside a container the same number is another program, unless that one has the driver open.

    Whatever is seen not to have it open holds nothing of a GPU, wherever that is.
    """
    here = system.processes({int(fields["of_pid"]) for fields in processes}) if processes else {}
    own_numbers = not _has_own_pids()
    for fields in processes:
        process = here.get(int(fields["of_pid"]))
        known: dict[str, Any] = {}
        uses = system.uses_gpu(process.pid) if process is not None else False
        if process is not None and (uses or (uses is None and own_numbers and process.pid != 1)):
            orphan = process.parent == 1 and os.getpid() != 1 and not process.zombie
            known = {"command": process.command, "user": process.user, "age": process.age, "orphan": orphan, "mine": process.mine}
            known |= {"zombie": process.zombie or None, "parent": process.parent, "seen": True}
        else:
            known = {"seen": False}
        size = f", {fields['memory'] // 2**20} MiB" if fields.get("memory") else ""
        excerpt = f"process {fields['of_pid']}{size}: {known.get('command') or 'not visible from here'}"
        notes.add("gpu.process", path=f"NVML, GPU {fields['gpu']}", excerpt=excerpt, fields=fields, **known)


def _has_own_pids() -> bool:
    """True in a container that counts its processes anew; what cannot be told counts as one."""
    try:
        return os.readlink("/proc/self/ns/pid") != FIRST_PIDS
    except OSError:
        return True


def pci_gpus(root: str = "") -> int | None:
    """NVIDIA GPUs on the PCI bus, without those given to virtual machines; None where sysfs does not show the bus."""
    folder = f"{root}/sys/bus/pci/devices"
    if not os.path.isdir(folder):
        return None
    number = 0
    for device in glob.glob(f"{folder}/*"):
        if (read_text(f"{device}/vendor") or "").strip() != NVIDIA or not (read_text(f"{device}/class") or "").startswith("0x03"):
            continue
        driver = os.path.basename(os.path.realpath(f"{device}/driver")) if os.path.islink(f"{device}/driver") else ""
        number += driver != "vfio-pci"
    return number


def _last_line(outcome: Outcome) -> str:
    lines = [line for line in outcome.stderr.strip().splitlines() if line.strip()]
    return f" ({lines[-1].strip()[:200]})" if lines and not outcome.timed_out else ""
