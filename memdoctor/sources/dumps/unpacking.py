"""From the bytes of a dump to plain dictionaries, lists, text and numbers; nothing in the bytes can make anything else happen.

A pickle is a small program. This reader gives it no class and no function to name, so nothing can be called, and no more memory than
dumps need.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import pickle
from collections.abc import Iterator
from typing import Any, NoReturn

MOST_BYTES = 256 << 20  # of one file; a ring of 100,000 operations with deep stacks takes some 50 MiB
_ROOM = 1 << 30  # bytes of memory that a small file may take beyond what the process holds
_BUFFER = 1 << 20  # an unpickler asks a stream that can be looked ahead into for large pieces, any other for a few bytes at a time
_FACTOR = 40  # and what a large one may: bytes of memory for each byte of file; real dumps need about 5


class NotADump(Exception):
    """The bytes are not (or no longer) a dump; the text says why, for a person."""


class _Plain(pickle.Unpickler):
    """An unpickler that knows no class: the first name of one ends the reading."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        name = f"{module_name}.{global_name}"[:100]
        raise NotADump(f"refused: it is a pickle that asks for {name!r}, which a flight recorder never does; nothing of it was run")

    def persistent_load(self, pid: Any, /) -> NoReturn:
        raise NotADump("refused: it is a pickle that asks for an object from outside, which a flight recorder never does")


def unpack(data: bytes) -> Any:
    """What ``data`` holds: a pickle, or JSON. Raises NotADump."""
    if not data:
        raise NotADump("empty: the rank did not get to write its dump")
    try:
        with _bounded(_ROOM + _FACTOR * len(data)):
            if data[:1] == b"\x80":
                return _Plain(io.BufferedReader(io.BytesIO(data), _BUFFER)).load()
            if data[:64].lstrip()[:1] in (b"{", b"["):
                return json.loads(data)
    except NotADump:
        raise
    except (EOFError, json.JSONDecodeError) as error:
        raise NotADump(f"cut off or damaged: {_said(error)}") from error
    except RecursionError as error:
        raise NotADump("refused: it is nested deeper than a dump can be") from error
    except MemoryError as error:
        raise NotADump("refused: it would take far more memory than a dump of its size can need") from error
    except (
        Exception
    ) as error:  # what a damaged pickle raises is not known beforehand: UnpicklingError, KeyError, ValueError, TypeError, ...
        raise NotADump(f"cut off or damaged: {_said(error)}") from error
    raise NotADump("not a flight-recorder dump: neither a pickle nor JSON")


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return (text if text.isprintable() else ascii(text))[:100] or type(error).__name__


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Without the collector of cycles, which would look again and again at a million fresh objects that are all in use."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def _bounded(extra: int) -> Iterator[None]:
    """At most ``extra`` bytes of address space more than now, where the system can hold a process to that (a few bytes of pickle can ask for
    gigabytes)."""
    try:
        import resource

        with open("/proc/self/statm", "rb") as stream:
            held = int(stream.read().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        limits = [held + extra, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    except (ImportError, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
