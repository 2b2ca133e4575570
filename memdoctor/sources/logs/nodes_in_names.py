"""Names of the files of several nodes: which number counts through all of them, the rank, and which begins anew on each, the local rank."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from memdoctor.lazy import lazy

if TYPE_CHECKING:
    from memdoctor.sources.logs.naming import Told

Counted = Literal["all", "node"]
DEPTH = 4  # folders above a file that may be called after its rank
JOBS = 1_000  # a greater number is no node's, where it is not the end of a word as in nid001234
_NUMBER = lazy(r"\d+", re.ASCII)
_WORD = lazy(r"([A-Za-z]+)[-_.=]?$")
_FOLDER = lazy(r"(?i)(?:(?:task|proc|process|gpu)[-_]?)?(\d{1,6})", re.ASCII)
_SWEEP = ("multirun", "sweep", "sweeps")  # below them the folders are runs: Hydra counts them from 0
# Folders that hold one run each, not one node each.
_RUN = lazy(
    r"(?i)(?:.*[^a-z])?(?:attempt|restart|retry|try|run|exp|experiment|trial|version|job|seed|fold|old|new|before|after|good|bad|baseline|slurm|v)"
    r"[-_.]?\d*|.*\d{4}-?\d\d-?\d\d.*|\d{4,}"
)
_HOST = lazy(r"(?i)(?=.*[a-z])(?=.*\d)[a-z0-9][a-z0-9.-]*|\d+(?:\.\d+){3}")


def grids(names: Iterable[str], others: Container[str]) -> dict[str, tuple[Counted, int]]:
    """Of names that differ in two numbers or more: which number counts through all files ("all") or through those of each node ("node").

    Numbers are given by their place within the name. Those after a word of ``others`` count something else.
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[_NUMBER.sub("#", name)].append(name)
    found: dict[str, tuple[Counted, int]] = {}
    for shape, group in alike.items():
        if shape.count("#") < 2 or len(group) < 3:
            continue
        rows = [tuple(int(number[:18]) for number in _NUMBER.findall(name)) for name in group]
        varying = [column for column in range(len(rows[0])) if len({row[column] for row in rows}) > 1]
        if len(varying) < 2 or len(set(rows)) < len(rows):
            continue
        counting = [column for column in varying if _word(group[0], column) not in others]
        ranks = [column for column in counting if _runs([row[column] for row in rows])]
        told: tuple[Counted, int] | None = None
        if len(ranks) == 1 and any(1 < len({row[column] for row in rows}) < len(rows) for column in varying):
            told = ("all", ranks[0])
        elif not ranks and not any(_counts_runs(group[0], rows, column) for column in varying):
            locals_ = [column for column in counting if _runs_in_each(rows, column)]
            told = ("node", locals_[-1]) if locals_ else None  # first the node, then its processes
        if told is not None:
            found.update(dict.fromkeys(group, told))
    return found


def _word(name: str, column: int) -> str:
    match = list(_NUMBER.finditer(name))[column]
    word = _WORD.search(name, 0, match.start())
    return "" if word is None else word[1].lower()


def _counts_runs(name: str, rows: Sequence[tuple[int, ...]], column: int) -> bool:
    """True for the numbers of jobs, and for what a word such as "run" counts."""
    at = list(_NUMBER.finditer(name))[column].start()
    return _RUN.fullmatch(_word(name, column)) is not None or (max(row[column] for row in rows) >= JOBS and not name[:at][-1:].isalpha())


def _runs(numbers: Sequence[int]) -> bool:
    """From 0 without a gap, each once."""
    return len(numbers) > 1 and sorted(numbers) == list(range(len(numbers)))


def _runs_in_each(rows: Sequence[tuple[int, ...]], column: int) -> bool:
    """From 0 without a gap in each set of files that are alike in all other numbers."""
    nodes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for row in rows:
        nodes[row[:column] + row[column + 1 :]].append(row[column])
    return len(nodes) > 1 and all(map(_runs, nodes.values()))


