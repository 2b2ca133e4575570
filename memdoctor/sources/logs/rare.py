"""What one log of very many tells alone: kinds of lines of which a sample is enough, and that the logs of the sample do not hold."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.sources.logs.matcher import find
from memdoctor.sources.logs.one_log import LogReader, Numbered, Outcome
from memdoctor.sources.logs.sampling import NOTHING, RARE


def rare(outcomes: Sequence[Outcome], logs: Sequence[Numbered], reader: LogReader) -> list[int]:
    """The places of logs that are to be read as a whole: the first few that hold such lines. One rank draws the bar, and prints the timers."""
    seen = NOTHING.union(*{outcome.unread for outcome in outcomes})
    missing = seen - NOTHING.union(*{outcome.met for outcome in outcomes}) if seen else NOTHING
    if not missing:
        return []
    chosen: set[int] = set()
    left = dict.fromkeys(missing, RARE)
    for number, outcome in enumerate(outcomes):
        wanted = outcome.unread.intersection(left)
        if not wanted:
            continue
        data = _bytes(logs[number])
        held = [gate for gate in wanted if find(reader.index.gates[gate], data) >= 0]
        if held:
            chosen.add(number)
        for gate in held:
            left[gate] -= 1
            if not left[gate]:
                del left[gate]
    return sorted(chosen)


def _bytes(numbered: Numbered) -> bytes:
    """What is in a small log; nothing where it is gone meanwhile."""
    _, file = numbered
    try:
        with open(file.opened or file.path, "rb", buffering=0) as stream:
            return stream.readall()
    except OSError:
        return b""
