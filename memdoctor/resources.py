"""Where memdoctor's own data lies, and where it may keep a cache. Paths are texts here: a start does without pathlib."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from memdoctor.errors import MemdoctorError

if TYPE_CHECKING:
    from pathlib import Path

_HERE = os.path.dirname(os.path.realpath(__file__))


def rules_path(*parts: str) -> str:
    """The folder of the built-in rules, or the path of what ``parts`` name in it: inside an installed package, else at the top of the checkout.

    Raises MemdoctorError where neither is there (a broken installation).
    """
    for folder in (os.path.join(_HERE, "_rules"), os.path.join(os.path.dirname(_HERE), "rules")):
        if os.path.isfile(os.path.join(folder, "tables", "causes.yaml")):
            return os.path.join(folder, *parts)
    raise MemdoctorError(f"the built-in rules are missing beside {_HERE}; install memdoctor again")


def rules_dir() -> Path:
    """``rules_path()`` as a Path."""
    from pathlib import Path

    return Path(rules_path())


def cache_path(*parts: str) -> str:
    """The user's own cache folder (``$XDG_CACHE_HOME/memdoctor``), made on first use with mode 0700, or the path of what ``parts`` name in it.

    What is read back from it decides what memdoctor says, so a folder that someone else owns or may write to is refused.
    Raises OSError where no such folder can be had; a caller then works without a cache.
    """
    folder = os.path.join(_cache_home(), "memdoctor")
    if not os.path.isdir(folder):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with contextlib.suppress(FileExistsError):  # another start was faster
            os.mkdir(folder, 0o700)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{folder} is a link or a file, not a folder of its own")
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another user")
        if status.st_mode & 0o022:
            raise PermissionError(f"others may write to {folder}")
    return os.path.join(folder, *parts)


def cache_dir() -> Path:
    """``cache_path()`` as a Path."""
    from pathlib import Path

    return Path(cache_path())


def _cache_home() -> str:
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):  # the XDG specification asks to ignore relative ones
        return given
    home = os.path.expanduser("~")
    if not os.path.isabs(home) or not os.path.isdir(home):  # root could make one, and must not
        raise FileNotFoundError("no home folder is known")
    return os.path.join(home, ".cache")
