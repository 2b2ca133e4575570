"""Reading logs: paths in, facts out. The door of this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from memdoctor.errors import InputError
from memdoctor.model import FileRead, InputFile, LogFacts, Signal, Skip
from memdoctor.sources.logs.inputs import sort_out
from memdoctor.sources.logs.one_log import Engine, LogReader, in_turn
from memdoctor.sources.logs.rare import rare
from memdoctor.sources.logs.store import Store
from memdoctor.sources.logs.years import other_years

EMPTY = (
    ". The run wrote nothing there: look at its stderr and at what the launcher and the scheduler printed, "
    "and whether the disk or the quota was full (df -h, quota -s)"
)
NAMED = 5  # inputs named in an error that is about all of them


def read_logs(
    paths: Sequence[str], signals: Sequence[Signal], on_bytes: Callable[[int], None] | None = None, engine: Engine = in_turn
) -> LogFacts:
    """Read files, folders, globs or "-" (stdin) and return what they tell; flight-recorder dumps among them are only named.

    Every engine yields the same. Raises InputError when nothing could be read; what could not be read beside something readable is a Skip.
    """
    named = sort_out(paths)
    skips = named.skips
    store = Store()
    inputs: list[InputFile] = []
    read: list[FileRead] = []
    unread: list[Skip] = []
    reader, logs = LogReader(signals, len(named.logs)), list(enumerate(named.logs))
    with closing(engine(reader, logs, on_bytes)) as engaged:
        outcomes = list(engaged)
    for number in rare(outcomes, logs, reader):
        outcomes[number] = reader(logs[number])
    for number, log in other_years(outcomes, logs).items():
        outcomes[number] = reader(log)
    for outcome in outcomes:
        store.join(outcome.store)
        if outcome.skip is not None:
            unread.append(outcome.skip)
        if outcome.input is not None and outcome.read is not None:
            inputs.append(outcome.input)
            read.append(outcome.read)
    if not inputs and not named.dumps:
        said = "; ".join(f"{skip.source}: {skip.reason}" for skip in [*skips, *unread][:NAMED])
        said += EMPTY if unread and all(skip.reason.startswith("empty") for skip in (*skips, *unread)) else ""
        raise InputError(f"no log could be read: {said}" if said else "nothing to read: name a log file, a folder, or - for standard input")
    return LogFacts(tuple(store), tuple(inputs), (*skips, *unread), store.counts, tuple(read), tuple(named.dumps))
