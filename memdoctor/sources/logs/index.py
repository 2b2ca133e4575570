"""Signals arranged for the scan: which gates to look for, and which signals and readers each gate opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from memdoctor import catalog
from memdoctor.model import Signal, signal_head
from memdoctor.records import record
from memdoctor.shelf import Shelf
from memdoctor.sources.logs import nccl_gates, steps
from memdoctor.sources.logs.blocks import read_line
from memdoctor.sources.logs.choosing import GrowingMatcher, sparing
from memdoctor.sources.logs.matcher import Gate, Matcher
from memdoctor.sources.logs.sampling import NUMBERS, Gates
from memdoctor.sources.logs.step_shapes import beside

TRACEBACK_GATES = tuple(map(Gate, (b"most recent call", b"Fatal Python error")))
ERROR_GATES = tuple(map(Gate, (
    b"Error", b"ERROR", b"error:", b"Exception", b"CRITICAL", b"FATAL", b"Fatal", b"fatal", b"FAILED", b"Failed", b"failed", b"Aborted", b"panic",
    b"Interrupt", b"Exit",
)))  # fmt: skip
OWN = ("rank.memory", "rank.speed")  # readings in which each rank speaks of itself
MOST_PATHS = 2_048  # logs of which each is read for the paths of NCCL's channels
_NCCL = frozenset((*nccl_gates.GATES, *nccl_gates.SAMPLED_GATES))
_NEVER: frozenset[str] = frozenset()
_OF_A_RANK = frozenset(map(Gate, beside.OF_A_RANK))


@record
class Opened:
    """What the gates of one segment open.

    ``only_step``: nothing but the reader of step lines. ``only_signals``: nothing but signals, each of which needs all of its ``texts``.
    ``sampled``: it might have been left out.
    """

    signals: tuple[Signal, ...]
    step: bool
    traceback: bool
    error: bool
    only_step: bool
    only_signals: bool
    texts: tuple[tuple[bytes, ...], ...]
    sampled: bool
    nccl: bool  # a line of NCCL's set-up
    weight: float  # towards the number of sampled lines that is enough

    def plausible(self, raw: bytes) -> bool:
        """False where no signal can match ``raw`` for want of its texts, and nothing else is opened: most lines are done with then."""
        return not self.only_signals or any(all(text in raw for text in texts) for texts in self.texts)


class SignalIndex:
    """Gates of all signals and of the built-in readers; ``opened`` says what a segment's gates open (remembered per combination).

    ``sampled``: numbers of the gates of which a sample of the chunks is enough; ``beside``: of those that are looked for only once a fact of
    the kinds ``alarms`` was found; ``others`` all but these.
    """

    def __init__(self, signals: Sequence[Signal]) -> None:
        heads = signals.heads if isinstance(signals, Shelf) else [signal_head(signal) for signal in signals]
        shared = Counter(text for _, has, _ in heads for text in has)
        by_text: dict[str, list[int]] = {}
        for number, (_, has, own) in enumerate(heads):
            for text in own or (_rarest(has, shared),):
                by_text.setdefault(text, []).append(number)
        gates = {Gate(text.encode()): numbers for text, numbers in by_text.items()}
        late = {gate: {catalog.KINDS[heads[number][0]].beside for number in opened} for gate, opened in gates.items()}
        readings = {gate for gate, opened in gates.items() if all(catalog.KINDS[heads[number][0]].readings for number in opened)}
        for gate in (*steps.GATES, *steps.SAMPLED_GATES, *TRACEBACK_GATES, *ERROR_GATES, *nccl_gates.GATES, *nccl_gates.SAMPLED_GATES):
            gates.setdefault(gate, [])
        sampled = (readings | {*steps.SAMPLED_GATES, *nccl_gates.SAMPLED_GATES}).difference(steps.GATES, TRACEBACK_GATES, ERROR_GATES)
        self.gates = tuple(gates)
        self.sampled = frozenset(number for number, gate in enumerate(self.gates) if gate in sampled)
        self.beside = frozenset(number for number, gate in enumerate(self.gates) if late.get(gate, _NEVER) and "" not in late[gate])
        self.others = frozenset(range(len(self.gates))) - self.beside
        self.alarms = frozenset(kind for number in self.beside for kind in late[self.gates[number]])
        own = {gate for gate, opened in gates.items() if any(heads[number][0] in OWN for number in opened)}
        of_a_rank = frozenset(number for number in self.sampled if self.gates[number] in _OF_A_RANK or self.gates[number] in own)
        nccl = frozenset(number for number in self.sampled if self.gates[number] in _NCCL)
        self._many = Gates(self.sampled, of_a_rank | nccl, self.beside)
        self._very_many = Gates(self.sampled, of_a_rank, self.beside)
        self._sampled = sampled
        self.matcher = GrowingMatcher(self.gates)
        self._sparing: dict[frozenset[int], Matcher] = {}
        self._signals = signals
        self._opened = tuple(gates.values())
        self._cache: dict[tuple[int, ...], Opened] = {}

    def sampling(self, logs: int) -> Gates:
        """What of so many logs is looked through for sampled gates. Of very many the paths of NCCL's channels are a sample, too."""
        return self._very_many if logs > MOST_PATHS else self._many

    def sparing(self, once: frozenset[int]) -> Matcher:
        """A matcher that need tell of the sampled gates ``once`` only where each is first."""
        known = self._sparing.get(once)
        if known is None:
            known = self._sparing[once] = sparing(self.gates, self.beside, once)
        return known

    def opened(self, gates: tuple[int, ...]) -> Opened:
        known = self._cache.get(gates)
        if known is None:
            own = {self.gates[number] for number in gates}
            numbers = sorted({number for gate in gates for number in self._opened[gate]})
            step = not own.isdisjoint(steps.GATES) or not own.isdisjoint(steps.SAMPLED_GATES)
            sampled = own.isdisjoint(steps.GATES) and not own.isdisjoint(self._sampled)
            traceback, error = not own.isdisjoint(TRACEBACK_GATES), not own.isdisjoint(ERROR_GATES)
            only_step = step and not (numbers or traceback or error)
            known = Opened(
                signals=tuple(self._signals[number] for number in numbers),
                step=step,
                traceback=traceback,
                error=error,
                only_step=only_step,
                only_signals=not (step or traceback or error),
                texts=tuple(tuple(text.encode() for text in self._signals[number].has) for number in numbers),
                sampled=sampled,
                nccl=not own.isdisjoint(_NCCL),
                weight=_weight(own & self._sampled, only_step) if sampled else 0.0,
            )
            if len(self._cache) < 100_000:
                self._cache[gates] = known
        return known

    def found_in(self, text: str) -> Iterator[tuple[Signal, dict[str, Any]]]:
        """The signals that match ``text``, one line without its prefixes, and what they find in it."""
        for _, _, gates in self.matcher.hits(text.encode("utf-8", "replace") + b"\n"):
            for signal in self.opened(gates).signals:
                fields = read_line(signal, text) if all(part in text for part in signal.has) else None
                if fields is not None:
                    yield signal, fields


def _weight(sampled: set[Gate], only_step: bool) -> float:
    if sampled.issubset(nccl_gates.SAMPLED_GATES):
        return nccl_gates.WEIGHT
    return NUMBERS if only_step else 1.0


def _rarest(has: Sequence[str], shared: Counter[str]) -> str:
    """The text of a signal's ``has`` that lets least through: long, and asked for by few signals (``shared``: by how many)."""
    return has[0] if len(has) == 1 else max(has, key=lambda text: (len(text) / shared[text], len(text)))
