"""The main threads out of dumps of all threads."""

from __future__ import annotations

import pytest

from memdoctor.derive.live.threads import main_threads
from memdoctor.model import Fact, Origin

PACKAGES = "/opt/venv/lib/python3.11/site-packages/"


def thread(name: str, place: str, line: int, *, tool: str = "faulthandler", rank: int | None = 0) -> Fact:
    fields = {"name": name, "tool": tool, "values": {"wait": place}}
    return Fact("thread.stack", fields, Origin("log", "f", line), rank, seq=line << 8, event=f"0:{line}")


def places(facts: list[Fact]) -> list[list[str]]:
    return [list(fact.fields["values"].values()) for fact in main_threads(facts)]


def test_faulthandler_prints_the_main_thread_last() -> None:
    assert places([thread("0x1", "a.py", 1), thread("0x2", "b.py", 2)]) == [["b.py"]]


def test_each_dump_has_its_own() -> None:
    dumps = [thread("0x1", "a.py", 1), thread("0x2", "b.py", 2), thread("0x1", "a.py", 3), thread("0x2", "c.py", 4)]
    assert places(dumps) == [["b.py"], ["c.py"]]


def test_gdb_prints_one_a_dump() -> None:
    assert places([thread("0x1", "a.so", 1, tool="gdb"), thread("0x9", "b.so", 2, tool="gdb")]) == [["a.so"], ["b.so"]]


@pytest.mark.parametrize(
    ("place", "short"),
    [
        (f'{PACKAGES}torch/distributed/distributed_c10d.py", line 2806', "torch/distributed/distributed_c10d.py:2806"),
        ('/opt/pytorch/torch/distributed/distributed_c10d.py", line 7', "torch/distributed/distributed_c10d.py:7"),
        ('/usr/lib/python3.11/threading.py", line 320', "threading.py:320"),
        ('/workspace/train.py", line 88', "train.py:88"),
        ("/usr/lib/x86_64-linux-gnu/libshard.so", "libshard.so"),
    ],
)
def test_paths_are_those_of_py_spy(place: str, short: str) -> None:
    assert places([thread("0x1", place, 1)]) == [[short]]


def test_a_crash_is_no_look_at_a_running_job() -> None:
    crash = Fact("native.crash", {"name": "abort"}, Origin("log", "f", 1), 0, seq=1, event="0:1")
    assert places([crash, thread("0x1", "a.py", 2), thread("0x1", "b.py", 3, rank=1)]) == [["b.py"]]
