"""Reading several logs at a time, each in one of a few processes."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memdoctor.errors import MemdoctorError
from memdoctor.sources.logs.one_log import LogReader, Numbered, OnBytes, Outcome, in_turn

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

WORTH = 67_108_864  # bytes as stored for which one more process pays
MOST = 8  # processes, where nobody says how many
BATCH = 4_194_304  # bytes handed to a process at a time ...
FILES = 64  # ... in at most so many logs
POLL = 0.1  # seconds from one look at how far the processes are to the next


class Workers:
    """The engine that reads with ``count`` processes; with None, with as many as there are processors and the logs are worth.

    Reads in turn where a log is no regular file (its bytes come once), or where the system gives no processes.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = count

    def __call__(self, read: LogReader, logs: Sequence[Numbered], on_bytes: OnBytes | None) -> Generator[Outcome, None, None]:
        sizes = _sizes(logs) if self._count != 1 and len(logs) > 1 else None
        count = 1 if sizes is None else min(len(logs), self._count or _worth(sizes))
        if sizes is None or count == 1:
            return in_turn(read, logs, on_bytes)
        return _in_processes(read, logs, _batches(logs, sizes), count, on_bytes)


def _worth(sizes: Sequence[int]) -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(processors, MOST, sum(sizes) // WORTH))


def _sizes(logs: Sequence[Numbered]) -> list[int] | None:
    """Bytes of each log; None where one is no regular file."""
    sizes = []
    for _, file in logs:
        try:
            found = os.stat(file.opened or file.path)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        sizes.append(found.st_size)
    return sizes


def _batches(logs: Sequence[Numbered], sizes: Sequence[int]) -> list[list[Numbered]]:
    batches: list[list[Numbered]] = []
    held = BATCH
    for log, size in zip(logs, sizes, strict=True):
        if held >= BATCH or len(batches[-1]) >= FILES:
            batches.append([])
            held = 0
        batches[-1].append(log)
        held += size
    return batches


def _in_processes(
    read: LogReader, logs: Sequence[Numbered], batches: Sequence[list[Numbered]], count: int, on_bytes: OnBytes | None
) -> Generator[Outcome, None, None]:
    import multiprocessing
    import threading
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # What is forked needs no start of its own; but other threads do not bear it, nor do the libraries of other systems.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn")
    others = set(multiprocessing.active_children())
    pool: ProcessPoolExecutor | None = None
    done = False
    try:
        try:
            with _no_interrupts():  # as its processes inherit: only this one hears Ctrl-C, and ends them
                progress = context.Value("Q", 0)
                pool = ProcessPoolExecutor(count, context, initializer=_begin, initargs=(read, progress))
                futures = deque(pool.submit(_read, batch) for batch in batches)
        except (OSError, ImportError, NotImplementedError):  # no processes or no semaphores to be had
            _end(pool, others)
            pool = None
            yield from in_turn(read, logs, on_bytes)
        else:
            told = 0
            while futures:
                future = futures.popleft()
                told = _follow(future, progress, told, on_bytes)
                yield from future.result()
        done = True
    except BrokenProcessPool as error:
        raise MemdoctorError(
            "a process that read logs was ended from outside, for want of memory perhaps: --workers 1 reads one after the other"
        ) from error
    finally:
        if pool is not None and not done:
            _end(pool, others)
        elif pool is not None:
            pool.shutdown()


def _follow(future: Future[list[Outcome]], progress: Any, told: int, on_bytes: OnBytes | None) -> int:
    """Wait until ``future`` is done; meanwhile pass on how many bytes were read since ``told``."""
    from concurrent.futures import wait

    while on_bytes is not None:
        over = bool(wait([future], timeout=POLL).done)
        now = progress.value
        if now > told:
            on_bytes(now - told)
            told = now
        if over:
            break
    return told


def _end(pool: ProcessPoolExecutor | None, others: set[Any]) -> None:
    """End all processes of ``pool`` at once, whatever they do; ``others`` are not among them."""
    import multiprocessing

    for process in set(multiprocessing.active_children()) - others:
        process.terminate()
    if pool is not None:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    import signal

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in a process of the pool -------------------------------------------------------------------------------------------

_reader: tuple[LogReader, Any] | None = None


def _begin(read: LogReader, progress: Any) -> None:
    import multiprocessing
    import threading

    global _reader
    _reader = (read, progress)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def _read(batch: Sequence[Numbered]) -> list[Outcome]:
    assert _reader is not None
    read, progress = _reader

    def on_bytes(size: int) -> None:
        with progress.get_lock():
            progress.value += size

    outcomes = list(read.some(batch, on_bytes))
    for outcome in outcomes:
        outcome.store.settle()
    return outcomes
