"""The facts about a running job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memdoctor.model import Fact


def verdict(source: Fact, fields: Mapping[str, object], rank: int | None = None, number: int = 0) -> Fact:
    """A fact that the line of ``source`` proves, about its rank or about ``rank``; ``number`` tells facts of one line apart."""
    kept = {key: value for key, value in fields.items() if value not in (None, "", ())}
    about = source.rank if rank is None else rank
    return replace(
        source,
        kind="live.verdict",
        fields=kept,
        rank=about,
        host=source.host if rank is None else None,
        event=f"live:{source.event}:{number}",
    )
