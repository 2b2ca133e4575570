"""The dumps under fixtures/ are those that ``tests.flight.stories`` writes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from tests.flight.stories import FIXTURES, STORIES, write


def content(path: Path) -> Any:
    return json.loads(path.read_text()) if path.suffix == ".json" else pickle.loads(path.read_bytes())


def test_fixtures_are_fresh(tmp_path: Path) -> None:
    write(tmp_path)
    for rule, stories in STORIES.items():
        for name in stories:
            fresh = {path.name: content(path) for path in (tmp_path / rule / name).iterdir()}
            kept = {path.name: content(path) for path in (FIXTURES / rule / name).iterdir()}
            assert kept == fresh, f"python -m tests.flight.stories writes another {rule}/{name}"
