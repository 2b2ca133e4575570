"""Signals arranged for the scan: which gates to look for, and which signals and readers each gate opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memdoctor.model import Signal
from memdoctor.sources.logs import steps
from memdoctor.sources.logs.choosing import GrowingMatcher
from memdoctor.sources.logs.matcher import Gate, Matcher

STEP_GATES = tuple(map(Gate, steps.GATES))
TRACEBACK_GATES = tuple(map(Gate, (b"most recent call", b"Fatal Python error")))
ERROR_GATES = tuple(map(Gate, (
    b"Error", b"ERROR", b"error:", b"Exception", b"FATAL", b"Fatal", b"fatal", b"FAILED", b"Failed", b"failed", b"Aborted", b"panic",
    b"Interrupt", b"Exit",
)))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Opened:
    """What the gates of one segment open. ``only_step``: nothing but the reader of step lines."""

    signals: tuple[Signal, ...]
    step: bool
    traceback: bool
    error: bool
    only_step: bool


class SignalIndex:
    """Gates of all signals and of the built-in readers; ``opened`` says what a segment's gates open (remembered per combination)."""

    def __init__(self, signals: Sequence[Signal], matcher: Callable[[Sequence[Gate]], Matcher] = GrowingMatcher) -> None:
        shared = Counter(text for signal in signals for text in signal.has)
        gates: dict[Gate, list[Signal]] = {}
        for signal in signals:
            gates.setdefault(gate_of(signal, shared), []).append(signal)
        for gate in (*STEP_GATES, *TRACEBACK_GATES, *ERROR_GATES):
            gates.setdefault(gate, [])
        self.gates = tuple(gates)
        self.matcher = matcher(self.gates)
        self._signals = tuple(tuple(opened) for opened in gates.values())
        self._cache: dict[tuple[int, ...], Opened] = {}

    def opened(self, gates: tuple[int, ...]) -> Opened:
        known = self._cache.get(gates)
        if known is None:
            own = {self.gates[number] for number in gates}
            signals = tuple(signal for number in gates for signal in self._signals[number])
            step, traceback, error = (not own.isdisjoint(kind) for kind in (STEP_GATES, TRACEBACK_GATES, ERROR_GATES))
            known = Opened(signals, step, traceback, error, only_step=step and not (signals or traceback or error))
            if len(self._cache) < 100_000:
                self._cache[gates] = known
        return known


def gate_of(signal: Signal, shared: Counter[str]) -> Gate:
    """The text of ``signal.has`` that lets least through: long, and asked for by few signals (``shared``: by how many)."""
    return Gate(max(signal.has, key=lambda text: (len(text) / shared[text], len(text))).encode())
