"""Where an attempt saves to: the same folder however many steps it has done, and no other."""

from __future__ import annotations

import pytest

from memdoctor.derive.series.anew import folders_of
from memdoctor.model import Fact, Origin


def save(path: str) -> Fact:
    return Fact("run.phase", {"name": "save", "path": path}, Origin("log", "train.log", 1, ""), None, None, None, 1, 1, "")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/ckpt/run1", "/ckpt/run1", True),
        ("/ckpt/run1", "/ckpt/run2", False),
        ("/ckpt/run1/global_step200/layer_00-model_states.pt", "/ckpt/run1/global_step4000/layer_00-model_states.pt", True),
        ("out/checkpoint-500", "out/checkpoint-1500", True),
        ("out-7/checkpoint-500", "out-8/checkpoint-500", False),
    ],
)
def test_the_folder_of_a_save(one: str, other: str, same: bool) -> None:
    assert bool(folders_of([save(one)]) & folders_of([save(other)])) is same
