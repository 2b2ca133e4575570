"""Asking NVML about one GPU: calls that it does not know are None, and a GPU that gives no more answers is told at once.

What goes wrong between pynvml and the library (a symbol that an older driver lacks, a text that is none) is no word of the GPU's: it costs
the one reading.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

# Return codes after which a GPU gives no more answers: lost, reset required. Where not even a handle can be had, every code means so.
GONE = (15, 16)
NO_PERMISSION, NO_LIBRARY = 4, 12
REFUSED = (2, 3)  # invalid argument, not supported
MISMATCH = "NVMLLibraryMismatchError"  # pynvml's word for a driver older than the call; it is no NVMLError


_out = sys.stdout


def say(**line: Any) -> None:
    """Print one line of the protocol of nvml.py."""
    _out.write(json.dumps(line) + "\n")
    _out.flush()


def keep_stdout() -> None:
    """Move standard output aside for ``say``: what the driver's library prints goes to standard error, and not between the lines."""
    global _out
    _out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


class Gone(Exception):
    """The GPU does not answer any more."""

    def __init__(self, call: str, error: Any) -> None:
        self.call, self.code, self.text = call, int(getattr(error, "value", 999)), str(error)


class Gpu:
    """One GPU; ``ask`` calls an NVML function on it and is None where that is not supported."""

    def __init__(self, nvml: Any, number: int) -> None:
        self.nvml, self.number = nvml, number
        self.bus_id: str | None = None
        self.refused = False  # the last call was known, and the GPU has no such thing
        say(at=f"GPU {number}")
        self.handle = self.ask("nvmlDeviceGetHandleByIndex", number, bare=True)

    def ask(self, name: str, *arguments: Any, bare: bool = False) -> Any:
        function = getattr(self.nvml, name, None)
        self.refused = False
        if function is None:
            return None
        say(at=f"GPU {self.number}, {name}")
        try:
            return function(*arguments) if bare else function(self.handle, *arguments)
        except self.nvml.NVMLError as error:
            code = getattr(error, "value", None)
            if bare or code in GONE:
                raise Gone(name, error) from error
            self.refused = code in REFUSED
            return None
        except Exception as error:
            if bare:
                raise
            if type(error).__name__ != MISMATCH:
                say(unread=f"GPU {self.number}, {name}", text=f"{type(error).__name__}: {error}"[:200])
            return None


def text_of(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None if value is None else str(value)
