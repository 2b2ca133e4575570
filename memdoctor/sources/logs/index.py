"""Signals arranged for the scan: which gates to look for, and which signals and readers each gate opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memdoctor.model import Signal
from memdoctor.sources.logs import steps
from memdoctor.sources.logs.matcher import Matcher, PlainMatcher

TRACEBACK_GATES = (b"most recent call", b"Fatal Python error")
ERROR_GATES = (
    b"Error", b"ERROR", b"error:", b"Exception", b"FATAL", b"Fatal", b"fatal", b"FAILED", b"Failed", b"failed", b"Aborted", b"panic",
    b"Interrupt", b"Exit",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Opened:
    """What the gates of one segment open."""

    signals: tuple[Signal, ...]
    step: bool
    traceback: bool
    error: bool


class SignalIndex:
    """Gates of all signals and of the built-in readers; ``opened`` says what a segment's gates open (remembered per combination)."""

    def __init__(self, signals: Sequence[Signal], matcher: Callable[[Sequence[bytes]], Matcher] = PlainMatcher) -> None:
        gates: dict[bytes, list[Signal]] = {}
        for signal in signals:
            gates.setdefault(max(signal.has, key=len).encode(), []).append(signal)
        for gate in (*steps.GATES, *TRACEBACK_GATES, *ERROR_GATES):
            gates.setdefault(gate, [])
        self.gates = tuple(gates)
        self.matcher = matcher(self.gates)
        self._signals = tuple(tuple(opened) for opened in gates.values())
        self._cache: dict[tuple[int, ...], Opened] = {}

    def opened(self, gates: tuple[int, ...]) -> Opened:
        known = self._cache.get(gates)
        if known is None:
            names = {self.gates[number] for number in gates}
            known = Opened(
                signals=tuple(signal for number in gates for signal in self._signals[number]),
                step=not names.isdisjoint(steps.GATES),
                traceback=not names.isdisjoint(TRACEBACK_GATES),
                error=not names.isdisjoint(ERROR_GATES),
            )
            if len(self._cache) < 100_000:
                self._cache[gates] = known
        return known
