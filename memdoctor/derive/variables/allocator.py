"""PYTORCH_CUDA_ALLOC_CONF: options of the caching allocator, as torch's tokenizer reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memdoctor.derive.variables.names import suggest
from memdoctor.derive.variables.table import Verdict

Read = tuple[str | None, Verdict | None]
_BOOL = ("True", "False")
_TRUTHS = (
    "expandable_segments", "release_lock_on_cudamalloc", "release_lock_on_hipmalloc", "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register", "pinned_use_background_threads", "pinned_free_catch_all", "graph_capture_record_stream_reuse",
    "throw_on_cudamalloc_oom",
)  # fmt: skip
_NUMBERS: Mapping[str, int] = {  # option -> least value
    "max_split_size_mb": 20, "max_non_split_rounding_mb": 20, "large_segment_size_mb": 20, "pinned_num_register_threads": 1,
    "pinned_reserve_segment_size_mb": 0, "pinned_max_round_threshold_mb": 0, "pinned_max_cached_size_mb": 0, "pinned_max_power2_size_mb": 0,
}  # fmt: skip
_SHARES = ("garbage_collection_threshold", "per_process_memory_fraction")
OPTIONS = (*_TRUTHS, *_NUMBERS, *_SHARES, "roundup_power2_divisions", "backend")
_PART = re.compile(r"\s*([A-Za-z0-9_]+)\s*:\s*(\[[^\]]*\]|[^,\s]+)\s*(?:,|$)")


def allocator(name: str, value: str, entry: Mapping[str, Any]) -> Read:
    """The options, or the first fault: torch raises at the first CUDA allocation for any of them."""
    given: dict[str, str] = {}
    position = 0
    if value.strip()[:1] in ("'", '"'):
        return None, Verdict(name, value, "refused", "the quotes are part of the value", meant=value.strip().strip("'\""))
    while position < len(value.rstrip(" ,")):
        match = _PART.match(value, position)
        if match is None:
            text = "options are written name:value, joined by commas"
            written = re.sub(r"(\w)\s*=\s*", r"\1:", value).replace(";", ",")
            return None, Verdict(name, value, "refused", text, meant=written if written != value else None)
        given[match[1]] = match[2]
        position = match.end()
    for option, setting in given.items():
        fault = _fault(option, setting)
        if fault is not None:
            near = suggest(option, OPTIONS) if option not in OPTIONS else None
            corrected = value.replace(option, near) if near else re.sub(r":(true|false)\b", lambda match: f":{match[1].title()}", value)
            return None, Verdict(name, value, "refused", fault, meant=corrected if corrected != value else None)
    if given.get("expandable_segments") == "True":
        idle = [option for option in ("garbage_collection_threshold", "max_split_size_mb") if option in given]
        if given.get("backend") == "cudaMallocAsync":
            return value, Verdict(name, value, "contradiction", "backend:cudaMallocAsync knows no expandable segments")
        if idle:
            return value, Verdict(name, value, "contradiction", f"with expandable segments {idle[0]} has little or no effect")
    if given.get("backend") == "cudaMallocAsync" and len(given) > 1:
        other = next(option for option in given if option != "backend")
        return value, Verdict(name, value, "contradiction", f"backend:cudaMallocAsync does not look at {other}")
    return value, None


def _fault(option: str, setting: str) -> str | None:
    if option not in OPTIONS:
        return f"torch knows no option {option!r}"
    if option in _TRUTHS and setting not in _BOOL:
        return f"{option} takes True or False, with the capital"
    if option in _NUMBERS and (not setting.isdigit() or int(setting) < _NUMBERS[option]):
        return f"{option} takes a whole number of at least {_NUMBERS[option]}"
    if option in _SHARES and not _is_share(setting):
        return f"{option} takes a number between 0 and 1"
    if option == "backend" and setting not in ("native", "cudaMallocAsync", "hipMallocAsync"):
        return "backend is native or cudaMallocAsync"
    if option == "roundup_power2_divisions" and not _are_divisions(setting):
        return "roundup_power2_divisions takes powers of 2, such as 4 or [256:1,512:2,>:4]"
    return None


def _is_share(setting: str) -> bool:
    try:
        return 0.0 < float(setting) <= 1.0
    except ValueError:
        return False


def _are_divisions(setting: str) -> bool:
    parts = setting.strip("[]").split(",") if setting.startswith("[") else [setting]
    for part in parts:
        number = part.rpartition(":")[2].strip()
        if not number.isdigit() or int(number) < 1 or int(number) & (int(number) - 1):
            return False
    return True
