"""All probes at once, each in a thread of its own: one that hangs or fails costs its time limit and its own facts. The door of this package."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from memdoctor.errors import InputError, MemdoctorError
from memdoctor.model import Fact, Skip
from memdoctor.records import record
from memdoctor.sources.probes import disks, gpu, host, locks, network, python, variables, xids
from memdoctor.sources.probes.notebook import Notebook, host_name, say
from memdoctor.sources.probes.request import Request

LIGHT = 10.0  # seconds for a probe that only reads files; more only where a file system or a name server hangs
GRACE = 4.0  # seconds beyond its own limit that a probe with a child gets to clean up
BUSY_SHARE = 0.1  # of a GPU's memory: above it nothing is run on it


@record
class Probe:
    """``limit`` is in seconds; ``run`` None: it is done together with another one."""

    name: str
    what: str
    kinds: tuple[str, ...]
    limit: float
    run: Callable[[Notebook, Request], None] | None = None


PROBES: Mapping[str, Probe] = {
    probe.name: probe
    for probe in (
        Probe("host", "memory, /dev/shm, CPUs, limits of a process, kernel parameters", host.KINDS, LIGHT, host.probe),
        Probe("disks", "room in the places where a job writes", disks.KINDS, LIGHT, disks.probe),
        Probe(
            "gpu", "GPUs through the NVIDIA driver: memory, errors, clocks, links, who holds them", gpu.KINDS, gpu.LIMIT + GRACE, gpu.probe
        ),
        Probe("xids", "Xids in the kernel log of this boot", xids.KINDS, LIGHT, xids.probe),
        Probe("python", "torch and the packages around it, compilers, CUDA libraries", python.STACK_KINDS, python.LIMIT + GRACE),
        Probe("kernels", "fused kernels, tried on tiny tensors", python.KERNEL_KINDS, python.LIMIT + GRACE),
        Probe("locks", "locks that a killed build of an extension left behind", locks.KINDS, LIGHT, locks.probe),
        Probe("variables", "environment variables of NCCL, PyTorch, CUDA and the launchers", variables.KINDS, LIGHT, variables.probe),
        Probe("network", "interfaces, RDMA devices, MASTER_ADDR and MASTER_PORT", network.KINDS, LIGHT, network.probe),
    )
}


@record
class Collected:
    """What the probes of one host yielded. ``ran`` are the names of those that were asked for."""

    host: str
    facts: tuple[Fact, ...]
    skips: tuple[Skip, ...]
    ran: tuple[str, ...]
    expect_gpus: int | None = None


def chosen(only: Sequence[str]) -> tuple[str, ...]:
    """The probes to run, in their order. Raises InputError for a name that is none."""
    for name in only:
        if name not in PROBES:
            raise InputError(f"--only {name}: there is no such check; there are: {', '.join(PROBES)}")
    return tuple(name for name in PROBES if not only or name in only)


def collect(names: Sequence[str], request: Request) -> Collected:
    """Run the probes and wait for each as long as it may take."""
    here = host_name()
    books = {name: Notebook(name, here) for name in names}
    begun = time.monotonic()
    threads = {name: _start(books[name], request, probe.run) for name, probe in PROBES.items() if name in books and probe.run is not None}
    if "python" in books or "kernels" in books:
        stack, kernels = books.get("python"), books.get("kernels")
        # Where to try kernels is known once the GPUs are, and a driver that hangs must not be asked twice.
        gpus = books.get("gpu") or Notebook("gpu", here)
        asking = threads.get("gpu") or _start(gpus, request, gpu.probe)
        asking.join((request.timeout or gpu.LIMIT) + GRACE)
        answers = not asking.is_alive() and not any(fact.get("name") in ("no_answer", "crashed") for fact in gpus.facts)
        known = sum(fact.kind == "gpu.device" for fact in gpus.facts)
        request = replace(request, cuda=answers, busy=_busy(gpus) if answers else None, gpus=known)
        thread = _start(stack or kernels or gpus, request, lambda _, request: python.probe(stack, kernels, request), kernels)
        threads.update({name: thread for name in ("python", "kernels") if name in books})
    facts: list[Fact] = []
    skips: list[Skip] = []
    for name in names:
        limit = _limit(name, request)
        threads[name].join(max(0.0, limit + begun - time.monotonic()))
        book = books[name]
        if threads[name].is_alive():
            where = f" at {book.at}" if book.at else ""
            book.skip(f"it did not end within {limit:g} s{where}", *PROBES[name].kinds)
        facts += book.facts
        skips += book.skips
    numbered = tuple(replace(fact, seq=number) for number, fact in enumerate(facts))
    return Collected(here, numbered, tuple(dict.fromkeys(skips)), tuple(names), request.expect_gpus)


def _limit(name: str, request: Request) -> float:
    if name in ("python", "kernels"):
        return python.limit_of(request) + (request.timeout or gpu.LIMIT) + 2 * GRACE  # it begins when the GPUs have answered
    return PROBES[name].limit if request.timeout is None else request.timeout + GRACE


def _start(book: Notebook, request: Request, run: Callable[[Notebook, Request], None], *further: Notebook | None) -> threading.Thread:
    def call() -> None:
        try:
            run(book, request)
        except MemdoctorError:
            raise
        except Exception as error:  # a fault of ours in one probe must not cost the others
            for one in (book, *further):
                if one is not None:
                    one.skip(f"failed{f' at {one.at}' if one.at else ''}: {say(error)}", *PROBES[one.probe].kinds)

    thread = threading.Thread(target=call, name=f"probe {book.probe}", daemon=True)
    thread.start()
    return thread


def _busy(book: Notebook) -> tuple[str, ...] | None:
    """UUIDs of GPUs that somebody uses; None where that is not known."""
    devices = [fact.fields for fact in book.facts if fact.kind == "gpu.device"]
    if any("used" not in fields or "uuid" not in fields for fields in devices):
        return None
    return tuple(
        str(fields["uuid"])
        for fields in devices
        if fields.get("processes") or fields["used"] - (fields.get("reserved") or 0) > BUSY_SHARE * fields.get("memory", 1)
    )
