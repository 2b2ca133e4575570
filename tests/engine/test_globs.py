"""Ids against globs: the same answers as fnmatch."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest

from memdoctor.engine.globs import fits

IDS = ("oom.logits", "oom.growth", "oom", "oom.", "hang/p2p", "Oom.logits", "")
GLOBS = ("oom.logits", "oom.*", "*", "", "oom*", "*.logits", "o?m.*", "o[o]m.logits", "oom.*its", "**", "oom.[*", "hang/*")


@pytest.mark.parametrize(("id_", "glob"), [*product(IDS, GLOBS)])
def test_fits(id_: str, glob: str) -> None:
    assert fits(id_, glob) is fnmatchcase(id_, glob)
