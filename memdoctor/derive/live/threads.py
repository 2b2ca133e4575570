"""The main threads out of what faulthandler and gdb print of all threads, in the form of py-spy's stacks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memdoctor.model import Fact

_PACKAGES = re.compile(r"^.*?/(?:(?:site|dist)-packages|lib/python\d(?:\.\d+)?)/(?:(?:site|dist)-packages/)?")
_KNOWN = re.compile(r"^.*/(?=(?:torch|deepspeed|megatron)/)")  # of a copy of the sources
# Where a thread sleeps is the same whatever it waits for.
_SYSTEM = re.compile(r"^(?:libc|libpthread|ld-linux\S*|libcuda|libcudart)[-.\d]*\.so")
_LINE = re.compile(r'", line (\d+)$')


def main_threads(facts: Sequence[Fact]) -> list[Fact]:
    """``process.stack`` for each dump of a process: of faulthandler's threads the last, of gdb's number 1.

    Processes that crashed are left out: their dump shows the moment of the crash, and those that gave up waiting crash, too.
    """
    crashed = {_process(fact) for fact in facts if fact.kind == "native.crash"}
    dumps: dict[object, list[list[Fact]]] = {}
    for fact in facts:
        if fact.kind == "thread.stack" and _process(fact) not in crashed:
            own = dumps.setdefault(_process(fact), [])
            if not own or fact.fields.get("tool") == "gdb" or fact.fields.get("name") in {one.fields.get("name") for one in own[-1]}:
                own.append([])  # a thread that comes again is of another dump
            own[-1].append(fact)
    return [_stack(dump[-1]) for own in dumps.values() for dump in own if dump[-1].fields.get("values")]


def _process(fact: Fact) -> tuple[object, ...]:
    pid = fact.fields.get("of_pid") if fact.kind == "thread.stack" else None
    return ("rank", fact.rank) if fact.rank is not None else (fact.host, fact.origin.path, pid or fact.fields.get("stream"))


def _stack(fact: Fact) -> Fact:
    values: Mapping[str, object] = fact.fields["values"]
    frames = {function: _short("" if place is None else str(place)) for function, place in values.items()}
    frames = {function: place for function, place in frames.items() if not _SYSTEM.match(place)} or frames
    return replace(fact, kind="process.stack", fields={**fact.fields, "values": frames})


def _short(place: str) -> str:
    """``/opt/venv/lib/python3.11/site-packages/torch/cuda.py", line 5`` → ``torch/cuda.py:5``."""
    place = _LINE.sub(r":\1", place)
    for known in (_PACKAGES, _KNOWN):
        if known.match(place):
            return known.sub("", place)
    return place.rpartition("/")[2]
