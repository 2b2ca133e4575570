"""Sends and receives that were handed over together: members come first in the ring, then one entry that ends the batch and has its state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.sources.dumps.fields import number

BATCH = "coalesced"
PAIR = re.compile(r"(send|recv) (\d{1,7})(->|<-)(\d{1,7})")

Entry = Mapping[str, Any]


def seq_of(entry: Entry) -> int:
    """The number of a collective within its group (``seq_id`` before torch 2.2)."""
    value = entry.get("collective_seq_id")
    return number(entry.get("seq_id") if value is None else value)


def batch_ends(entries: Sequence[Entry], keys: Sequence[str]) -> dict[int, int]:
    """Place of a member (and of the end itself) -> place of the entry that ends its batch. ``keys`` are the groups of the entries."""
    ends: dict[int, int] = {}
    runs: dict[str, list[int]] = {}
    for place, (entry, key) in enumerate(zip(entries, keys, strict=True)):
        name = entry.get("profiling_name")
        if not isinstance(name, str):
            continue
        run = runs.get(key)
        if name.endswith(":" + BATCH):
            ends[place] = place
            if run and _together(entries[run[-1]], entry):
                ends.update(dict.fromkeys(run, place))
            runs.pop(key, None)
        elif ":send " in name or ":recv " in name:
            if run is not None and _together(entries[run[-1]], entry):
                run.append(place)
            else:
                runs[key] = [place]
        elif run is not None:
            del runs[key]
    return ends


def end_left_out(entries: Sequence[Entry], place: int) -> bool:
    """True for a member of a batch that had ended, in a dump that holds only what had not: its end, which would follow it, is not there."""
    members = 1 + (place > 0 and _together(entries[place - 1], entries[place]))
    while place + 1 < len(entries):
        this, following = entries[place], entries[place + 1]
        if "record_id" not in this or number(following.get("record_id"), -1) != number(this.get("record_id"), -2) + 1:
            return "record_id" in this and "record_id" in following
        if not following.get("is_p2p") or not _together(this, following):
            return False
        place += 1
        members += 1
    return members > 1 and "record_id" in entries[place]


def _together(one: Entry, other: Entry) -> bool:
    """True for entries with the same numbers: a batch is counted once."""
    return one.get("p2p_seq_id") == other.get("p2p_seq_id") and seq_of(one) == seq_of(other)
