"""PYTORCH_CUDA_ALLOC_CONF: options of the caching allocator, as torch's tokenizer reads them.

Signs of their own are ``, : [ ]``; blanks do not count, not even inside a number. Numbers are read by their beginning (std::stoull, std::stod).
After torch 2.13 (c10/core/AllocatorConfig, c10/cuda/CUDAAllocatorConfig); what a build for CPUs reads, too, is compared with it in the tests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memdoctor.derive.variables.names import suggest
from memdoctor.derive.variables.table import Verdict
from memdoctor.records import record

Read = tuple[str | None, Verdict | None]
_TRUTHS = (
    "expandable_segments", "release_lock_on_cudamalloc", "release_lock_on_hipmalloc", "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register", "pinned_use_background_threads", "pinned_free_catch_all", "graph_capture_record_stream_reuse",
    "throw_on_cudamalloc_oom",
)  # fmt: skip
_NUMBERS: Mapping[str, int] = {  # option -> least value
    "max_split_size_mb": 20, "max_non_split_rounding_mb": 20, "large_segment_size_mb": 11, "pinned_num_register_threads": 1,
    "pinned_reserve_segment_size_mb": 0, "pinned_max_round_threshold_mb": 0, "pinned_max_cached_size_mb": 0, "pinned_max_power2_size_mb": 0,
}  # fmt: skip
_SHARES = ("garbage_collection_threshold", "per_process_memory_fraction")
OPTIONS = (*_TRUTHS, *_NUMBERS, *_SHARES, "roundup_power2_divisions", "backend")
MOST_THREADS = 128  # pinned_num_register_threads
LARGEST = 2**64 - 1
_TOKEN = re.compile(r"[,:\[\]]|[^,:\[\]]+")
_WHOLE = re.compile(r"([+-]?)(\d+)")
_REAL = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.I)


@record
class _Option:
    """``setting`` holds the tokens of the value: one, or those between brackets. ``unread``: an empty entry stands before it."""

    name: str
    setting: tuple[str, ...]
    listed: bool = False
    unread: bool = False


class _Fault(Exception):
    pass


def allocator(name: str, value: str, entry: Mapping[str, Any]) -> Read:
    """The options, or the first fault: torch raises at the first CUDA allocation for any of them."""
    if value.strip()[:1] in ("'", '"'):
        return None, Verdict(name, value, "refused", "the quotes are part of the value", meant=value.strip().strip("'\""))
    try:
        options = list(_options(_TOKEN.findall("".join(value.split()))))
    except _Fault as fault:
        written = re.sub(r"(\w)\s*=\s*", r"\1:", value).replace(";", ",")
        written = re.sub(r"(\s*,)+", ",", written).strip(" ,")
        return None, Verdict(name, value, "refused", str(fault), meant=written if written != value and ":" in written else None)
    for option in options:
        text = None if option.unread else _fault(option)
        if text is not None:
            near = suggest(option.name, OPTIONS) if option.name not in OPTIONS else None
            corrected = (
                value.replace(option.name, near) if near else re.sub(r":(true|false)\b", lambda match: f":{match[1].title()}", value)
            )
            return None, Verdict(name, value, "refused", text, meant=corrected if corrected != value else None)
    return value, _warning(name, value, options)


def _options(tokens: list[str]) -> Iterator[_Option]:
    """What stands there, in order. Raises _Fault where torch's tokenizer runs out of signs, or meets another one than it wants."""
    place, unread = 0, False
    while place < len(tokens):
        if tokens[place] == ",":
            place += 1
            if unread or place == len(tokens):
                raise _Fault("there are commas too many")
            unread = True
            continue
        name = tokens[place]
        if name in ":[]" or tokens[place + 1 : place + 2] != [":"]:
            raise _Fault("options are written name:value, joined by commas")
        place += 2
        if place == len(tokens) or tokens[place] in ",:]":
            raise _Fault(f"{name} has no value")
        if tokens[place] == "[":
            if "]" not in tokens[place:]:
                raise _Fault(f"the bracket after {name} is never closed")
            end = tokens.index("]", place)
            yield _Option(name, tuple(tokens[place + 1 : end]), True, unread)
            place = end + 1
        else:
            yield _Option(name, (tokens[place],), False, unread)
            place += 1
        if place < len(tokens) and tokens[place] != ",":
            raise _Fault("options are written name:value, joined by commas")
        unread, place = False, place + 1


