"""Nothing in a dump is ever run, and nothing in it takes more than dumps need."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import resource
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdoctor.sources.dumps.unpacking import NotADump, unpack

DUMP: dict[str, Any] = {"version": "2.10", "entries": [{"record_id": 0, "process_group": ("0", "default_pg"), "retired": True, "x": None}]}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_of_every_protocol(protocol: int) -> None:
    assert unpack(pickle.dumps(DUMP, protocol)) == DUMP


def test_json() -> None:
    assert unpack(b' {"entries": [{"record_id": 1}]}') == {"entries": [{"record_id": 1}]}


class Runs:
    """An object whose pickle calls a function when it is read."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "ran"
    for harmful in (Runs(os.system, f"touch {mark}"), Runs(eval, f"open({str(mark)!r}, 'w')"), Runs(os.mkdir, str(mark))):
        for whole in (harmful, {"entries": [harmful]}, {**DUMP, "entries": [{"profiling_name": harmful}]}):
            with pytest.raises(NotADump, match="refused: it is a pickle that asks for"):
                unpack(pickle.dumps(whole, protocol))
    assert not mark.exists()


def test_any_class_is_refused_and_named() -> None:
    with pytest.raises(NotADump, match=r"'pathlib\.(PurePosixPath|PosixPath)'"):
        unpack(pickle.dumps({"entries": [Path("/")]}, 2))
    with pytest.raises(NotADump, match=r"'collections\.OrderedDict'"):
        unpack(b"\x80\x02ccollections\nOrderedDict\n.")
    with pytest.raises(NotADump, match=r"'builtins\.exec'"):
        unpack(b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93.")
    with pytest.raises(NotADump, match=r"'os\.system'"):
        unpack(b"\x80\x02(S'true'\nios\nsystem\n.")
    with pytest.raises(NotADump, match="refused"):
        unpack(b"\x80\x02U\x01xQ.")
    with pytest.raises(NotADump):
        unpack(b"\x80\x02\x82\x01.")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"hello", "neither a pickle nor JSON"),
        (b"\x80", "cut off or damaged"),
        (pickle.dumps(DUMP, 2)[:-10], "cut off or damaged"),
        (pickle.dumps(DUMP, 4)[:-10], "cut off or damaged"),
        (b'{"entries": [', "cut off or damaged"),
        (b'{"entries": "\xff\xfe"}', "cut off or damaged"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "cut off or damaged"),
    ],
)
def test_what_is_no_dump_is_told_so(data: bytes, reason: str) -> None:
    with pytest.raises(NotADump, match=reason):
        unpack(data)


def test_a_few_bytes_cannot_ask_for_gigabytes() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    huge = b"\x80\x02]r" + struct.pack("<I", 2**32 - 2) + b"."  # puts a list into place four billion of the table of known objects
    with pytest.raises(NotADump, match=r"refused|damaged"):
        unpack(huge)
    with pytest.raises(NotADump, match=r"refused|damaged"):
        unpack(b"\x80\x04\x8d" + struct.pack("<Q", 2**60) + b"x.")
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert gc.isenabled()


def test_deep_nesting_does_no_harm() -> None:
    deep = unpack(b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".")
    assert isinstance(deep, list)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_damage_anywhere_is_a_reason_and_no_crash(noise: bytes, at: int) -> None:
    whole = pickle.dumps(DUMP, 2)
    for data in (b"\x80\x02" + noise, whole[:at] + noise + whole[at:], json.dumps(DUMP).encode()[:at] + noise):
        with contextlib.suppress(NotADump):
            unpack(data)


def test_reasons_hold_no_control_characters() -> None:
    with pytest.raises(NotADump) as caught:
        unpack(b"\x80\x02c\x1b[31mos\nsys\x07tem\n.")
    assert str(caught.value).isprintable()
