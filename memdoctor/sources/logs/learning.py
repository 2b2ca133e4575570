"""Which of the ambiguous prefixes a log uses, told from a sample of its lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import pairwise

from memdoctor.lazy import lazy
from memdoctor.sources.logs.prefix_table import AMBIGUOUS, Family

SHARE = 0.8  # of the sample's non-empty lines must have the prefix; the rest is launcher chatter
FEWEST = 3  # lines of a sample that can teach anything
GPUS = 8  # of a node: a greater number in "[GPU12]" is no device of a node, it counts through the job
LONG = 40  # lines from which on the second half is asked as well: a batch script talks before its job does
_NAMES = frozenset(family.name for family in AMBIGUOUS if "(?P<host>" in family.pattern or "(?P<role>" in family.pattern)
LISTED = 10  # numbers that grow from line to line are those of steps or of a list
_ORDINARY = lazy(
    r"(?i)(?:debug|info|warn(?:ing)?|error|critical|fatal|note|epoch|iter(?:ation)?|step|layer|stage|rank|loss|top|srun|slurmstepd|torchrun|make"
    r"|nvidia-(?:nvswitch|nvlink|uvm|modeset|peermem|drm|fs))[-_.\d]*\Z"
)
# What the program that puts labels before the lines of others says itself has none.
_LABELLERS = ("srun", "slurmstepd", "salloc", "sbatch", "scancel", "clush", "mpirun", "mpiexec", "prterun", "pdsh@")
_OF_THE_LABELLER = lazy(rf"(?:{'|'.join(_LABELLERS)}[\w.-]+): ", needs=_LABELLERS)
# A word without a digit or hyphen is more likely a word, a number alone a task.
_HOST = lazy(r"localhost\Z|\d+(?:\.\d+){3}\Z|(?=[^A-Za-z]*[A-Za-z])[^\d-]*[\d-]")


def recognise(rests: Sequence[str], taken: frozenset[str], *, numbers: bool = False) -> Family | None:
    """The ambiguous family that most of ``rests`` begin with, narrowed to the names seen; None if none does.

    ``rests`` are the non-empty lines of a sample without the prefixes known so far, ``taken`` the families found before. ``numbers``: only
    those that number processes.
    """
    if numbers:
        taken |= _NAMES
    if any(map("\n".join(rests).__contains__, _LABELLERS)):
        rests = [rest for rest in rests if not _OF_THE_LABELLER.match(rest)]
    found = _most(rests, taken)
    return found if found is not None or len(rests) < LONG else _most(rests[len(rests) // 2 :], taken)


def _most(rests: Sequence[str], taken: frozenset[str]) -> Family | None:
    if len(rests) < FEWEST:
        return None
    best: tuple[int, Family] | None = None
    for family in AMBIGUOUS:
        if family.name in taken:
            continue
        matches = _matches(family, rests)
        if matches is None or (best is not None and len(matches) <= best[0]):
            continue
        narrowed = _narrow(family, matches)
        if narrowed is not None:
            best = len(matches), narrowed
    return None if best is None else best[1]


def _matches(family: Family, rests: Sequence[str]) -> list[re.Match[str]] | None:
    """The matches of the family; None where they are fewer than SHARE of ``rests``, which mostly shows soon, and before it is compiled."""
    matches: list[re.Match[str]] = []
    missing = 0
    for rest in rests:
        found = _compiled(family.pattern)(rest) if family.may_begin(rest) and family.may_match(rest) else None
        if found is not None:
            matches.append(found)
            continue
        missing += 1
        if len(rests) - missing < SHARE * len(rests):
            return None
    return matches


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.A).match


def _narrow(family: Family, matches: list[re.Match[str]]) -> Family | None:
    groups = matches[0].re.groupindex
    if family.stamp:
        return family
    if "role" in groups:
        roles = {match["role"] for match in matches}
        if len(roles) > 1 and (family.name == "role_tee" or len(roles) > len(matches) / 3):
            return None
        if family.name == "role_tee":
            (role,) = roles
            return None if _ORDINARY.match(role) else _with(family, r"(?P<role>[A-Za-z_]+)", re.escape(role))
        family = _with(family, r"(?P<role>[a-z0-9][a-z0-9-]{0,62})", _any_of(roles))
    if "host" in groups:
        hosts = {match["host"] for match in matches}
        if len(_shapes(hosts)) > max(1, len(matches) / 3) or any(_ORDINARY.match(host) or not _HOST.match(host) for host in hosts):
            return None
        start = family.pattern.index("(?P<host>")
        end = family.pattern.index("})", start) + 2
        return _with(family, family.pattern[start:end], f"(?P<host>{_any_of(hosts)})")
    numbers = [int(match["task" if "task" in groups else "rank"]) for match in matches]
    counts_up = all(after == before + 1 for before, after in pairwise(numbers))
    if counts_up or (len(numbers) >= LISTED and all(after > before for before, after in pairwise(numbers))):
        return None  # a numbered listing
    if family.name == "gpu_words" and max(numbers) < GPUS:
        return Family(family.name, family.first, family.second, family.pattern.replace("(?P<rank>", "(?P<local>"), "local")
    return family


def _with(family: Family, old: str, new: str) -> Family:
    return Family(family.name, family.first, family.second, family.pattern.replace(old, new), family.tag)


def _any_of(names: Collection[str]) -> str:
    """A pattern for the names seen; numbers in them may be others: node 5 may print its first line late."""
    return f"(?:{'|'.join(sorted(_shapes(names), key=len, reverse=True))})"


def _shapes(names: Collection[str]) -> set[str]:
    return {re.sub(r"\d+", r"\\d+", re.escape(name)) for name in names}