def _fault(option: _Option) -> str | None:
    """Why torch refuses the option."""
    name, setting = option.name, "".join(option.setting)
    if name not in OPTIONS:
        return f"torch knows no option {name!r}"
    if option.listed and name != "roundup_power2_divisions":
        return f"{name} takes one value and no list"
    if name in _TRUTHS and setting not in ("True", "False"):
        return f"{name} takes True or False, with the capital"
    number = _whole(setting)
    if name in _NUMBERS and (number is None or number < _NUMBERS[name]):
        return f"{name} takes a whole number of at least {_NUMBERS[name]}"
    if name == "pinned_num_register_threads" and not (_is_power(number or 0) and (number or 0) <= MOST_THREADS):
        return f"{name} takes a power of 2 up to {MOST_THREADS}"
    if name == "garbage_collection_threshold" and not 0.0 < _real(setting) < 1.0:
        return f"{name} takes a number above 0 and below 1"
    if name == "per_process_memory_fraction" and not 0.0 <= _real(setting) <= 1.0:
        return f"{name} takes a number from 0 to 1"
    if name == "backend" and setting not in ("native", "cudaMallocAsync", "hipMallocAsync"):
        return "backend is native or cudaMallocAsync"
    if name == "roundup_power2_divisions" and not _are_divisions(option):
        return "roundup_power2_divisions takes powers of 2, such as 4 or [256:1,512:2,>:4]"
    return None


def _warning(name: str, value: str, options: list[_Option]) -> Verdict | None:
    """What torch takes and does not do."""
    given = {option.name: "".join(option.setting) for option in options}
    passed = next((option for option in options if option.unread), None)
    if passed is not None:
        meant = re.sub(r"(\s*,)+", ",", value).strip(" ,")
        text = f"before {passed.name} stands an empty entry: torch passes over that option, or refuses the whole"
        return Verdict(name, value, "ignored", text, meant=meant)
    for option in options:
        if option.name in _NUMBERS and given[option.name].startswith("-"):
            text = f"{option.name} knows no minus: the number is taken from {LARGEST + 1}"
            return Verdict(name, value, "read_otherwise", text, read=str(_whole(given[option.name])))
    if given.get("expandable_segments") == "True":
        idle = [option for option in ("garbage_collection_threshold", "max_split_size_mb") if option in given]
        if given.get("backend") == "cudaMallocAsync":
            return Verdict(name, value, "contradiction", "backend:cudaMallocAsync knows no expandable segments")
        if idle:
            return Verdict(name, value, "contradiction", f"with expandable segments {idle[0]} has little or no effect")
    if given.get("backend") == "cudaMallocAsync" and len(given) > 1:
        other = next(option for option in given if option != "backend")
        return Verdict(name, value, "contradiction", f"backend:cudaMallocAsync does not look at {other}")
    return None


def _whole(setting: str) -> int | None:
    """As std::stoull reads it: what follows is cut off, a minus wraps around; None where it raises."""
    match = _WHOLE.match(setting)
    if match is None or int(match[2]) > LARGEST:
        return None
    return -int(match[2]) % (LARGEST + 1) if match[1] == "-" else int(match[2])


def _real(setting: str) -> float:
    """As std::stod reads it; nan where it raises."""
    match = _REAL.match(setting)
    if match is None:
        return math.nan
    try:
        return float.fromhex(match[0]) if "x" in match[0].lower() else float(match[0])
    except (ValueError, OverflowError):
        return math.nan


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _are_divisions(option: _Option) -> bool:
    if not option.listed:
        return _is_power(_whole(option.setting[0]) or 0)
    for part in "".join(option.setting).rstrip(",").split(",") if option.setting else []:
        size, colon, number = part.partition(":")
        divisions = _whole(number)
        if not colon or divisions is None or (divisions and not _is_power(divisions)) or not (size == ">" or _is_power(_whole(size) or 0)):
            return False
    return True
