"""What a report of NCCL's RAS says of single ranks: who has launched fewer operations, and who does not answer.

Its lines are those of src/ras/client_support.cc. The ranks are those of the communicator; the largest, number 0-0, is taken for that of the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memdoctor.derive.live.telling import verdict
from memdoctor.model import Fact

_KIND = re.compile(r"Communicator ranks have different (\w+) operation counts")
_MANY = re.compile(r"(\d+) ranks have launched up to operation (\d+)|(\d+) ranks have not launched any operations")
_ONE = re.compile(r"Rank (\d+) has (?:launched up to operation (\d+)|(not) launched any operations) -- (.*)")
_RANK = re.compile(r"Rank (\d+) -- (.*)")
_PROCESS = re.compile(r"Process (\d+) on node (\S+) managing GPU")
_WHERE = re.compile(r"managed by process (\d+) on node (\S+)")


def ras_facts(facts: Sequence[Fact]) -> list[Fact]:
    """``live.verdict``: behind, silent; of communicators of a part of the job only where the report has no finding on that of the whole."""
    sections = [fact for fact in facts if fact.kind == "ras.section" and fact.fields.get("name") in ("mismatch", "incomplete")]
    whole = [fact for fact in sections if fact.fields.get("group") == 0]
    found: list[Fact] = []
    for section in whole or sections[:1]:
        read = _behind if section.fields["name"] == "mismatch" else _silent
        found += read(section, whole_job=bool(whole))
    for section in facts:
        if section.kind == "ras.section" and section.fields.get("name") == "dead":
            found += _dead(section)
    return found


def _dead(section: Fact) -> list[Fact]:
    """Processes that the others have given up; which ranks they were is not said."""
    named = [match for line in section.fields.get("values") or {} if (match := _PROCESS.match(line)) is not None]
    return [verdict(section, {"name": "silent", "of_pid": int(match[1]), "node": match[2]}, number=int(match[1])) for match in named]


def _behind(section: Fact, *, whole_job: bool) -> list[Fact]:
    counts: list[tuple[str, int, int, list[tuple[int, str]]]] = []  # operation kind, its number, how many ranks, the ones that are named
    kind = ""
    for line in section.fields.get("values") or {}:
        started, many, one, rank = _KIND.match(line), _MANY.match(line), _ONE.match(line), _RANK.match(line)
        if started is not None:
            kind = started[1]
        elif many is not None:
            counts.append((kind, int(many[2] or 0), int(many[1] or many[3]), []))
        elif one is not None:
            counts.append((kind, int(one[2] or 0), 1, [(int(one[1]), one[4])]))
        elif rank is not None and counts:
            counts[-1][3].append((int(rank[1]), rank[2]))
    return list(_told(section, counts, whole_job))


def _told(section: Fact, counts: Sequence[tuple[str, int, int, list[tuple[int, str]]]], whole_job: bool) -> Iterator[Fact]:
    for number, (kind, operation, _, named) in enumerate(counts):
        alike = [entry for entry in counts if entry[0] == kind]
        ahead = max(entry[1] for entry in alike)
        if operation >= ahead:
            continue
        waiting = sum(entry[2] for entry in alike if entry[1] == ahead)
        for rank, where in named:
            yield _verdict(
                section,
                rank,
                where,
                {"name": "behind", "op": kind, "operation": operation, "usual": ahead, "waiting": waiting},
                whole_job,
                number,
            )


def _silent(section: Fact, *, whole_job: bool) -> list[Fact]:
    named = [found for line in section.fields.get("values") or {} if (found := _RANK.match(line)) is not None]
    return [_verdict(section, int(found[1]), found[2], {"name": "silent"}, whole_job, 0) for found in named]


def _verdict(section: Fact, rank: int, where: str, fields: dict[str, object], whole_job: bool, number: int) -> Fact:
    place = _WHERE.search(where)
    if place is not None:
        fields |= {"of_pid": int(place[1]), "node": place[2]}
    return verdict(section, {**fields, "of_rank": rank}, rank if whole_job else None, number * 100_000 + rank)
