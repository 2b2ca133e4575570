"""From the facts of the logs to the story of the job: attempts, places, endings, numerics; the door of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memdoctor.derive.attempts import Key, by_attempt, number_attempts, recount
from memdoctor.derive.devices import name_xids
from memdoctor.derive.endings import ended_fact, how_it_ended, is_debris
from memdoctor.derive.joined import begin_of_steps
from memdoctor.derive.numerics import numerics
from memdoctor.derive.placement import placed, ranks_seen
from memdoctor.derive.run import describe
from memdoctor.derive.series import Rows, tell_series
from memdoctor.derive.steps import Steps, steps_of
from memdoctor.model import AttemptInfo, Ended, Fact, FileRead, LogFacts, Marks, Origin, Run, Skip, StepMark, Timeline
from memdoctor.records import record

BALANCE = ("rank.memory", "rank.parameters", "timer", "rank.speed", "pipeline.wait")  # kinds that tell how even the ranks are

EACH = 512  # files whose step lines are told of each; of more only those with trouble


@record
class Story:
    facts: tuple[Fact, ...]
    counts: Mapping[Key, int]
    run: Run
    timeline: Timeline
    series: Rows
    skips: tuple[Skip, ...] = ()


def tell(logs: LogFacts, dumped: Sequence[Fact] = ()) -> Story:
    """All facts, with derived ones added, in reading order; the run; and its time line.

    ``dumped`` are the facts of flight-recorder dumps: they tell of the end of the job, so of the last attempt that failed by itself.
    """
    files: Sequence[FileRead] = logs.files
    facts, parts_of = number_attempts(logs.facts, files)
    count = len(facts)
    facts, files = placed([*facts, *dumped], files)
    facts, dumped = facts[:count], facts[count:]
    facts, matches = _allocations(name_xids(facts))
    counts = recount(logs.counts, logs.facts, facts)
    steps = steps_of(files, parts_of)
    attempts = max([1, *(fact.attempt for fact in facts), *steps])
    derived: list[Fact] = list(matches)
    broken: list[Skip] = []
    infos: list[AttemptInfo] = []
    owned = by_attempt(facts)
    for attempt in range(1, attempts + 1):
        own = owned.get(attempt, [])
        parts = steps.get(attempt, [])
        few = len(parts) > EACH
        _find_joined(own, parts)
        marks = Marks(
            sorted(
                (mark for part in parts for mark in (*part.marks(part.file.rank, few=few), *part.own_marks())), key=lambda mark: mark.seq
            )
        )
        status, shown_by = how_it_ended(own, marks, files, last=attempt == attempts)
        debris = attempt - 1 if attempt > 1 and not marks and is_debris(own) else None
        derived.extend(_balance(attempt, own, facts))
        try:
            derived.extend(_hangs(own, facts, files, marks))
        except Exception as error:  # time-outs nobody thought of must not cost the answer that other lines give
            broken.append(Skip("what the ranks waited for", f"failed: {type(error).__name__}: {error}"))
        derived.extend(_nccl(own, marks, status, facts, files, attempt == attempts))
        derived.extend(_live(own))
        infos.append(AttemptInfo(attempt, status, debris, marks))
        if files:
            derived.append(ended_fact(attempt, status, shown_by, files))
        for number, part in enumerate(parts):
            if number >= EACH and part.is_fine():
                continue
            derived.append(numerics(attempt, part, finished=status == "completed"))
            low, high = part.iterations()
            derived.append(_progress(attempt, part.file.path, low, high, len(part), part.seq(len(part) - 1), part.line(len(part) - 1)))
    series = tell_series(steps, facts)
    derived.extend(series.facts)
    last = next((info.number for info in reversed(infos) if info.debris_of is None), attempts)
    facts = [*facts, *(fact if fact.attempt == last else replace(fact, attempt=last) for fact in dumped)]
    everything = sorted([*facts, *derived], key=_place)
    if series.failed is not None:
        broken.append(Skip("series over time", f"failed: {series.failed}"))
    run = describe(facts, files, steps, infos[-1].status, attempts, len(ranks_seen(facts, files)))
    return Story(tuple(everything), counts, run, Timeline(tuple(infos)), series.rows, tuple(broken))


def _find_joined(own: Sequence[Fact], parts: Sequence[Steps]) -> None:
    """Note of step lines where the part of a joined file begins that holds them. A file of one rank has but one part."""
    shared = {part.file.number: part for part in parts if part.file.rank is None and len(part.file.ranks) > 1}
    by_file: dict[int, list[Fact]] = {}
    for fact in own if shared else ():
        by_file.setdefault(fact.seq >> 44, []).append(fact)
    for number, part in shared.items():
        part.since = begin_of_steps(by_file.get(number, ()), part.seq(0), part.seq(len(part) - 1))


def _place(fact: Fact) -> tuple[int, int]:
    """In reading order; what step lines tell also by the step, as a bar draws all of them in one line."""
    step = fact.fields.get("iteration") if fact.kind.startswith("series.") else None
    return (fact.seq, step if isinstance(step, int) else -1)


# What follows is asked for where the logs hold such facts at all: most hold none, and a start need not import it.


def _allocations(facts: list[Fact]) -> tuple[list[Fact], list[Fact]]:
    if not any(fact.kind == "cuda.oom" for fact in facts):
        return facts, []
    from memdoctor.derive.allocation import name_allocations

    return name_allocations(facts)


def _balance(attempt: int, own: Sequence[Fact], facts: Sequence[Fact]) -> list[Fact]:
    if not any(fact.kind in BALANCE for fact in own):
        return []
    from memdoctor.derive.stages.balance import balance

    return balance(attempt, own, [fact for fact in facts if fact.attempt < attempt])


def _hangs(own: Sequence[Fact], facts: Sequence[Fact], files: Sequence[FileRead], marks: Sequence[StepMark]) -> list[Fact]:
    if not any(fact.kind == "watchdog.timeout" for fact in own):
        return []
    from memdoctor.derive.hangs import hang_facts

    return hang_facts(own, facts, files, marks)


def _nccl(
    own: Sequence[Fact], marks: Sequence[StepMark], status: Ended, facts: Sequence[Fact], files: Sequence[FileRead], last: bool
) -> list[Fact]:
    if not any(fact.kind == "nccl.setup" for fact in own):
        return []
    from memdoctor.derive.nccl_setup import setup_facts

    world = max((fact.fields.get("world_size") or 0 for fact in facts if fact.kind == "run.world"), default=0)
    return setup_facts(own, marks, status, world or None, files, last=last)


def _live(own: Sequence[Fact]) -> list[Fact]:
    if not any(fact.kind in ("process.stack", "thread.stack", "ras.section") for fact in own):
        return []
    from memdoctor.derive.live import live_facts

    return live_facts(own)


def after_files(files: Sequence[FileRead]) -> int:
    """The first ``Fact.seq`` behind all lines of all files."""
    return (max((file.number for file in files), default=-1) + 1) << 44


def _progress(attempt: int, path: str, low: int, high: int, lines: int, seq: int, line: int) -> Fact:
    return Fact(
        "progress",
        {"first": low, "last": high, "lines": lines},
        Origin("log", path, line, ""),
        attempt=attempt,
        seq=seq,
        event=f"progress:{attempt}:{path}",
    )
