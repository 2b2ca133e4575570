"""``--redact``: a report that may be shown to strangers.

Hosts, addresses, users, private parts of paths and secrets are replaced, each by the same stand-in wherever it stands (``host-1``,
``ip-2``, ``user-1``, ``dir-3``). Numbers, ranks, bus ids and versions stay, so that the evidence keeps its meaning.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from memdoctor.model import Report
from memdoctor.report.redact_hosts import COMMON_WORDS, hide_addresses, hosts_in, is_private, users_in, words
from memdoctor.report.redact_paths import hide_path, hide_paths
from memdoctor.report.redact_places import hide_places, machines_in
from memdoctor.report.redact_secrets import hide_secrets

# Fields whose values come from memdoctor itself, never from an input.
_OUR_OWN = frozenset(
    "id rule cause severity confidence action state explained_by risk repro framework root_cause candidates kinds frameworks versions iso epoch".split()
)
# Arguments of a training job whose values name a person, a project or a run.
_PRIVATE_ARGUMENT = re.compile(
    r"(?i)wandb.?(project|entity|exp|run|name|group)|(job|run|exp(eriment)?|project)_?name|user_?name|api.?key|token$|password|secret"
)


def redact(report: Report) -> Report:
    """``report`` with everything private replaced; see the head of this file."""
    names = _Names()
    _walk(report, names, "")  # learns the names, so that the second round also finds them where nothing gives them away
    redacted = _walk(report, names, "")
    assert isinstance(redacted, Report)
    return redacted


def _walk(value: Any, names: _Names, field: str) -> Any:
    if field in _OUR_OWN or value is None:
        return value
    if isinstance(value, str):
        if field == "path":
            return names.path(value)
        return names.host(value) if field in ("hosts", "hosts_to_exclude") else names.text(value)
    if isinstance(value, tuple):
        return tuple(_walk(each, names, field) for each in value)
    if isinstance(value, list):
        return [_walk(each, names, field) for each in value]
    if isinstance(value, Mapping):
        return {names.text(str(key)): _argument(str(key), each, names) for key, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{each.name: _walk(getattr(value, each.name), names, each.name) for each in dataclasses.fields(value)}
        )
    return value


def _argument(key: str, value: Any, names: _Names) -> Any:
    if isinstance(value, str) and value and _PRIVATE_ARGUMENT.search(key):
        return names.name("name", value)
    return _walk(value, names, "")


class _Names:
    """The stand-ins given so far: ``(kind, name) -> kind-N``."""

    def __init__(self) -> None:
        self._given: dict[str, dict[str, str]] = {"host": {}, "user": {}}
        self._paths: dict[str, str] = {}
        self._stand_ins: set[str] = set()
        self._patterns: dict[str, tuple[int, re.Pattern[str] | None]] = {}

    def name(self, kind: str, private: str) -> str:
        if private in self._stand_ins:
            return private
        for known in (kind, "host", "user"):  # a folder may be named after a host or a user
            if private in self._given.get(known, ()):
                return self._given[known][private]
        given = self._given.setdefault(kind, {})
        given[private] = f"{kind}-{len(set(given.values())) + 1}"
        self._stand_ins.add(given[private])
        return given[private]

    def host(self, host: str) -> str:
        """A host name, which may be an address; ``n7.cluster`` and ``n7`` are one host."""
        hidden = hide_addresses(host, self.name)
        if hidden != host or not is_private(host):
            return hidden
        short = host.partition(".")[0]
        stand_in = self.name("host", short if re.search(r"[\d-]", short) and is_private(short) else host)
        return self._given["host"].setdefault(host, stand_in)

    def path(self, path: str) -> str:
        """The path of an input."""
        hidden = self._words(hide_path(path, self.name))
        if hidden != path:
            self._paths[path] = hidden
        return hidden

    def text(self, text: str) -> str:
        text = hide_secrets(hide_places(self._replace("path", self._paths, text), self.name), self.name)
        for host in (*hosts_in(text), *machines_in(text)):
            self.host(host)
        for user in users_in(text):
            self.name("user", user)
        return self._words(hide_addresses(hide_paths(text, self.name), self.name))

    def _words(self, text: str) -> str:
        users = {user: hidden for user, hidden in self._given["user"].items() if len(user) > 2 and user.lower() not in COMMON_WORDS}
        return self._replace("user", users, self._replace("host", self._given["host"], text))

    def _replace(self, kind: str, known: Mapping[str, str], text: str) -> str:
        """``text`` with every whole word that is in ``known`` replaced."""
        size, pattern = self._patterns.get(kind, (0, None))
        if size != len(known):
            pattern = words(known)
            self._patterns[kind] = (len(known), pattern)
        return text if pattern is None else pattern.sub(lambda match: known[match[0]], text)
