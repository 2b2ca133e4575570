"""Where memdoctor's own data lies, and where it may keep a cache."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from memdoctor.errors import MemdoctorError

_HERE = Path(__file__).resolve().parent


def rules_dir() -> Path:
    """The folder of the built-in rules: inside an installed package, else at the top of the checkout.

    Raises MemdoctorError where neither is there (a broken installation).
    """
    for folder in (_HERE / "_rules", _HERE.parent / "rules"):
        if (folder / "tables" / "causes.yaml").is_file():
            return folder
    raise MemdoctorError(f"the built-in rules are missing beside {_HERE}; install memdoctor again")


def cache_dir() -> Path:
    """The user's own cache folder (``$XDG_CACHE_HOME/memdoctor``), made on first use with mode 0700.

    What is read back from it decides what memdoctor says, so a folder that someone else owns or may write to is refused.
    Raises OSError where no such folder can be had; a caller then works without a cache.
    """
    folder = _cache_home() / "memdoctor"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{folder} is a link or a file, not a folder of its own")
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another user")
        if status.st_mode & 0o022:
            raise PermissionError(f"others may write to {folder}")
    return folder


def _cache_home() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):  # the XDG specification asks to ignore relative ones
        return Path(given)
    try:
        return Path.home() / ".cache"
    except RuntimeError as error:
        raise FileNotFoundError("no home folder is known") from error
