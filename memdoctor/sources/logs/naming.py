"""What the names of log files tell: rank, local rank, host, attempt and stream, and only where it is sound.

A number is a rank where the name says so (``rank_3``, ``worker-3``), or where a folder holds two or more files whose names differ in that
number only and run from 0 without a gap, or where that number does so over the files of all nodes. What counts anew on each node, as the
folders of a ``torchrun --log-dir`` tree do, is the local rank, which is the rank too where one node is all there is. Names that count
something else (nodes, runs, parts, pipeline stages) tell no rank.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from memdoctor.lazy import lazy
from memdoctor.records import record
from memdoctor.sources.logs.nodes_in_names import Counted, grids, host_before, side_by_side

_TREE = lazy(
    r"(?P<root>.*)/attempt_(?P<attempt>\d+)/(?P<local>\d+)/(?:(?:filtered_)?std(?:out|err)(?:\.log)?|error\.json)(?:\.\w+)?$",
    re.DOTALL,
    needs=("/attempt_",),
)
_NUMBER = lazy(r"\d+", re.ASCII)
_WORD = lazy(r"([a-z]+)[-_.=]?$")
# The word before "rank" says whose rank it is. LoRA has ranks, too.
_RANK = lazy(
    r"(?<![a-z])(?:(?P<whose>local|node|group|role|tensor|pipeline|data|model|expert|context|sequence|tp|pp|dp|mp|ep|cp|sp|vp|lora|low)[-_.]?|global)?"
    r"rank[-_.=]?(?P<number>\d{1,7})(?!\d|-\d{1,3}(?!\d))",
    needs=("rank",),
)
_WORKER = lazy(r"(?<![a-z])(?<!data[-_])(?<!loader[-_])worker[-_.]?(?P<number>\d{1,7})(?![a-z0-9])", needs=("worker",))
_LEADER = lazy(
    r"(?<![a-z])(?:master|launcher|chief|head)(?![a-z])", needs=("master", "launcher", "chief", "head")
)  # beside one, worker 0 is not rank 0
_ROLE = lazy(r"[a-z_]+[-_]?(\d{1,7})\|(\d{1,5})(?:\.\w+)*", needs=("|",))  # trainer-3|1: role, rank, local rank
_HOST = lazy(r"(?<![a-z0-9])(?:node|host)[-_]?(?P<number>\d+)(?![a-z0-9])", needs=("node", "host"))
_ERR = lazy(r"(?<![a-z])(?:stderr|err)(?![a-z])|\.e\d+(?:[-.]\d+)?$", needs=("err", ".e"))
_STDOUT = lazy(r"(?<![a-z])stdout(?![a-z])|\.o\d+(?:[-.]\d+)?$", needs=("stdout", ".o"))
_OUT = lazy(r"(?<![a-z])out(?![a-z])", needs=("out",))
_LOCAL = frozenset({"gpu", "cuda", "device", "dev", "local"})
_TRY = frozenset({"attempt", "restart", "retry", "try"})
_OTHER = frozenset(
    "node host nodes run exp experiment trial version ver v part chunk shard epoch step iter iteration stage seed fold job array day week phase "
    "tp pp dp mp ep cp sp zero size world split config cfg case test sample".split()
) | {"lr", "bs", "mbs", "gbs", "nodelist", "layer", "layers"}  # fmt: skip
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}  # str.lower changes the length of some names
_ROTATED = lazy(r"(.+)\.(\d{1,4})((?:\.(?:gz|zst|xz|bz2))?)$", re.DOTALL)
# Words after which a number may be a rank although the other files of the family were not named with this one.
_NEUTRAL = _LOCAL | frozenset({"", "log", "out", "err", "stdout", "stderr", "output", "task", "proc", "process", "slurm"})
_STREAMS = 3  # files of one rank: its outputs, and something beside them
_DEPTH = 4  # folders above a file whose names are looked at


@record
class Told:
    """What a name tells. ``unit`` is the set of files among which a local rank is unique: one node's. ``above`` is how many folders above the
    file the one stands whose name tells the rank (0: the file's own), None where none does.
    ``nodes`` is how many units the names in its folder show."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    attempt: int | None = None
    stream: str | None = None
    group: str = ""
    unit: str = ""
    above: int | None = None
    nodes: int = 1


def tell(paths: Sequence[str], beside: Mapping[str, Iterable[str]]) -> list[Told]:
    """What the absolute ``paths`` tell, read together. ``beside`` holds further names in their folders."""
    names: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        folder, name = os.path.split(path)
        names[folder].add(name)
    folders = {folder: _Folder(folder, own, set(beside.get(folder, ()))) for folder, own in names.items()}
    told = side_by_side(paths, [_tell(path, folders[os.path.dirname(path)]) for path in paths])
    units = {one.unit for one in told if one.unit}
    if len(units) == 1 and all(one.nodes == 1 for one in told):
        told = [replace(one, rank=one.local_rank) if one.unit and one.rank is None else one for one in told]
    return told


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """A sort key by which 2 comes before 10."""
    key, at = [], 0
    for match in _NUMBER.finditer(text):
        key.append((text[at : match.start()], int(match[0][:4000])))
        at = match.end()
    return (*key, (text[at:], -1))


def order(path: str, known: Container[str]) -> tuple[tuple[tuple[str, int], ...], int, str]:
    """The sort key of a log: natural, and ``train.log.2``, ``train.log.1``, ``train.log`` (in ``known``) from the oldest part to the newest."""
    match = _ROTATED.match(path)
    if match is not None and match[1] in known:
        return natural(match[1]), -int(match[2]), path
    return natural(path), 0, path


def shown(path: str) -> str:
    """``path`` with what cannot be printed escaped: line ends, control and direction signs, bytes that are not UTF-8."""
    if path.isprintable():
        return path
    return "".join(sign if sign.isprintable() else _escaped(sign) for sign in path)


def _escaped(sign: str) -> str:
    byte = ord(sign) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else sign.encode("unicode_escape").decode()


class _Folder:
    """The names of one folder, with the families of names that differ in one number only."""

    def __init__(self, path: str, given: set[str], beside: set[str]) -> None:
        self.path, self.names = path, given | beside
        names = self.names
        self._given = Counter(_around(match) for name in given for match in _NUMBER.finditer(name))
        self.led = any(_LEADER.search(_low(name)) for name in names)
        self._beginnings: Counter[str] | None = None
        self._families: dict[tuple[str, str], list[int]] = defaultdict(list)
        for name in names:
            for match in _NUMBER.finditer(name):
                self._families[_around(match)].append(int(match[0]))
        self._firsts = {key: _first(numbers) for key, numbers in self._families.items() if len(numbers) > 1}

    @cached_property
    def _parts(self) -> list[str]:
        return [_low(part) for part in reversed(self.path.split("/")[-_DEPTH:])]

    @cached_property
    def host(self) -> str | None:
        """The host that a folder above is called after."""
        return next((part for part in self._parts if _HOST.fullmatch(part)), None)

    @cached_property
    def above(self) -> Told | None:
        """What the names of the folders above tell of a rank."""
        parts = enumerate(self._parts, 1)
        return next((replace(found, above=depth) for depth, part in parts if (found := _by_folder(part)) is not None), None)

    @cached_property
    def _grids(self) -> dict[str, tuple[Counted, int]]:
        return grids(self.names, _OTHER)

    def counted(self, name: str) -> tuple[Counted, re.Match[str]] | None:
        """Whether one of the numbers of ``name`` counts through the files of all nodes or through those of each, and which."""
        found = self._grids.get(name)
        return None if found is None else (found[0], list(_NUMBER.finditer(name))[found[1]])

    def runs(self, name: str) -> list[tuple[re.Match[str], int]]:
        """The numbers of ``name`` that run without a gap from file to file, each with the first of its run (0 or 1)."""
        firsts = [(match, self._firsts.get(_around(match))) for match in _NUMBER.finditer(name)]
        return [(match, first) for match, first in firsts if first is not None]

    def files_of(self, beginning: str) -> int:
        """How many names begin with ``beginning``, in lower case and with a number as its end, and go on with something else than a digit."""
        if self._beginnings is None:
            self._beginnings = Counter(low[: match.end()] for low in map(_low, self.names) for match in _NUMBER.finditer(low))
        return self._beginnings[beginning]

    def given(self, match: re.Match[str]) -> int:
        """How many files of the family were named, not only found beside."""
        return self._given[_around(match)]

    def varies(self, name: str, at: int) -> bool:
        """True where other names differ from ``name`` in the number at ``at`` only."""
        return any(match.start() == at and len(self._families[_around(match)]) > 1 for match in _NUMBER.finditer(name))

    def pattern(self, match: re.Match[str], group: int | str = 0) -> str:
        """The path with a star for the number."""
        return shown(os.path.join(self.path, f"{match.string[: match.start(group)]}*{match.string[match.end(group) :]}"))


def _around(match: re.Match[str]) -> tuple[str, str]:
    return match.string[: match.start()], match.string[match.end() :]


def _first(numbers: list[int]) -> int | None:
    low = min(numbers)
    return low if low <= 1 and sorted(numbers) == list(range(low, low + len(numbers))) else None


@lru_cache(maxsize=16)  # each name is asked for several times in a row
def _low(name: str) -> str:
    return name.translate(_LOWER)


def _tell(path: str, folder: _Folder) -> Told:
    tree = _TREE.match(path)
    name = os.path.basename(path)
    host = _host_of(name, folder) or folder.host
    stream = _stream_of(name, folder)
    if tree is not None:
        stream = "error" if name.startswith("error.json") else stream
        return Told(None, int(tree["local"]), host, int(tree["attempt"]) + 1, stream, shown(tree["root"]), tree["root"])
    told = _by_word(name, folder) or folder.above or _by_family(name, folder)
    return told if host is None and stream is None else replace(told, host=host or told.host, stream=stream)


def _by_word(name: str, folder: _Folder) -> Told | None:
    """What words such as "rank" tell; None where the name has none."""
    low = _low(name)
    role = _ROLE.fullmatch(low)
    if role is not None:
        return Told(rank=int(role[1]), local_rank=int(role[2]))
    ranks = list(_RANK.finditer(low)) if "rank" in low else []
    local = next((match for match in ranks if match["whose"] == "local"), None)
    known = None if local is None else int(local["number"])
    for match in ranks:
        if match["whose"] is None:
            counted = folder.counted(name)
            if counted is not None and counted[0] == "node" and counted[1].start() == match.start("number"):
                return Told(
                    local_rank=int(match["number"]), group=folder.pattern(match, "number"), unit=_unit(folder, match, "number"), nodes=2
                )
            return Told(rank=int(match["number"]), local_rank=known, group=folder.pattern(match, "number"), above=0)
    if local is not None:
        dense = any(run.start() == local.start("number") and first == 0 for run, first in folder.runs(name))
        return Told(local_rank=known, group=folder.pattern(local, "number"), unit=_unit(folder, local, "number") if dense else "")
    if ranks:
        return Told()  # the rank within a group, or a node's: not one of ours
    worker = _WORKER.search(low)
    if worker is not None and folder.files_of(low[: worker.end()]) > _STREAMS:
        return None  # a host whose processes have files of their own: nccl.worker-3.4711
    if worker is not None:
        from_one = any(run.start() == worker.start("number") and first == 1 for run, first in folder.runs(name))
        rank = None if folder.led or from_one else int(worker["number"])
        return Told(rank=rank, group=folder.pattern(worker, "number"), above=0)
    return None


def _by_folder(part: str) -> Told | None:
    match = _RANK.fullmatch(part)
    if match is not None:
        return Told(rank=int(match["number"])) if match["whose"] is None else None
    match = _WORKER.fullmatch(part)
    return None if match is None else Told(rank=int(match["number"]))


def _by_family(name: str, folder: _Folder) -> Told:
    """What a dense run of names tells; no rank where two numbers of the name run."""
    attempt, ranks = None, []
    for match, first in folder.runs(name):
        before = name[: match.start()]
        found = _WORD.search(_low(before))
        word = found[1] if found is not None else ""
        if word in _TRY:
            attempt = int(match[0]) + 1 - first
            continue
        older = before.endswith(".") and before[:-1] in folder.names  # train.log.0 beside train.log: an older part of it
        alike = word in _NEUTRAL or (word not in _OTHER and folder.given(match) > 1)
        if first == 0 and alike and not older:
            ranks.append((match, word))
    counted = folder.counted(name)
    if counted is not None and attempt is None:
        ranks = [(counted[1], "local" if counted[0] == "node" else "")]
    if len(ranks) != 1:
        return Told(attempt=attempt)
    match, word = ranks[0]
    if word in _LOCAL:
        several = counted is not None and counted[0] == "node"
        host = host_before(match) if several else None
        unit = _unit(folder, match)
        return Told(local_rank=int(match[0]), host=host, attempt=attempt, group=folder.pattern(match), unit=unit, nodes=2 if several else 1)
    return Told(rank=int(match[0]), attempt=attempt, group=folder.pattern(match), above=0)


def _unit(folder: _Folder, match: re.Match[str], group: int | str = 0) -> str:
    return os.path.join(folder.path, match.string[: match.start(group)])


def _host_of(name: str, folder: _Folder) -> str | None:
    """``node-02`` out of ``node-02.log``; in the middle of a name (``llama_node4_tp8``) only where there are several."""
    low = _low(name)
    for match in _HOST.finditer(low) if "node" in low or "host" in low else ():
        if (
            match.start() == 0
            or low[match.start() - 1] == "."
            or match.end() in (len(low), low.find(".", match.end()))
            or folder.varies(name, match.start("number"))
        ):
            return match[0]
    return None


def _stream_of(name: str, folder: _Folder) -> str | None:
    low = _low(name)
    if _ERR.search(low):
        return "stderr"
    if _STDOUT.search(low):
        return "stdout"
    if "out" in low and any(f"{name[: match.start()]}err{name[match.end() :]}" in folder.names for match in _OUT.finditer(low)):
        return "stdout"  # an .out alone holds both streams
    return None
