"""The process groups of one dump: what an entry calls its group, and which group of the job that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any

from memdoctor.model import ProcessGroup
from memdoctor.sources.dumps.fields import number, rank_list, text

DEFAULT = "default_pg"
Ranks = dict[str, tuple[int, ...] | None]  # what was read of a list of ranks before; hundreds of dumps repeat the same ones


class Groups:
    """Group of an entry, by the name that the entry gives, or (before torch 2.4) by the rank's own number of the group."""

    def __init__(self, config: Any, known: Ranks) -> None:
        self.by_key: dict[str, ProcessGroup] = {}
        self._named: dict[str, ProcessGroup] = {}
        self._numbered: dict[int, ProcessGroup] = {}
        for name, told in config.items() if isinstance(config, Mapping) else ():
            if not isinstance(name, str):
                continue
            fields = told if isinstance(told, Mapping) else {"ranks": told}
            ranks = _ranks(fields.get("ranks"), known)
            if ranks is not None:
                # Groups that were split off one group at the same moment share their name, so the ranks belong to the key.
                self._add(ProcessGroup(intern(f"{text(name)}|{','.join(map(str, ranks))}"), text(name), text(fields.get("desc")), ranks))

    def keys(self, entries: Sequence[Mapping[str, Any]]) -> list[str]:
        """The key of the group of each entry."""
        try:
            return [self._named[entry["process_group"][0]].key for entry in entries]
        except (KeyError, TypeError, IndexError):  # groups that are not listed, or are told by number
            return [self.of(entry).key for entry in entries]

    def of(self, entry: Mapping[str, Any]) -> ProcessGroup:
        """The group of an entry."""
        told = entry.get("process_group")
        if isinstance(told, (list, tuple)) and told and isinstance(told[0], str):
            group = self._named.get(told[0])
            return group if group is not None else self._unlisted(text(told[0]), text(told[1]) if len(told) > 1 else "")
        local = number(entry.get("pg_id"), -1)
        group = self._numbered.get(local)
        if group is None:
            group = self._numbered[local] = self._by_number(local)
        return group

    def _by_number(self, local: int) -> ProcessGroup:
        """The first group that a rank makes is the one of all ranks; the numbers of the others mean something else on each rank."""
        made = sorted(self._named.values(), key=lambda group: int(group.name)) if all(name.isdecimal() for name in self._named) else []
        if 0 <= local < len(made):  # a rank numbers its groups in the order in which they are made, and so are their names
            return made[local]
        if local == 0:
            return self._named.get("0") or self._unlisted("0", DEFAULT)
        group = ProcessGroup(intern(f"#{local}|?"), f"#{local}", "", None, shared=False)
        self.by_key[group.key] = group
        return group

    def _unlisted(self, name: str, desc: str) -> ProcessGroup:
        return self._add(ProcessGroup(intern(f"{name}|?"), name, desc))

    def _add(self, group: ProcessGroup) -> ProcessGroup:
        self.by_key[group.key] = group
        self._named[group.name] = group
        return group


def _ranks(value: Any, known: Ranks) -> tuple[int, ...] | None:
    if not isinstance(value, str):
        return rank_list(value)
    if value not in known:
        known[value] = rank_list(value)
    return known[value]


def rank_by_groups(groups: Sequence[ProcessGroup]) -> int | None:
    """The one rank that is in all of the groups; None where there are several, or where only one group is told."""
    members = [set(group.ranks) for group in groups if group.ranks is not None]
    common = set.intersection(*members) if len(members) > 1 else set()
    return next(iter(common)) if len(common) == 1 else None