def host_before(match: re.Match[str]) -> str | None:
    """The host that a name such as ``gpu-07.3.log`` begins with, before the local rank."""
    name = match.string[: match.start()].rstrip("-_.")
    return name if name[-1:].isdigit() and _HOST.fullmatch(name) and not _RUN.fullmatch(name) else None


def side_by_side(paths: Sequence[str], told: Sequence[Told]) -> list[Told]:
    """``told`` with what the folders show beside each other: some are called 0, 1, 2 ... after ranks, others each hold the local ranks of a node."""
    split = [path.split("/") for path in paths]
    if len({tuple(parts[:-1]) for parts in split}) < 2:
        return list(told)
    known = _numbered(split, told)
    folders: dict[str, set[str]] = defaultdict(set)
    for parts in split:
        for depth in range(1, min(DEPTH, len(parts) - 1) + 1):
            folders["/".join(parts[: len(parts) - 1 - depth])].add(parts[-1 - depth])
    known = [_not_a_worker(parts, one, folders) for parts, one in zip(split, known, strict=True)]
    return _nodes(split, known)


def _numbered(split: Sequence[Sequence[str]], told: Sequence[Told]) -> list[Told]:
    """The rank of files whose own names tell none, by folders that are numbered without a gap and hold the same."""
    alike: dict[tuple[str, str, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, (parts, one) in enumerate(zip(split, told, strict=True)):
        if one.rank is not None or one.local_rank is not None or one.unit or not _SETS.isdisjoint(parts):
            continue
        for depth in range(1, min(DEPTH, len(parts) - 1) + 1):
            match = _FOLDER.fullmatch(parts[-1 - depth])
            if match is not None:
                at = len(parts) - 1 - depth
                around = "/".join(parts[:at]) + "/" + match[0][: match.start(1)], "/".join(parts[at + 1 :])
                alike[*around, depth][int(match[1])].append(number)
                break
    result = list(told)
    for (_, _, depth), numbers in alike.items():
        if _runs(list(numbers)):
            for rank, files in numbers.items():
                for number in files:
                    result[number] = replace(told[number], rank=rank, above=depth)
    return result


_SETS = frozenset(_SWEEP)


def _not_a_worker(parts: Sequence[str], one: Told, folders: Mapping[str, set[str]]) -> Told:
    """Without the rank that a folder ``worker-3`` tells where such folders begin with 1, or where a master stands beside them."""
    if not one.above or one.rank is None:
        return one
    at = len(parts) - 1 - one.above
    if "worker" not in parts[at].lower():
        return one
    beside = [name.lower() for name in folders["/".join(parts[:at])]]
    numbers = {int(_NUMBER.findall(name)[-1]) for name in beside if "worker" in name and _NUMBER.search(name)}
    led = any(word in name for name in beside for word in ("master", "chief", "launcher", "head"))
    return replace(one, rank=None) if led or (len(numbers) > 1 and min(numbers) == 1) else one


def _nodes(split: Sequence[Sequence[str]], told: Sequence[Told]) -> list[Told]:
    """Where several folders hold the same ranks each is a node, and the ranks are local; runs that follow each other are none."""
    holders: dict[tuple[str, int | None], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, (parts, one) in enumerate(zip(split, told, strict=True)):
        if one.rank is not None and one.above is not None:
            at = len(parts) - 1 - one.above
            holders["/".join(parts[at:]), one.attempt]["/".join(parts[:at])].append(number)
    result = list(told)
    for folders in holders.values():
        if len(folders) < 2:
            continue
        above = [folder.split("/") for folder in folders]
        same = next((at for at, parts in enumerate(zip(*above, strict=False)) if len(set(parts)) > 1), min(map(len, above)))
        names = [parts[same] if len(parts) > same else "" for parts in above]
        if any(_RUN.fullmatch(name) for name in names):
            continue
        for (folder, files), name in zip(folders.items(), names, strict=True):
            for number in files:
                one = told[number]
                host = one.host or (name if _HOST.fullmatch(name) else None)
                result[number] = replace(one, rank=None, local_rank=one.rank, host=host, unit=folder)
    return result
