"""Which files are flight-recorder dumps, by name or by how they begin, and whose they are."""

from __future__ import annotations

import os
import re

from memdoctor.lazy import lazy

_NAME = lazy(
    r"(?:nccl|comm_lib)_trace_rank_", needs=("_trace_rank_",)
)  # torch's own names; anything may stand there that TORCH_NCCL_DEBUG_INFO_TEMP_FILE says
_RANK = lazy(r"(?<!\d)(\d{1,7})(?:\.(?:json|pkl|pickle|bin|dump|trace))?(?:\.gz)?$", re.IGNORECASE)
_JSON = lazy(rb"\s{0,64}[\[{]\s{0,64}[\[{\x22]")
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_LOGS = (".log", ".txt", ".out", ".err")
_KEYS = (b"pg_config", b"pg_status", b"profiling_name", b"collective_seq_id", b"comm_lib_version")


def dump_name(name: str) -> bool:
    """True for the name that torch gives a dump (a log that is called after one is none)."""
    return _NAME.match(name) is not None and not name.lower().endswith(_LOGS)


def maybe_dump(name: str) -> bool:
    """True for a name that is a dump's, or whose ending speaks against a log but not against a dump."""
    return dump_name(name) or name.lower().endswith((".pkl", ".pickle"))


def dump_head(head: bytes) -> bool:
    """True for a file that begins with ``head`` where that can only be a flight recorder's: a pickle, or JSON, with its keys."""
    if head.startswith(_PICKLES):
        return any(key in head for key in _KEYS)
    if _JSON.match(head) is not None:
        return any(b'"' + key + b'":' in head or b'"' + key + b'" :' in head for key in _KEYS)
    return False


def rank_in(path: str) -> int | None:
    """The global rank: the digits in which the name ends, before an ending such as ``.json``."""
    match = _RANK.search(os.path.basename(path))
    return None if match is None else int(match[1])
