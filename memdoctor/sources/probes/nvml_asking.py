"""Asking NVML about one GPU: calls that it does not know are None, and a GPU that gives no more answers is told at once."""

from __future__ import annotations

import json
from typing import Any

# Return codes after which a GPU gives no more answers: lost, reset required. Where not even a handle can be had, every code means so.
GONE = (15, 16)


def say(**line: Any) -> None:
    """Print one line of the protocol of nvml.py."""
    print(json.dumps(line), flush=True)


class Gone(Exception):
    """The GPU does not answer any more."""

    def __init__(self, call: str, error: Any) -> None:
        self.call, self.code, self.text = call, int(getattr(error, "value", 999)), str(error)


class Gpu:
    """One GPU; ``ask`` calls an NVML function on it and is None where that is not supported."""

    def __init__(self, nvml: Any, number: int) -> None:
        self.nvml, self.number = nvml, number
        self.bus_id: str | None = None
        say(at=f"GPU {number}")
        self.handle = self.ask("nvmlDeviceGetHandleByIndex", number, bare=True)

    def ask(self, name: str, *arguments: Any, bare: bool = False) -> Any:
        function = getattr(self.nvml, name, None)
        if function is None:
            return None
        say(at=f"GPU {self.number}, {name}")
        try:
            return function(*arguments) if bare else function(self.handle, *arguments)
        except self.nvml.NVMLError as error:
            if bare or getattr(error, "value", None) in GONE:
                raise Gone(name, error) from error
            return None


def text_of(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None if value is None else str(value)
