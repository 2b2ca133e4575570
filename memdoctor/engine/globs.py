"""Ids and globs of ids."""

from __future__ import annotations


def fits(id_: str, glob: str) -> bool:
    """As ``fnmatch.fnmatchcase``, which compiles a pattern for each glob; nearly all are an id or end in their only ``*``."""
    start = glob[:-1] if glob.endswith("*") else glob
    if not any(sign in start for sign in "*?["):
        return id_.startswith(start) if start is not glob else id_ == glob
    from fnmatch import fnmatchcase

    return fnmatchcase(id_, glob)
