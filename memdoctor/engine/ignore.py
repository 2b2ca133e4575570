"""What a person asked not to be told of: it goes, and with it what is only its consequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from memdoctor.engine.relate import Related
from memdoctor.engine.schema import Base
from memdoctor.errors import InputError
from memdoctor.model import Diagnosis, Incident


def check_ignored(globs: Sequence[str], base: Base) -> None:
    """Refuse an id that no rule and no cause has. Raises InputError with the nearest ones."""
    known = sorted({rule.id for rule in base.rules} | base.causes) if globs else []
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in known):
            from difflib import get_close_matches

            near = get_close_matches(glob, known, 2, 0.5)
            raise InputError(
                f"--ignore {glob}: no rule or cause is called so"
                + (f"; did you mean {' or '.join(near)}?" if near else "; see `memdoctor rules list`")
            )


def without_ignored(related: Related, globs: Sequence[str]) -> Related:
    """``related`` without the diagnoses of the rules and causes that ``globs`` name, and without what only follows from them.

    The root cause is then the first of the errors that are left, else of the warnings.
    """
    if not globs:
        return related
    gone = {
        found.id for found in related.diagnoses if any(fnmatchcase(found.rule, glob) or fnmatchcase(found.cause, glob) for glob in globs)
    }
    while more := {found.id for found in related.diagnoses if found.explained_by in gone and found.id not in gone}:
        gone |= more
    if not gone:
        return related
    left = tuple(found for found in related.diagnoses if found.id not in gone)
    root = related.diagnoses[0] if related.diagnoses and related.diagnoses[0].id not in gone else _first(left)
    if root is not None and left[0] is not root:
        left = (root, *(found for found in left if found is not root))
    same = root is not None and root is related.diagnoses[0] and related.root_cause is not None
    return replace(
        related,
        diagnoses=left,
        incidents=tuple(_incident(incident, left) for incident in related.incidents),
        root_cause=None if root is None else root.cause,
        candidates=related.candidates if same else (),
        confidence=None if root is None else root.confidence,
        action=None if root is None else root.action,
        hosts_to_exclude=related.hosts_to_exclude if same else (),
    )


def _first(left: Sequence[Diagnosis]) -> Diagnosis | None:
    errors = [found for found in left if found.severity == "error" and found.explained_by is None]
    warnings = [found for found in left if found.severity == "warning"]
    last = max((found.attempt for found in errors), default=0)
    return next((found for found in errors if found.attempt == last), warnings[0] if warnings else None)


def _incident(incident: Incident, left: Sequence[Diagnosis]) -> Incident:
    ids = {found.id: found for found in left}
    kept = tuple(id_ for id_ in incident.diagnoses if id_ in ids)
    return Incident(incident.attempt, ids[kept[0]].cause if kept else None, kept)
