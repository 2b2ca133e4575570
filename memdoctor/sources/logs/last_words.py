"""What a job said last before it failed, where no line of it looks like an error: often the reason, in words that no signal knows, in any language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdoctor.lazy import lazy
from memdoctor.model import Fact, FileRead, Origin
from memdoctor.sources.logs.quoting import quote
from memdoctor.sources.logs.steps import read_step

BACK = 12  # lines before the sign of the end that are looked at ...
MOST = 3  # ... and the last of them that are kept
_NO_WORDS = lazy(r"[\W\d_]*$|(?:srun|slurmstepd|pdsh)[:@]|\s*\+ exit\b")  # rulers, and whoever only tells of the end


def last_words(facts: Sequence[Fact], files: Sequence[FileRead]) -> tuple[Fact, ...]:
    """Facts ``last.words`` of each attempt that failed without an exception or an error-like line, read from the files once more."""
    ends = {fact.attempt: fact for fact in facts if fact.kind == "run.ended" and fact.fields["status"] == "failed"}
    for fact in facts:
        if fact.attempt in ends and _tells_more(fact, ends[fact.attempt]):
            del ends[fact.attempt]
    places = [place for fact in ends.values() if (place := _place(fact, files)) is not None]
    if not places:
        return ()
    wanted: dict[str, set[int]] = {}
    for _, file, last in places:
        wanted.setdefault(file.path, set()).update(range(max(1, last - BACK + 1), last + 1))
    texts = quote(wanted, {file.path: file.opened for file in files if file.opened is not None})
    result: list[Fact] = []
    for fact, file, last in places:
        lines = [number for number in range(max(1, last - BACK + 1), last + 1) if _says(texts.get((file.path, number), ""))]
        for number in lines[-MOST:]:
            text = texts[file.path, number].strip()
            origin = Origin("log", file.path, number, text)
            result.append(
                replace(
                    fact,
                    kind="last.words",
                    fields={"said": text[:500]},
                    origin=origin,
                    time=None,
                    seq=(file.number << 44) | (number << 8),
                    event=f"words:{number}:{file.number}",
                )
            )
    return tuple(result)


def _tells_more(fact: Fact, end: Fact) -> bool:
    """True for an exception, and for an error-like line that is not the launcher's own remark behind the end."""
    if fact.kind == "exception":
        return fact.fields.get("owner") != "launcher"
    return fact.kind == "error.line" and fact.seq <= end.seq


def _place(end: Fact, files: Sequence[FileRead]) -> tuple[Fact, FileRead, int] | None:
    """The file in which the one that ended speaks, and its last line before the end: its own file, or where the end is told."""
    own = next((file for file in files if end.rank is not None and file.rank == end.rank and file.path != end.origin.path), None)
    if own is not None:
        return end, own, own.lines
    file = next((file for file in files if file.path == end.origin.path), None)
    return None if file is None or end.origin.line is None else (end, file, end.origin.line - 1)


def _says(line: str) -> bool:
    return _NO_WORDS.match(line) is None and read_step(line.encode(), bytes) is None
