"""Files that are no training log but tell of the job: the output of ``sacct`` and of ``nvidia-smi -q`` given beside a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from memdoctor.sources.logs.formats.nvidia_smi import NvidiaSmi
from memdoctor.sources.logs.formats.sacct import Sacct

LOOK = 512  # bytes that tell


class Format(Protocol):
    """A reader of one such file, fed line by line; each line yields (kind, fields) of facts."""

    def feed(self, text: str) -> Sequence[tuple[str, Mapping[str, Any]]]: ...


def begins(data: bytes) -> bool:
    """False where ``data`` can be the beginning of no such file."""
    head = data[:LOOK]
    return b"NVSMI" in head or head.lstrip()[:3] == b"GPU" or b"jobid" in head.lower()


def detect(sample: Sequence[str]) -> Format | None:
    """The reader for a file that begins with ``sample``, or None for a log."""
    for reader in (Sacct, NvidiaSmi):
        if reader.is_it(sample):
            return reader()
    return None
