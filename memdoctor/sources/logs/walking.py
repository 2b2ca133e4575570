"""From what a person named to files that can be opened: folders, patterns, links, and everything on a disk that is no file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import field

from memdoctor.model import Skip
from memdoctor.records import entity
from memdoctor.sources.logs import kinds
from memdoctor.sources.logs.naming import natural, shown
from memdoctor.sources.logs.stored import STDIN, explain

MOST_FILES = 100_000  # of one folder: the largest jobs keep two files for each of some 16,000 ranks; beyond it is a data set
_LOOK_JSON = 65_536  # a wrapped line is long
_STDIN_NAMES = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_SPECIAL = ((stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))


@entity
class Found:
    """The files found, in order, each once; flight-recorder dumps among them; what was left out; and the folders whose names were all
    looked at."""

    paths: list[str] = field(default_factory=list)
    dumps: list[str] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    walked: set[str] = field(default_factory=set)
    again: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def skip(self, path: str, reason: str) -> None:
        self.skips.append(Skip(shown(path), reason))

    def keep(self, path: str, info: os.stat_result | None) -> None:
        """Take ``path``, unless it is a file that was taken under another name."""
        key = (-1, -1) if info is None else (info.st_dev, info.st_ino)
        if key not in self._seen:
            self._seen.add(key)
            self.paths.append(path)

    def keep_dump(self, path: str, info: os.stat_result) -> None:
        """Take ``path`` as a flight-recorder dump, unless it was taken under another name."""
        if not self.has(info):
            self._seen.add((info.st_dev, info.st_ino))
            self.dumps.append(path)

    def has(self, info: os.stat_result) -> bool:
        """True for a file that was taken; it is not opened again."""
        known = (info.st_dev, info.st_ino) in self._seen
        self.again += known
        return known


def find(argument: str, found: Found) -> None:
    """Add to ``found`` what ``argument`` names: "-", a file, a folder, or a pattern that the shell did not expand."""
    if argument in _STDIN_NAMES:
        found.keep(STDIN, None)
        return
    if argument == "" or "\0" in argument:
        found.skip(argument, "not a path")
        return
    if argument.startswith("~") and not os.path.lexists(argument):
        argument = os.path.expanduser(argument)
    if os.path.lexists(argument):
        _named(argument, found)
        return
    import glob  # nearly always the shell has done it

    if not glob.has_magic(argument):
        _named(argument, found)
        return
    matches = sorted(glob.iglob(argument, recursive=True), key=natural)
    if not matches:
        found.skip(argument, "no file has a name of this pattern")
    for match in matches:
        if "**" in argument and os.path.isdir(match):
            continue  # ** names the folders and the files in them
        _named(match, found)


def _named(path: str, found: Found) -> None:
    """A file or folder that was named: taken whatever it is called."""
    try:
        info = os.stat(path)
    except OSError as error:
        found.skip(path, _no_stat(path, error))
        return
    if stat.S_ISDIR(info.st_mode):
        _walk(path, found)
    elif stat.S_ISFIFO(info.st_mode):
        found.keep(path, info)
    elif not _special(path, info, found) and not found.has(info):
        head = _head(path, found)
        strange = None if head is None else kinds.foreign(head)
        if head is not None and kinds.dump(os.path.basename(path), head):
            found.keep_dump(path, info)
        elif strange is not None:
            found.skip(path, strange.reason)
        elif head is not None:
            found.keep(path, info)


def _walk(root: str, found: Found) -> None:
    """Every log below the folder ``root``."""
    paths: list[str] = []
    odd: set[str] = set()  # those that are taken as dumps only
    skipped, empty = len(found.skips), True
    for path in _files(root, found):
        empty = False
        name = os.path.basename(path)
        if kinds.uninteresting_name(name):
            if not kinds.maybe_dump(name):
                continue
            odd.add(path)
        if len(paths) == MOST_FILES:
            found.skip(root, f"more than {MOST_FILES:,} files: the rest was left out; name the folder of the logs")
            break
        paths.append(path)
    before = len(found.paths) + len(found.dumps) + found.again
    for path in sorted(paths, key=natural):
        _met(path, found, dump_only=path in odd)
    if len(found.paths) + len(found.dumps) + found.again == before and len(found.skips) == skipped:
        found.skip(root, "an empty folder" if empty else "no log in this folder")


def _files(root: str, found: Found) -> Iterator[str]:
    """The paths of what is no folder below ``root``; links to folders are not followed."""
    folders = [root]
    while folders:
        folder = folders.pop()
        found.walked.add(folder)
        try:
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            found.skip(folder, explain(error))
            continue
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                if not kinds.uninteresting_folder(entry.name):
                    folders.append(entry.path)
            else:
                yield entry.path


def _met(path: str, found: Found, *, dump_only: bool) -> None:
    """A file met on a walk: taken where nothing speaks against it. ``dump_only``: its name speaks against a log."""
    name = os.path.basename(path)
    try:
        info = os.stat(path)
    except OSError as error:
        found.skip(path, _no_stat(path, error))
        return
    if stat.S_ISDIR(info.st_mode):
        _link_to_folder(path, found)
    elif stat.S_ISFIFO(info.st_mode):
        found.skip(path, "a FIFO: read only when it is named itself")
    elif not _special(path, info, found) and not found.has(info):
        head = _head(path, found)
        if head is None:
            return
        strange = kinds.foreign(head)
        if kinds.dump(name, head):
            found.keep_dump(path, info)
        elif strange is not None and strange.archive:
            found.skip(path, strange.reason)
        elif strange is None and not dump_only and not kinds.uninteresting_head(name, head):
            found.keep(path, info)


def _link_to_folder(path: str, found: Found) -> None:
    target, here = os.path.realpath(path), os.path.realpath(os.path.dirname(path))
    if here == target or here.startswith(target.rstrip("/") + "/"):
        found.skip(path, "a link back to a folder that it is in: not followed")
    elif target not in {os.path.realpath(folder) for folder in found.walked}:
        found.skip(path, "a link to a folder: not followed; name the folder itself to have it read")


def _special(path: str, info: os.stat_result, found: Found) -> bool:
    if stat.S_ISREG(info.st_mode):  # as nearly always
        return False
    for test, what in _SPECIAL:
        if test(info.st_mode):
            found.skip(path, f"{what}, not a log")
            return True
    return False


def _head(path: str, found: Found) -> bytes | None:
    """The first bytes of a file; None (and a Skip) where it cannot be read."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        found.skip(path, explain(error))
        return None
    try:
        return os.read(opened, _LOOK_JSON if kinds.wraps(path) else kinds.LOOK)
    except OSError as error:
        found.skip(path, explain(error))
        return None
    finally:
        os.close(opened)


def _no_stat(path: str, error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "a loop of links"
    if error.errno == errno.ENOENT and os.path.islink(path):
        return f"a broken link, to {shown(os.readlink(path))}"
    return explain(error)
