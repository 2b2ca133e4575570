"""The tables of rules/tables as data: from YAML the first time, then from the cache."""

from __future__ import annotations

import os
import zlib
from typing import Any

from memdoctor import kept
from memdoctor.errors import RuleError


def read(path: str, *, texts: bool = False) -> Any:
    """What the YAML file at ``path`` holds: lists, mappings whose keys are texts, and values; with ``texts`` all of them as written.

    Raises RuleError where it cannot be read.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise RuleError(path, None, f"cannot be read: {error.strerror or error}") from error
    kind = f"table_{os.path.basename(path).partition('.')[0]}{'_texts' if texts else ''}"
    state = f"{zlib.crc32(os.fsencode(path)):08x}-{status.st_size:x}-{status.st_mtime_ns:x}"
    data = kept.get(kind, state)
    if data is None:
        data = _parse(path, "BaseLoader" if texts else "SafeLoader")
        kept.put(kind, state, data)
    return data


def _parse(path: str, loader: str) -> Any:
    import yaml  # a start with a good cache does without it

    try:
        with open(path, encoding="utf-8") as file:
            return yaml.load(file.read(), Loader=getattr(yaml, f"C{loader}", getattr(yaml, loader)))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RuleError(path, None, f"cannot be read: {error}") from error
