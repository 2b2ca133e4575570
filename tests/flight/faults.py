"""Jobs with one planted fault each, drawn by a seed, and what must be found: the ranks at fault, the verdicts allowed and the cause."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from tests.flight.job import Item, Job
from tests.flight.recording import Recording, Style
from tests.flight.running import Run

FAULTS = ("never", "dies", "type", "size", "dtype", "order", "cycle", "p2p", "late", "unseen", "stall")
SHAPES = [
    (2, 1, 2), (1, 1, 4), (2, 2, 2), (4, 2, 2), (1, 4, 2), (2, 1, 8), (4, 4, 2), (8, 1, 4), (2, 4, 8), (8, 4, 2), (4, 4, 8), (8, 2, 8),
    (1, 1, 64), (2, 8, 4), (8, 4, 8), (8, 8, 8), (4, 8, 16),
]  # fmt: skip


@dataclass
class Planted:
    fault: str
    seed: int
    job: Job
    recording: Recording
    ranks: frozenset[int]  # at fault
    names: frozenset[str]  # verdicts
    cause: str
    without: frozenset[int] = field(default_factory=frozenset)  # ranks whose dump is missing

    def present(self) -> list[int]:
        return [rank for rank in self.job.programs if rank not in self.without]

    def write(self, folder: Path) -> list[Path]:
        return self.recording.write(folder, self.present())

    def __str__(self) -> str:
        return f"{self.seed}-{self.fault}-{self.job.tp}x{self.job.pp}x{self.job.dp}"


def plant(seed: int, fault: str | None = None, shape: tuple[int, int, int] | None = None, style: Style | None = None) -> Planted:
    rng = random.Random(seed)
    fault = fault or FAULTS[seed % len(FAULTS)]
    while True:
        tp, pp, dp = shape or rng.choice(SHAPES[: 8 if rng.random() < 0.5 else len(SHAPES)])
        made = _plant(seed, fault, rng, Job(
            tp, pp, dp, micro=rng.choice((2, 4, 6)), steps=rng.choice((1, 2, 3)), layers=rng.choice((1, 2, 3)), batched=rng.random() < 0.6,
            overlapped=rng.random() < 0.6, idle_groups=rng.choice((0, 0, 40, 300)), rng=rng,
        ), style)  # fmt: skip
        if made is not None:
            return made
        shape = None


def _plant(seed: int, fault: str, rng: random.Random, job: Job, style: Style | None) -> Planted | None:
    style = style or Style(
        ring=rng.choice((60, 200, 2000)),
        timed=rng.random() < 0.5,
        layout=rng.choice(("2.13", "2.13", "2.4")) if fault != "dtype" else "2.13",
        as_json=rng.random() < 0.2,
        skew=rng.choice((0.0, 0.05, 2.0)),
        offset=rng.choice((0, 500)),
    )
    lead = rng.choice((0, 0, 3, 12))
    rank = rng.randrange(job.world)
    program = job.programs[rank]
    start = len(program) * (job.steps - 1) // job.steps
    places = [place for place in range(start, len(program)) if len(program[place].group.ranks) > 1]
    collective = [place for place in places if not program[place].messages]
    run: Run | None = None
    expected: tuple[set[int], set[str], str]
    without: set[int] = set()
    stops: dict[int, int] = {}
    stalls: frozenset[object] = frozenset()
    late: int | None = None
    match fault:
        case "never" | "unseen" | "dies" | "late":
            chosen = [place for place in places if not program[place].aside]
            if not chosen:
                return None
            stops = {rank: rng.choice(chosen)}
            expected = ({rank}, {"missing"}, "hang.straggler")
            if fault == "unseen":
                without = {rng.choice([other for other in job.programs if other != rank])}
            elif fault == "dies":
                without, expected = {rank}, ({rank}, {"not_seen"}, "hang.rank_died")
            elif fault == "late":
                late, expected = rank, ({rank}, {"late"}, "hang.straggler")
        case "type" | "size" | "dtype":
            if not collective:
                return None
            place = rng.choice(collective)
            program[place] = _altered(program[place], fault)
            expected = (
                _odd(program[place], rank),
                {f"mismatch_{fault}", "order"} if fault == "type" else {f"mismatch_{fault}"},
                "hang.desync",
            )
        case "order":
            pairs = [
                (one, other)
                for one, other in pairwise(collective)
                if other == one + 1 and program[one].group == program[other].group and program[one].op != program[other].op
            ]
            if not pairs:
                return None
            one, other = rng.choice(pairs)
            program[one], program[other] = program[other], program[one]
            expected = (_odd(program[one], rank), {"order", "mismatch_type"}, "hang.desync")
        case "cycle":
            pairs = [
                (one, one + 1)
                for one in collective
                if one + 1 in collective
                and program[one].group != program[one + 1].group
                and len(set(program[one].group.ranks) & set(program[one + 1].group.ranks)) > 1
                and not program[one].aside
                and not program[one + 1].aside
            ]
            if not pairs:
                return None
            one, other = rng.choice(pairs)
            both = set(program[one].group.ranks) & set(program[other].group.ranks)
            program[one], program[other] = program[other], program[one]
            expected = ({rank} if len(both) > 2 else both, {"cycle", "order"}, "hang.desync")
        case "p2p":
            sends = [place for place in places if program[place].messages]
            if not sends:
                return None
            place = rng.choice(sends)
            item = program[place]
            number = rng.randrange(len(item.messages))
            sender, receiver, size = item.messages[number]
            other_size = (size[0] * 2, *size[1:])
            messages = (*item.messages[:number], (sender, receiver, other_size), *item.messages[number + 1 :])
            program[place] = replace(item, messages=messages)
            expected = ({sender, receiver}, {"p2p_mismatch"}, "hang.desync")
        case _:
            chosen = [place for place in places if not program[place].aside]
            if not chosen:
                return None
            place = rng.choice(chosen)
            first = Run(job, random.Random(seed))
            stalls = frozenset(first.keys[rank][place])
            expected = (set(), {"stuck_all"}, "hang.gpu_fault")
    run = Run(job, random.Random(seed), stops, stalls, lead, late)
    if late is not None and not all(len(run.meetings[key].came) == run.meetings[key].needed - 1 for key in run.keys[rank][stops[rank]]):
        return None  # a batch of which one half lacks its other end
    ranks, names, cause = expected
    return Planted(fault, seed, job, Recording(run, style, rng), frozenset(ranks), frozenset(names), cause, frozenset(without))


def _altered(item: Item, fault: str) -> Item:
    if fault == "type":
        return replace(item, op="broadcast" if item.op == "all_reduce" else "all_reduce")
    if fault == "dtype":
        return replace(item, dtype="Half")
    return replace(item, sent=(item.sent[0] + 2, *item.sent[1:]), received=(item.received[0] + 2, *item.received[1:]))


def _odd(item: Item, rank: int) -> set[int]:
    """The rank itself; both where there is no majority."""
    return {rank} if len(item.group.ranks) > 2 else set(item.group.ranks)
