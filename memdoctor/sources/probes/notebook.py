"""Where a probe writes what it finds. What was written before a probe hung or failed is kept."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memdoctor import catalog
from memdoctor.model import Fact, Origin, Skip

LONGEST_EXCERPT = 400  # characters


def source_of(probe: str) -> str:
    """The ``source`` of a fact's origin that says which probe yielded it."""
    return f"probe.{probe}"


@dataclass(slots=True)
class Notebook:
    """The facts and skips of one probe on one host."""

    probe: str
    host: str
    facts: list[Fact] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    at: str = ""  # what is being looked at, told where it hangs
    done: bool = False

    def add(
        self, kind: str, *, path: str, excerpt: str = "", line: int | None = None, fields: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        """A fact, of ``fields`` and ``more``; those that are None are unknown and left out. ``path`` is where it was learnt, ``excerpt`` what
        stands there.
        """
        known = {name.rstrip("_"): value for name, value in {**(fields or {}), **more}.items() if value is not None}
        text = " ".join(excerpt.split())[:LONGEST_EXCERPT]
        origin = Origin(source_of(self.probe), path, line, text)
        self.facts.append(Fact(kind, catalog.with_computed(kind, known), origin, host=self.host))

    def skip(self, reason: str, *kinds: str) -> None:
        """Something could not be looked at."""
        self.skips.append(Skip(self.probe, reason, kinds))

    def try_each(self, *steps: Callable[[], None]) -> None:
        """Take several steps, each of which may fail by itself."""
        for step in steps:
            self.at = step.__name__.strip("_").replace("_", " ")
            try:
                step()
            except Exception as error:
                self.skip(f"{self.at}: {say(error)}")
        self.at = ""


def say(error: BaseException) -> str:
    """An error in a few words."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}{f': {error.filename}' if error.filename else ''}"
    text = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def host_name() -> str:
    """The name of this host, without its domain."""
    return socket.gethostname().partition(".")[0] or "localhost"


def read_text(path: str, limit: int = 1 << 20) -> str | None:
    """The text of a small file of the kernel or of a configuration; None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return None


def read_number(path: str) -> int | None:
    """The first whole number in a file; None where there is none."""
    match = re.search(r"-?\d+", read_text(path, 256) or "")
    return int(match[0]) if match else None
