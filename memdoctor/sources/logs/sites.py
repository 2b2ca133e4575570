"""Where in training an exception was raised, and whose code raised it: judged from its frames by rules/tables/sites.yaml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from memdoctor.lazy import lazy
from memdoctor.records import entity
from memdoctor.sources.logs.site_table import Pattern, Table, load_table
from memdoctor.sources.logs.tracebacks.raised import Frame

UNKNOWN = "unknown"
USER = "user"
MAX_SOURCE = 400  # characters of a source line that are searched

_STDLIB = lazy(
    r"(?i)^<frozen "
    r"|(?:^|/)lib(?:64)?/python3?\.?\d{0,3}/(?!.*(?:site|dist)-packages/)"
    r"|/(?:python3\d{1,2}|(?:mini|ana)conda\d?|miniforge\d?|envs/[^/]+|\.?venv)/lib/(?!site-packages/|python)"  # Windows
    r"|/python3\d{1,2}\.zip/"
)
_INSTALLED = lazy(r"(?:site-packages|dist-packages|\.whl|\.egg)/(?P<package>[^/]+)")


@entity
class _Best:
    """The best site so far; the first of equal priority stays, so frames are offered from the innermost outwards."""

    site: str = UNKNOWN
    priority: int = -1

    def offer(self, site: str, priority: int) -> None:
        if priority > self.priority:
            self.site, self.priority = site, priority


def locate(frames: Sequence[Frame], type_: str, message: str) -> tuple[str, str]:
    """Site (of ``catalog.SITES``) and owner of an exception. ``frames``: the outermost first.

    The owner is the package of the innermost frame that is neither of the standard library nor of a package that the table does not
    list; "user" where there is none, "unknown" without frames. What the exception itself tells beats the frames.
    """
    table = load_table()
    best, owner, hidden, counted = _Best(), "", frozenset[str](), 0
    for frame in reversed(frames):
        own = owner_of(frame.file)
        if own:
            owner, counted = owner or own, counted + 1
        hides: frozenset[str] = frozenset()
        for number in _fitting(_path(frame.file), frame.function):
            rule = table.sites[number]
            if not rule.hides and (rule.site in hidden or rule.priority <= best.priority):
                continue
            if (
                (rule.owner and own not in rule.owner)
                or (rule.within and (not own or counted > rule.within))
                or not _found(rule.source, frame.source)
            ):
                continue
            if rule.hides:
                hides |= rule.hides
            else:
                best.offer(rule.site, rule.priority)
        hidden |= hides
    for hint in table.messages:
        if _found(hint.type, type_) and _found(hint.match, message[:2_000]):
            best.offer(hint.site, hint.priority)
            owner = hint.owner or owner
    if not frames:
        return best.site, "launcher" if best.site == "launch" else UNKNOWN
    return best.site, owner or USER


def caller_of(frames: Sequence[Frame]) -> str:
    """The package that called into the code of an exception's owner (see ``locate``); "" where no frame outside it is known."""
    owner = ""
    for frame in reversed(frames):
        own = owner_of(frame.file)
        if own and owner and own != owner:
            return own
        owner = owner or own
    return ""


@lru_cache(maxsize=4_096)
def owner_of(file: str) -> str:
    """The package whose code ``file`` is: "user", or "" for the standard library and packages that the table does not list."""
    path = _path(file)
    table: Table = load_table()
    if table.launcher.fits(path):
        return "launcher"
    if path.startswith("<eval_with_key>"):
        return "torch"
    if _STDLIB.search(path):
        return ""
    installed = _INSTALLED.findall(path)
    if installed:
        return table.packages.get(installed[-1].removesuffix(".py"), "")
    for owner, pattern in table.checkouts:
        if pattern.fits(path):
            return owner
    return USER


@lru_cache(maxsize=4_096)
def _fitting(path: str, function: str) -> tuple[int, ...]:
    """Numbers of the rules that fit by file and function."""
    name = function.rpartition(".")[2]
    return tuple(number for number, rule in enumerate(load_table().sites) if _fits(rule.file, path) and _fits(rule.function, name))


def _fits(pattern: Pattern | None, text: str) -> bool:
    return pattern is None or pattern.fits(text)


def _found(pattern: str | None, text: str) -> bool:
    if pattern is None:
        return True
    return re.search(pattern, text[: max(MAX_SOURCE, 2_000)]) is not None  # the table is ours: no pattern of it takes long on so little


def _path(file: str) -> str:
    return file.replace("\\", "/")
