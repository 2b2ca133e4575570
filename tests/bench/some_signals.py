"""Reads a log with a part of the rule base: ``python -m tests.bench.some_signals LOG COUNT`` prints the seconds of processor time.

The part holds all signals whose gates are in the head of the log, so that every part finds the same there; others fill it up evenly. What
differs is how many patterns are looked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from memdoctor.engine.load import load
from memdoctor.model import Signal
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs
from memdoctor.sources.logs.index import SignalIndex

HEAD = 8_000_000


def part(signals: Sequence[Signal], head: bytes, count: int) -> list[Signal]:
    """``count`` of the signals, in their order. Raises ValueError where there are fewer."""
    if len(signals) < count:
        raise ValueError(f"the rule base has {len(signals)} signals, not {count}")
    index = SignalIndex(signals)
    told = {signal.id for _, _, gates in index.matcher.hits(head) for signal in index.opened(gates).signals}
    others = [signal for signal in signals if signal.id not in told]
    wanted = count - len(told)
    told.update(others[number * len(others) // wanted].id for number in range(wanted))
    return [signal for signal in signals if signal.id in told]


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        start = file.read(HEAD)
    chosen = part(load([rules_dir()]).signals, start[: start.rfind(b"\n") + 1], int(sys.argv[2]))
    begin = time.process_time()
    read_logs([sys.argv[1]], chosen)
    print(time.process_time() - begin)
