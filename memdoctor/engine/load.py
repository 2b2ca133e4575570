"""Folders of rules → Signal and Rule objects, or every fault in them with file and line.

``python -m memdoctor.engine.load [DIR]`` checks a folder (without DIR the built-in rules) and prints what is wrong, one fault a line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from memdoctor import resources
from memdoctor.engine import cache
from memdoctor.engine.schema import Base, Rule
from memdoctor.errors import MemdoctorError
from memdoctor.model import Signal

Folder = str | os.PathLike[str]


def load_signals(dirs: Sequence[Folder]) -> Sequence[Signal]:
    """The signals of all ``dirs``. Raises RuleError (a broken file) or InputError (no rules in a folder)."""
    return load(dirs).signals


def load_rules(dirs: Sequence[Folder]) -> Sequence[Rule]:
    """The rules of all ``dirs``, which may name what earlier ones hold. Raises as ``load_signals``."""
    return load(dirs).rules


def load(dirs: Sequence[Folder]) -> Base:
    """Signals and rules of the built-in folder and of the user's own. Raises the first RuleError, or InputError."""
    base = read(dirs)
    if base.errors:
        raise base.errors[0]
    return base


def read(dirs: Sequence[Folder], *, thorough: bool | None = None) -> Base:
    """As ``load``, but a fault is data: whatever is sound is there, and ``errors`` holds all faults of all files.

    ``thorough`` compiles every pattern and tries it on its sample. By default that is left out for the built-in folder alone: its tests
    have done it, and it takes longer than reading a log.
    """
    base = Base()
    for folder in dirs:
        if thorough is None and base == Base() and _is_builtin(folder):
            base = _builtin(folder)
        else:
            base = _extend(base, folder, thorough=thorough is not False)
    return base


def _builtin(folder: Folder) -> Base:
    state = cache.state(os.fspath(folder))
    kept = cache.get(state)
    if kept is not None:
        return kept
    base = _extend(Base(), folder, thorough=False)
    if not base.errors:
        cache.put(state, base)
    return base


def _extend(base: Base, folder: Folder, *, thorough: bool) -> Base:
    from pathlib import Path

    from memdoctor.engine.extend import extend  # reads YAML, which a start with a good cache does without

    return extend(base, Path(folder), thorough=thorough)


def _is_builtin(folder: Folder) -> bool:
    try:
        return os.path.realpath(folder) == os.path.realpath(resources.rules_path())
    except (OSError, MemdoctorError):
        return False


def main(arguments: Sequence[str]) -> int:
    """Check the built-in rules and the folders named; 0 where all is sound, else 2."""
    from pathlib import Path

    builtin = resources.rules_dir()
    here = Path.cwd()
    dirs = [
        builtin.relative_to(here) if builtin.is_relative_to(here) else builtin,
        *(Path(argument) for argument in arguments if not _is_builtin(Path(argument))),
    ]
    try:
        base = read(dirs, thorough=True)
    except MemdoctorError as error:
        print(error)
        return error.exit_code
    for fault in base.errors:
        print(fault)
    print(f"{len(base.signals)} signals, {len(base.rules)} rules" + (f", {len(base.errors)} faults" if base.errors else ""))
    return 2 if base.errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
